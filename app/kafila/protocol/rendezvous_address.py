"""Where a rendezvous is, together with which certificate counts there."""

from typing import Self

import msgspec

from kafila.protocol.links import Address
from kafila.protocol.trust import FirstUse, Pinned, Trust, parse_pin


class RendezvousAt(msgspec.Struct, frozen=True):
    """An address, and what is known of the certificate there."""

    address: Address
    trust: Trust = FirstUse()

    def __str__(self) -> str:
        """As people write it: HOST:PORT, with #FINGERPRINT where that is known."""
        fingerprint = f"#{self.trust.fingerprint.hex()}" if isinstance(self.trust, Pinned) else ""
        return f"{self.address}{fingerprint}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read HOST:PORT or HOST:PORT#FINGERPRINT. Raises ValueError for anything else."""
        where, hash_sign, fingerprint = text.strip().partition("#")
        address = Address.parse(where)
        return cls(address, Pinned(parse_pin(fingerprint))) if hash_sign else cls(address)
