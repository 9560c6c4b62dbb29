"""Seat keys, and the tokens by which clients take up their lines again: derived, not stored.

With the same secret a restarted rendezvous gives every client back its session and its seat,
without having kept a file about anybody.
"""

import hashlib
import hmac
import struct

import msgspec

from kafila.protocol.rendezvous import SeatGrant

_PLACE = struct.Struct("!QQ?")
_MAC_BYTES = 16


class Place(msgspec.Struct, frozen=True):
    """Where a client sits."""

    session: int
    slot: int
    is_host: bool


class TokenMint:
    """Makes and reads what only the holder of the secret can make."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def grant(self, place: Place) -> SeatGrant:
        """What the client in this place is given."""
        said = _PLACE.pack(place.session, place.slot, place.is_host)
        token = said + self._keyed(b"token", said, size=_MAC_BYTES)
        return SeatGrant(slot=place.slot, key=self.seat_key(place.session, place.slot), token=token)

    def read(self, token: bytes) -> Place | None:
        """Whose token this is; None for one that we did not make."""
        said, mac = token[: _PLACE.size], token[_PLACE.size :]
        if not hmac.compare_digest(mac, self._keyed(b"token", said, size=_MAC_BYTES)):
            return None
        return Place(*_PLACE.unpack(said))

    def seat_key(self, session: int, slot: int) -> bytes:
        """The key under which a seat authenticates its frames to the relay."""
        return self._keyed(b"seat", struct.pack("!QQ", session, slot), size=32)

    def remote(self, source: str) -> str:
        """A name for an address that says only whether two are the same."""
        return self._keyed(b"remote", source.encode(), size=8).hex()

    def _keyed(self, purpose: bytes, data: bytes, *, size: int) -> bytes:
        return hashlib.blake2b(data, key=self._secret, person=purpose, digest_size=size).digest()
