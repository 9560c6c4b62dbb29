"""Path probes: small authenticated questions and answers that find out which paths work.

    ping   04 · tag 8 · transaction 8 · MAC 16
    pong   05 · tag 8 · transaction 8 · MAC 16

A probe travels bare between two addresses, or as the payload of a relayed frame. The tag names the
sender to whoever knows the pair's probe key, and nobody else; the MAC is BLAKE2b under that key of
everything before it. Pings and pongs are equally long, so an answer never amplifies.

A transaction is drawn at random by whoever asks and is good for one answer from the address that
was asked, so an old pong proves nothing. An old ping, sent again from elsewhere, earns one pong
and one question to that address, and no more.
"""

import hashlib
import hmac
import struct

import msgspec

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId

PING, PONG = 0x04, 0x05
"""First bytes of the two probes."""

TAG_BYTES = 8
MAC_BYTES = 16

_HEAD = struct.Struct("!B8sQ")
PROBE_BYTES = _HEAD.size + MAC_BYTES


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """Does this path work?"""

    transaction: int


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """The ping of this transaction came through."""

    transaction: int


Probe = Ping | Pong


class ProbeCodec:
    """Writes our probes to one peer, and reads that peer's probes to us."""

    def __init__(self, key: bytes, *, own: MemberId, peer: MemberId) -> None:
        self._key = key
        self._own_tag = self._tag(own)
        self.peer_tag = self._tag(peer)
        """The tag that the peer's probes carry."""

    def _tag(self, sender: MemberId) -> bytes:
        name = b"kafila probe tag " + sender.encode()
        return hashlib.blake2b(name, key=self._key, digest_size=TAG_BYTES).digest()

    def _mac(self, head: bytes) -> bytes:
        return hashlib.blake2b(head, key=self._key, digest_size=MAC_BYTES).digest()

    def encode(self, probe: Probe) -> bytes:
        """The probe as a datagram."""
        kind = PING if isinstance(probe, Ping) else PONG
        head = _HEAD.pack(kind, self._own_tag, probe.transaction)
        return head + self._mac(head)

    def decode(self, data: bytes) -> Probe:
        """Read a probe of the peer's. Raises PeerError for anything that the peer did not make."""
        if len(data) == PROBE_BYTES:
            kind, tag, transaction = _HEAD.unpack_from(data)
            genuine = hmac.compare_digest(data[_HEAD.size :], self._mac(data[: _HEAD.size]))
            if genuine and tag == self.peer_tag and kind in (PING, PONG):
                return (Ping if kind == PING else Pong)(transaction=transaction)
        fault = "a probe that this peer did not make"
        raise PeerError(fault)


def sender_tag(data: bytes) -> bytes | None:
    """The tag of a datagram that may be a probe, to look the sender's codec up with."""
    if len(data) == PROBE_BYTES and data[0] in (PING, PONG):
        return data[1 : 1 + TAG_BYTES]
    return None
