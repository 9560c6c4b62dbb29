"""Which certificate counts as that of the rendezvous that was meant.

A rendezvous speaks TLS. Its certificate counts for one of three reasons: its fingerprint was known
beforehand, an authority that this computer trusts vouches for its name, or nothing was known and it
is the first one that was seen there.
"""

import re

import msgspec

PIN_BYTES = 16
"""How much of a fingerprint an invitation carries: nobody finds another certificate with these 128 bits."""
FINGERPRINT_BYTES = 32
SERVER_NAME = "rendezvous.kafila.invalid"
"""What is asked for on the wire, in clear, wherever no authority has to vouch for a name: it tells nothing."""

_PIN = re.compile(rf"(?:[0-9a-fA-F]{{2}}){{{PIN_BYTES},{FINGERPRINT_BYTES}}}")


class Authority(msgspec.Struct, frozen=True):
    """A certificate for this name, vouched for by an authority that the computer trusts."""

    name: str


class Pinned(msgspec.Struct, frozen=True):
    """The certificate whose SHA-256 begins with these bytes, and no other."""

    fingerprint: bytes
    remembered: bool = False
    """It was seen at an earlier visit, not told by anybody."""


class FirstUse(msgspec.Struct, frozen=True):
    """Nothing is known: what an authority vouches for, or else a certificate that vouches for itself."""


Certain = Authority | Pinned
"""What there is once a certificate was seen: only the same will do from then on."""
Trust = Certain | FirstUse


def parse_pin(text: str) -> bytes:
    """Read 32 to 64 hexadecimal digits of a fingerprint. Raises ValueError for anything else."""
    if not _PIN.fullmatch(text):
        message = "not the beginning of a fingerprint"
        raise ValueError(message)
    return bytes.fromhex(text)


def pin_of(trust: Trust) -> bytes | None:
    """What an invitation says of a certificate; None: an authority vouches for it, or nothing is known."""
    return trust.fingerprint[:PIN_BYTES] if isinstance(trust, Pinned) else None
