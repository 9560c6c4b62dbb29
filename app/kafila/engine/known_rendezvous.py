"""Which certificate a configured rendezvous showed before, so that another one is noticed.

Links and announcements say which certificate counts. An address alone says nothing: then the first
certificate seen there is kept, and a person is told once that nobody vouched for it. Addresses of
this computer itself are left out: nobody is in between, and what listens there changes.
"""

import ipaddress
from collections.abc import Mapping

from kafila.domain.errors import Problem, UserError
from kafila.engine.events import RendezvousMet
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import Authority, FirstUse, Pinned, Trust, parse_pin

VOUCHED_FOR = "authority"


def recall(text: str | None, known: Mapping[str, str]) -> RendezvousAt | None:
    """The address that was configured, with what was seen there before. Raises UserError."""
    if text is None:
        return None
    try:
        at = RendezvousAt.parse(text)
    except ValueError:
        problem = not_an_address(text)
        raise UserError(title=problem.title, advice=problem.advice) from None
    seen = known.get(str(at.address))
    if not isinstance(at.trust, FirstUse) or seen is None or _is_here(at.address.host):
        return at
    if seen == VOUCHED_FOR:
        return RendezvousAt(at.address, Authority(at.address.host))
    try:
        return RendezvousAt(at.address, Pinned(parse_pin(seen), remembered=True))
    except ValueError:  # Somebody has written in the settings.
        return at


def met(at: RendezvousAt, shown: Trust) -> RendezvousMet | None:
    """What is to be kept of a rendezvous that was reached; None for one on this computer."""
    if _is_here(at.address.host):
        return None
    certificate = shown.fingerprint.hex() if isinstance(shown, Pinned) else VOUCHED_FOR
    unverified = isinstance(at.trust, FirstUse) and isinstance(shown, Pinned)
    return RendezvousMet(address=str(at.address), certificate=certificate, unverified=unverified)


def not_an_address(text: str) -> Problem:
    """What a person is told who names a rendezvous in another form."""
    return Problem(
        title=f"“{text}” is not an address of a rendezvous",
        advice="Write it as HOST:PORT, or as HOST:PORT#FINGERPRINT just as “kafila rendezvous” prints it.",
    )


def not_verified(address: str) -> Problem:
    """What a person is told at the first visit where nobody vouches for a certificate."""
    return Problem(
        title=f"The rendezvous at {address} was not verified",
        advice="From now on another one at this address is refused. To be sure of this one, give its whole address, "
        "HOST:PORT#FINGERPRINT, as “kafila rendezvous” prints it.",
    )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"
