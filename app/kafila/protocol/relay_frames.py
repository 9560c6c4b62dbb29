"""Relay frames: how opaque datagrams cross the rendezvous's blind relay, over UDP or its TLS stream.

A member's *seat* at the relay is a slot and a key. All integers are big-endian:

    relayed     08 · source slot 8 · counter 8 · destination slot 8 · MAC 8 · payload   to the relay
    keep-alive  09 · slot 8 · counter 8 · MAC 8                                         to the relay
    seated      0A · slot 8 · counter 8 (echo) · family 1 · address 4 or 16 · port 2    from the relay
    delivered   0B · source slot 8 · payload                                            from the relay

The MAC is BLAKE2b of everything before it under the seat's key, cut to 8 bytes. It proves to the
relay who sits in the source slot; the payload needs no proof, being end to end encrypted. The
counter is a seat's own and grows with every frame, so the relay lets a seat's address move only on
a newer frame than any it has seen.

A datagram's first byte says what it is: 0 to 3 STUN, 4 to 15 ours, and QUIC has the bit 0x40 set.
"""

import hashlib
import hmac
import ipaddress
import struct

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.links import Address

RELAYED, KEEP_ALIVE, SEATED, DELIVERED = 0x08, 0x09, 0x0A, 0x0B
"""First bytes of the four frames."""

KEY_BYTES = 32
MAC_BYTES = 8
MAX_SLOT = (1 << 64) - 1

_RELAYED_HEAD = struct.Struct("!BQQQ")
_KEEP_ALIVE_HEAD = struct.Struct("!BQQ")
_SEATED_HEAD = struct.Struct("!BQQB")
_DELIVERED_HEAD = struct.Struct("!BQ")
_PORT = struct.Struct("!H")

RELAYED_OVERHEAD = _RELAYED_HEAD.size + MAC_BYTES
DELIVERED_OVERHEAD = _DELIVERED_HEAD.size
_KEEP_ALIVE_SIZE = _KEEP_ALIVE_HEAD.size + MAC_BYTES

MAX_PAYLOAD_BYTES = 1500
"""A relayed payload is one datagram of a link; no link sends a larger one."""


class RelayedFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A member asks the relay to pass `payload` on to another slot."""

    source: int
    counter: int
    destination: int
    payload: bytes


class KeepAliveFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A member takes its seat, or shows that it still sits there."""

    slot: int
    counter: int


class SeatedFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The relay's answer to a keep-alive: the address that it now sends this seat's frames to."""

    slot: int
    counter: int
    observed: Address


class DeliveredFrame(msgspec.Struct, frozen=True, kw_only=True):
    """What the relay hands to the destination."""

    source: int
    payload: bytes


ToRelay = RelayedFrame | KeepAliveFrame
FromRelay = SeatedFrame | DeliveredFrame


def encode_to_relay(frame: ToRelay, key: bytes) -> bytes:
    """The frame, authenticated with the key of the seat that sends it."""
    match frame:
        case RelayedFrame():
            head = _RELAYED_HEAD.pack(RELAYED, frame.source, frame.counter, frame.destination)
            return b"".join((head, _mac(head, key), frame.payload))
        case KeepAliveFrame():
            head = _KEEP_ALIVE_HEAD.pack(KEEP_ALIVE, frame.slot, frame.counter)
            return head + _mac(head, key)


def decode_to_relay(data: bytes) -> ToRelay:
    """Read a frame that a member sent. Raises PeerError; says nothing of who really sent it.

    Look the source's key up and ask `is_authentic` before acting on the answer.
    """
    if data[:1] == b"\x08" and len(data) > RELAYED_OVERHEAD:
        _bound_payload(len(data) - RELAYED_OVERHEAD)
        _, source, counter, destination = _RELAYED_HEAD.unpack_from(data)
        return RelayedFrame(
            source=source,
            counter=counter,
            destination=destination,
            payload=data[RELAYED_OVERHEAD:],
        )
    if data[:1] == b"\x09" and len(data) == _KEEP_ALIVE_SIZE:
        _, slot, counter = _KEEP_ALIVE_HEAD.unpack_from(data)
        return KeepAliveFrame(slot=slot, counter=counter)
    fault = "a datagram that is no frame for the relay"
    raise PeerError(fault)


def is_authentic(data: bytes, key: bytes) -> bool:
    """Whether a frame that `decode_to_relay` could read was made with the key of its seat."""
    size = _RELAYED_HEAD.size if data[0] == RELAYED else _KEEP_ALIVE_HEAD.size
    return hmac.compare_digest(data[size : size + MAC_BYTES], _mac(data[:size], key))


def encode_from_relay(frame: FromRelay) -> bytes:
    """The frame as the relay sends it to a seat."""
    match frame:
        case DeliveredFrame():
            return _DELIVERED_HEAD.pack(DELIVERED, frame.source) + frame.payload
        case SeatedFrame():
            host = ipaddress.ip_address(frame.observed.host)
            head = _SEATED_HEAD.pack(SEATED, frame.slot, frame.counter, host.version)
            return b"".join((head, host.packed, _PORT.pack(frame.observed.port)))


def encode_delivered(relayed: bytes) -> bytes:
    """The bytes of a relayed frame that could be read, as they go on to the destination."""
    return b"".join((b"\x0b", relayed[1:DELIVERED_OVERHEAD], relayed[RELAYED_OVERHEAD:]))


def decode_from_relay(data: bytes) -> FromRelay:
    """Read a frame that the relay sent. Raises PeerError where it is malformed."""
    if data[:1] == b"\x0b" and len(data) > DELIVERED_OVERHEAD:
        _bound_payload(len(data) - DELIVERED_OVERHEAD)
        _, source = _DELIVERED_HEAD.unpack_from(data)
        return DeliveredFrame(source=source, payload=data[DELIVERED_OVERHEAD:])
    if data[:1] == b"\x0a" and len(data) > _SEATED_HEAD.size:
        _, slot, counter, version = _SEATED_HEAD.unpack_from(data)
        packed, port = data[_SEATED_HEAD.size : -_PORT.size], data[-_PORT.size :]
        if (version, len(packed)) in ((4, 4), (6, 16)):
            observed = Address(str(ipaddress.ip_address(packed)), *_PORT.unpack(port))
            return SeatedFrame(slot=slot, counter=counter, observed=observed)
    fault = "a datagram that is no frame of the relay"
    raise PeerError(fault)


def _mac(head: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(head, key=key, digest_size=MAC_BYTES).digest()


def _bound_payload(size: int) -> None:
    if size > MAX_PAYLOAD_BYTES:
        fault = "a relayed datagram longer than any that is sent"
        raise PeerError(fault)
