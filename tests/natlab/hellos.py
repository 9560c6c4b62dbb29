"""The first words of encrypted connections in captured packets: what anybody on the way can read of them.

The first packets of a QUIC connection are encrypted with a key that everyone can work out (RFC 9001,
section 5.2), so they are read here as well, also inside the relay's frames.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator

from aioquic._buffer import Buffer
from aioquic._crypto import CryptoError
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicFrameType, QuicPacketType, pull_quic_header
from aioquic.tls import ClientHello, pull_client_hello

from kafila.protocol.relay_frames import DELIVERED, DELIVERED_OVERHEAD, RELAYED, RELAYED_OVERHEAD

_UDP, _TCP = 17, 6
_UDP_HEAD = 8
_TLS_HELLO = b"\x16\x03"
_TLS_HEAD = 5


def quic_hellos(packets: Iterable[bytes]) -> list[ClientHello]:
    """What those who dial by QUIC say, straight or over the relay; each once."""
    parts: defaultdict[bytes, dict[int, bytes]] = defaultdict(dict)
    for protocol, payload in _payloads(packets):
        datagram = _carried(payload[_UDP_HEAD:]) if protocol == _UDP else b""
        if datagram and datagram[0] & 0xC0 == 0xC0:
            for connection, offset, data in _opened(datagram):
                parts[connection][offset] = data
    whole = (b"".join(found[offset] for offset in sorted(found)) for found in parts.values())
    return [pull_client_hello(Buffer(data=hello)) for hello in whole]


def tls_hellos(packets: Iterable[bytes]) -> list[ClientHello]:
    """What those who dial by TLS over TCP say."""
    streams: defaultdict[bytes, bytearray] = defaultdict(bytearray)
    for protocol, payload in _payloads(packets):
        if protocol == _TCP:
            data = payload[(payload[12] >> 4) * 4 :]
            flow = payload[:4]
            if data.startswith(_TLS_HELLO) and data[_TLS_HEAD : _TLS_HEAD + 1] == b"\x01":
                streams[flow] = bytearray(data)
            elif flow in streams:
                streams[flow] += data
    hellos = [bytes(stream[_TLS_HEAD : _TLS_HEAD + int.from_bytes(stream[3:5], "big")]) for stream in streams.values()]
    return [pull_client_hello(Buffer(data=hello)) for hello in hellos]


def _payloads(packets: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The protocol and the payload of IPv4 packets as they come through a device without a link layer."""
    for packet in packets:
        if packet and packet[0] >> 4 == 4:
            (size,) = struct.unpack_from("!H", packet, 2)
            yield packet[9], packet[(packet[0] & 15) * 4 : size]


def _carried(datagram: bytes) -> bytes:
    """What the relay is to pass on, or hands out; another datagram as it is."""
    overhead = {RELAYED: RELAYED_OVERHEAD, DELIVERED: DELIVERED_OVERHEAD}.get(datagram[0] if datagram else 0, 0)
    return datagram[overhead:]


def _opened(datagram: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Connection, offset and bytes of what a dialling side says in its first packets."""
    buffer = Buffer(data=datagram)
    header = pull_quic_header(buffer, host_cid_length=8)
    if header.packet_type is not QuicPacketType.INITIAL or header.version is None:
        return
    keys = CryptoPair()
    keys.setup_initial(cid=header.destination_cid, is_client=False, version=header.version)
    try:
        _, plain, _ = keys.decrypt_packet(datagram[: header.packet_length], buffer.tell(), 0)
    except CryptoError:  # from the side that was dialled, or for a connection id that this side chose
        return
    frames = Buffer(data=plain)
    while not frames.eof():
        match frames.pull_uint_var():
            case QuicFrameType.PADDING | QuicFrameType.PING:
                continue
            case QuicFrameType.CRYPTO:
                offset = frames.pull_uint_var()
                yield header.destination_cid, offset, frames.pull_bytes(frames.pull_uint_var())
            case _:
                return
