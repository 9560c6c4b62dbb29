"""Path probes: small authenticated questions and answers that find out which paths work.

    ping   04 · tag 8 · transaction 8 · MAC 16
    pong   05 · tag 8 · transaction 8 · MAC 16
    where  06 · tag 8 · transaction 8 · (family 1 · address 4 or 16 · port 2)* · MAC 16

A probe travels bare between two addresses, or as the payload of a relayed frame. The tag names the
sender to whoever knows the pair's probe key, and nobody else; the MAC is BLAKE2b under that key of
everything before it. Pings and pongs are equally long, so an answer never amplifies.

A transaction is drawn at random by whoever asks and is good for one answer from the address that
was asked, so an old pong proves nothing. An old ping, sent again from elsewhere, earns one pong
and one question to that address, and no more.
"""

import hashlib
import hmac
import ipaddress
import struct

import msgspec

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId
from kafila.protocol.links import Address

PING, PONG, WHERE = 0x04, 0x05, 0x06
"""First bytes of the three probes."""

TAG_BYTES = 8
MAC_BYTES = 16

_HEAD = struct.Struct("!B8sQ")
_PORT = struct.Struct("!H")
_HOST_BYTES = {4: 4, 6: 16}
MAX_ADDRESSES = 16
PROBE_BYTES = _HEAD.size + MAC_BYTES
MAX_PROBE_BYTES = PROBE_BYTES + MAX_ADDRESSES * (1 + 16 + _PORT.size)


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """Does this path work?"""

    transaction: int


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """The ping of this transaction came through."""

    transaction: int


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """The sender may be reached at these addresses now."""

    transaction: int
    addresses: tuple[Address, ...]


Probe = Ping | Pong | Where


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
        match probe:
            case Ping():
                kind, rest = PING, b""
            case Pong():
                kind, rest = PONG, b""
            case Where(addresses=addresses):
                kind, rest = WHERE, b"".join(map(_pack_address, addresses[:MAX_ADDRESSES]))
        head = _HEAD.pack(kind, self._own_tag, probe.transaction) + rest
        return head + self._mac(head)

    def decode(self, data: bytes) -> Probe:
        """Read a probe of the peer's. Raises PeerError for anything that the peer did not make."""
        if PROBE_BYTES <= len(data) <= MAX_PROBE_BYTES:
            kind, tag, transaction = _HEAD.unpack_from(data)
            head, rest = data[:-MAC_BYTES], data[_HEAD.size : -MAC_BYTES]
            if tag == self.peer_tag and hmac.compare_digest(data[-MAC_BYTES:], self._mac(head)):
                if kind == WHERE:
                    return Where(transaction=transaction, addresses=_unpack_addresses(rest))
                if kind in (PING, PONG) and not rest:
                    return (Ping if kind == PING else Pong)(transaction=transaction)
        fault = "a probe that this peer did not make"
        raise PeerError(fault)


def _pack_address(address: Address) -> bytes:
    host = ipaddress.ip_address(address.host)
    return bytes((host.version,)) + host.packed + _PORT.pack(address.port)


def _unpack_addresses(data: bytes) -> tuple[Address, ...]:
    """Raises PeerError where the bytes are no list of addresses."""
    addresses: list[Address] = []
    while data:
        size = _HOST_BYTES.get(data[0], 0)
        end = 1 + size + _PORT.size
        if not size or len(data) < end or len(addresses) == MAX_ADDRESSES:
            fault = "addresses that are none"
            raise PeerError(fault)
        host = ipaddress.ip_address(data[1 : 1 + size])
        addresses.append(Address(str(host), *_PORT.unpack_from(data, 1 + size)))
        data = data[end:]
    return tuple(addresses)


def sender_tag(data: bytes) -> bytes | None:
    """The tag of a datagram that may be a probe, to look the sender's codec up with."""
    if PROBE_BYTES <= len(data) <= MAX_PROBE_BYTES and data[0] in (PING, PONG, WHERE):
        return data[1 : 1 + TAG_BYTES]
    return None
