"""What a person is told when a rendezvous cannot be had, or says no."""

import ssl

import aiohttp

from kafila.domain.errors import UserError
from kafila.network.rendezvous_tls import OtherCertificateError
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import Refusal
from kafila.protocol.trust import Pinned, Trust


def no_way_in(address: Address, trust: Trust, error: Exception) -> UserError:
    """Why there is no connection, after what was raised in the attempt to make one."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=OtherCertificateError()):
            return _another(address, trust)
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as fault):
            return _not_vouched_for(address, fault.verify_code)
        case aiohttp.ClientConnectorSSLError():
            return UserError(
                title=f"What answers at {address} is no Kafila rendezvous, or a very old one",
                advice="It does not speak TLS 1.3. Check the address. If it is right, the rendezvous is to be updated.",
            )
        case _:
            return unreachable(address)


def _another(address: Address, trust: Trust) -> UserError:
    if isinstance(trust, Pinned) and trust.remembered:
        return UserError(
            title=f"The rendezvous at {address} shows another certificate than before",
            advice="Somebody may be in between. If whoever runs it has changed it, ask them for the whole address, "
            "HOST:PORT#FINGERPRINT, that “kafila rendezvous” prints, and give that.",
        )
    return UserError(
        title=f"What answers at {address} is not the rendezvous that was meant",
        advice="Its certificate has another fingerprint. Ask the host for a new link, or whoever runs the rendezvous "
        "for its whole address.",
    )


def _not_vouched_for(address: Address, verify_code: int) -> UserError:
    match verify_code:
        case 9 | 10:
            return UserError(
                title=f"The certificate of the rendezvous at {address} has expired or is not yet valid",
                advice="Check this computer's clock. If it is right, whoever runs the rendezvous has to renew it.",
            )
        case 62 | 64:
            return UserError(
                title=f"The certificate of the rendezvous at {address} is for another name",
                advice="Give the name that the rendezvous has its certificate for.",
            )
        case _:
            return UserError(
                title=f"Nobody whom this computer trusts vouches for the rendezvous at {address}",
                advice="Ask whoever runs it for its whole address, HOST:PORT#FINGERPRINT, that “kafila rendezvous” "
                "prints, and give that.",
            )


def unreachable(address: Address) -> UserError:
    """Nothing accepts connections there."""
    return UserError(
        title=f"Nobody can be reached at {address}",
        advice="Check the address and this computer's network, and that the session or rendezvous there still runs.",
    )


def silent(address: Address) -> UserError:
    """Something accepts connections there and does not answer as a rendezvous."""
    return UserError(
        title=f"{address} does not answer",
        advice="Check that a Kafila session or rendezvous runs there, then try again.",
    )


def refused(reason: Refusal, *, called: int | None) -> UserError:
    """The rendezvous turned us or our request away; `called` is the nameplate, if it was a call."""
    match reason:
        case Refusal.NO_SUCH_CODE:
            return UserError(
                title=f"No session answers to {called}",
                advice="Check the number with the person hosting.",
            )
        case Refusal.OTHER_VERSION:
            return UserError(
                title="The rendezvous belongs to another version of Kafila",
                advice="Update Kafila on both computers, then try again.",
            )
        case Refusal.TOO_MANY:
            return UserError(
                title="There were too many tries from this network",
                advice="Wait a minute, then try again.",
            )
        case Refusal.FULL:
            return UserError(
                title="There is no room left" if called is None else f"Session {called} takes no more callers now",
                advice="Wait a minute and try again, or ask the host to remove computers that are no longer there.",
            )
