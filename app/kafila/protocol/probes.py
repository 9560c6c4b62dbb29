"""Path probes: small authenticated questions and answers that find out which paths work.

    ping   04 · tag 8 · transaction 8 · MAC 16 · zeros, where it is to be large
    pong   05 · tag 8 · transaction 8 · MAC 16
    where  06 · tag 8 · transaction 8 · sealed (family 1 · address 4 or 16 · port 2)* · 16

A probe travels bare between two addresses, or as the payload of a relayed frame. The tag names the
sender to whoever knows the pair's probe key, and nobody else; the MAC is BLAKE2b under that key of
everything before it, and of a large ping's length (2 bytes), so that nobody makes it shorter on its
way. A pong is never longer than the ping, so an answer does not amplify.

A transaction is drawn at random by whoever asks and is good for one answer from the address that
was asked, so an old pong proves nothing. An old ping, sent again from elsewhere, earns one pong
and one question to that address, and no more.

*Where* says where the sender may be reached now, and that both should knock at each other's doors
from this moment on. It goes over the relay, gets no answer, and counts once. The relay need not know
what addresses a member has at home, so they are sealed with ChaCha20-Poly1305, under a key of the
sender's made of the pair's; the nonce is the transaction.
"""

import hashlib
import hmac
import ipaddress
import struct

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

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
MAX_WHERE_BYTES = PROBE_BYTES + MAX_ADDRESSES * (1 + 16 + _PORT.size)
MAX_PROBE_BYTES = 1500

_LONGEST = {PING: MAX_PROBE_BYTES, PONG: PROBE_BYTES, WHERE: MAX_WHERE_BYTES}


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """Does this path work, with a datagram of this size?"""

    transaction: int
    size: int = PROBE_BYTES


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

        self._own_seal = self._seal(own)
        self._peer_seal = self._seal(peer)

    def _seal(self, sender: MemberId) -> ChaCha20Poly1305:
        name = b"kafila where " + sender.encode()
        return ChaCha20Poly1305(hashlib.blake2b(name, key=self._key, digest_size=32).digest())

    def _tag(self, sender: MemberId) -> bytes:
        name = b"kafila probe tag " + sender.encode()
        return hashlib.blake2b(name, key=self._key, digest_size=TAG_BYTES).digest()

    def _mac(self, head: bytes, size: int) -> bytes:
        length = size.to_bytes(2) if size > PROBE_BYTES else b""
        return hashlib.blake2b(head + length, key=self._key, digest_size=MAC_BYTES).digest()

    def encode(self, probe: Probe) -> bytes:
        """The probe as a datagram."""
        match probe:
            case Ping(size=size):
                kind, rest = PING, bytes(size - PROBE_BYTES)
            case Pong():
                kind, rest = PONG, b""
            case Where(addresses=addresses):
                kind, rest = WHERE, b"".join(map(_pack_address, addresses[:MAX_ADDRESSES]))
        head = _HEAD.pack(kind, self._own_tag, probe.transaction)
        if kind == WHERE:
            return head + self._own_seal.encrypt(_nonce(probe.transaction), rest, head)
        return head + self._mac(head, PROBE_BYTES + len(rest)) + rest

    def decode(self, data: bytes) -> Probe:
        """Read a probe of the peer's. Raises PeerError for anything that the peer did not make."""
        if sender_tag(data) != self.peer_tag:
            raise _not_the_peers()
        kind, _, transaction = _HEAD.unpack_from(data)
        head, rest = data[: _HEAD.size], data[_HEAD.size :]
        if kind == WHERE:
            return Where(transaction=transaction, addresses=_unpack_addresses(self._open(head, rest, transaction)))
        mac = self._mac(head, len(data))
        if not hmac.compare_digest(rest[:MAC_BYTES], mac) or any(rest[MAC_BYTES:]):
            raise _not_the_peers()
        return Ping(transaction=transaction, size=len(data)) if kind == PING else Pong(transaction=transaction)

    def _open(self, head: bytes, sealed: bytes, transaction: int) -> bytes:
        try:
            return self._peer_seal.decrypt(_nonce(transaction), sealed, head)
        except InvalidTag:
            raise _not_the_peers() from None


def _not_the_peers() -> PeerError:
    return PeerError("a probe that this peer did not make")


def _nonce(transaction: int) -> bytes:
    return bytes(4) + transaction.to_bytes(8, "big")


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
    if PROBE_BYTES <= len(data) <= _LONGEST.get(data[0], 0):
        return data[1 : 1 + TAG_BYTES]
    return None
