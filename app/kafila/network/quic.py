"""The QUIC core of a link: what the rest of the room asks of it, and aioquic behind that.

A core does no input or output and reads no clock. It sees one constant made-up address per peer;
which path a datagram really takes is decided below it. To try another QUIC library, write another
`QuicCore` and `CoreMaker`.

aioquic is driven through its public interface, except where it offers none: asking the client for
its certificate, the order in which streams are served, and a probe at once. All of that is in this
file, and tests/network notices if it no longer works.
"""

import hashlib
import ipaddress
import logging
import ssl
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec
from aioquic.quic import events as quic_events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import NetworkAddress, QuicConnection, QuicReceiveContext
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.quic.stream import QuicStream
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId
from kafila.network.congestion import NAME, Pacer, RateControl
from kafila.network.identity import DeviceIdentity
from kafila.network.quic_events import (
    ClosedByPeer,
    CoreEvent,
    Finished,
    IdIssued,
    IdRetired,
    Shaken,
    StreamBytes,
    StreamMisused,
)
from kafila.protocol.path_size import SMALL_BYTES

ALPN = "kafila/1"
LARGE_BYTES = 1350
"""Sent where a path was found to carry as much: most do, also through tunnels, and with a relay frame's head."""
WINDOW_BYTES = 16 << 20
"""What may be under way on a connection and on each stream: 200 Mbit/s over more than half a
second. What is kept for a slow reader is bounded above, by the link's own credit."""
CONNECTION_ID_BYTES = 8


class Transport(msgspec.Struct, frozen=True, kw_only=True):
    """What `kafila bench transport` compares. The defaults are what docs/network.md says of it."""

    datagram_bytes: int = LARGE_BYTES
    """At most, where the path carries it."""
    congestion_control: str = NAME


TRANSPORT = Transport()

# The library's messages carry the peer's own words, which belong in no log of ours.
logging.getLogger("quic").setLevel(logging.CRITICAL)


class QuicCore(Protocol):
    """One QUIC connection, either end of it."""

    @property
    def heard_at(self) -> float:
        """When the last packet that could be decrypted arrived; 0 before the first."""
        ...

    @property
    def own_id(self) -> bytes:
        """The first of the connection ids that the peer sends to."""
        ...

    def receive(self, datagram: bytes, now: float) -> None:
        """Take a datagram in. Raises PeerError where the peer breaks QUIC beyond repair."""
        ...

    def events(self) -> Iterator[CoreEvent]:
        """What has happened since it was last asked."""
        ...

    def datagrams(self, now: float, largest_bytes: int = SMALL_BYTES) -> list[bytes]:
        """What is to be sent now, in datagrams of at most this size."""
        ...

    def deadline(self) -> float | None:
        """When `expire` is due."""
        ...

    def expire(self, now: float) -> None:
        """The deadline has come."""
        ...

    def open_streams(self, count: int) -> None:
        """Open our streams of the numbers below `count`, once and before anything is written."""
        ...

    def write(self, stream: int, data: bytes) -> None:
        """Queue bytes on our stream of this number; lower numbers are always served first."""
        ...

    def backlog_bytes(self, stream: int) -> int:
        """Bytes written to the stream and not acknowledged yet."""
        ...

    def ping(self) -> None:
        """Ask the peer for a sign of life."""
        ...

    def nudge(self, now: float, *, moved: bool) -> None:
        """Try again at once what went unanswered. Where it `moved`, the path is another one now."""
        ...

    def close(self, code: int) -> None:
        """End the connection and tell the peer."""
        ...


class CoreMaker(Protocol):
    """Makes the two ends of connections."""

    def dial(self, peer: MemberId, now: float) -> QuicCore:
        """The client's end of a new connection."""
        ...

    def accept(self, peer: MemberId, first_destination: bytes) -> QuicCore:
        """The server's end; `first_destination` is the id that the client's Initial names."""
        ...


def destination_id(datagram: bytes) -> bytes:
    """The connection id that a QUIC datagram is addressed to; may be anything if it is garbage."""
    if datagram[0] & 0x80:
        return datagram[6 : 6 + datagram[5]] if len(datagram) > 6 else b""
    return datagram[1 : 1 + CONNECTION_ID_BYTES]


def opens_connection(datagram: bytes) -> bool:
    """Whether this is a client's first flight: a full-sized version 1 Initial."""
    return (
        len(datagram) >= SMALL_BYTES
        and datagram[0] & 0xF0 == 0xC0
        and int.from_bytes(datagram[1:5]) == QuicProtocolVersion.VERSION_1
        and 8 <= datagram[5] <= 20
    )


class AioquicMaker:
    """Makes cores that show this device's certificate, and ask for the other's."""

    def __init__(self, identity: DeviceIdentity, *, idle_timeout_s: float, transport: Transport = TRANSPORT) -> None:
        self._client = _configuration(identity, idle_timeout_s, transport, is_client=True)
        self._server = _configuration(identity, idle_timeout_s, transport, is_client=False)

    def dial(self, peer: MemberId, now: float) -> QuicCore:
        """See `CoreMaker`."""
        address = virtual_address(peer)
        quic = _Connection(configuration=self._client)
        quic.connect(address, now)
        return _AioquicCore(quic, address)

    def accept(self, peer: MemberId, first_destination: bytes) -> QuicCore:
        """See `CoreMaker`."""
        quic = _Connection(configuration=self._server, original_destination_connection_id=first_destination)
        return _AioquicCore(quic, virtual_address(peer))


def virtual_address(peer: MemberId) -> tuple[str, int]:
    """The constant address under which QUIC knows a peer, whatever path is below."""
    return str(ipaddress.IPv6Address(0xFD << 120 | int(peer, 16))), 1


def _configuration(
    identity: DeviceIdentity, idle_timeout_s: float, transport: Transport, *, is_client: bool
) -> QuicConfiguration:
    return QuicConfiguration(
        alpn_protocols=[ALPN],
        certificate=identity.certificate,
        private_key=identity.private_key,
        congestion_control_algorithm=transport.congestion_control,
        connection_id_length=CONNECTION_ID_BYTES,
        idle_timeout=idle_timeout_s,
        is_client=is_client,
        max_data=WINDOW_BYTES,
        max_datagram_size=SMALL_BYTES,
        max_stream_data=WINDOW_BYTES,
        supported_versions=[QuicProtocolVersion.VERSION_1],
        # No authority vouches for a device: its key is compared with the roster's when the
        # handshake is over. That the peer holds the key is checked by TLS in any case.
        verify_mode=ssl.CERT_NONE,
    )


class _Connection(QuicConnection):
    """aioquic's connection with mutual certificates, stream priorities and word of its end."""

    def __init__(
        self,
        *,
        configuration: QuicConfiguration,
        original_destination_connection_id: bytes | None = None,
    ) -> None:
        self.heard_at = 0.0
        self.closed_by_peer: ClosedByPeer | None = None
        self._streams_by_number = _LowestFirst()
        super().__init__(
            configuration=configuration,
            original_destination_connection_id=original_destination_connection_id,
        )
        if (control := self._rate_control) is not None:
            self._loss._pacer = Pacer(control)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    @property
    def _rate_control(self) -> RateControl | None:
        control = self._loss._cc  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return control if isinstance(control, RateControl) else None

    @property
    def _streams_queue(self) -> list[QuicStream]:
        # The library serves streams in the order of this list, and moves served ones to its end.
        return self._streams_by_number

    @_streams_queue.setter
    def _streams_queue(  # pyright: ignore[reportIncompatibleVariableOverride]
        self, streams: list[QuicStream]
    ) -> None:
        self._streams_by_number = _LowestFirst(streams)

    def _initialize(self, peer_cid: bytes) -> None:
        super()._initialize(peer_cid)
        if not self._is_client:
            self.tls._request_client_certificate = True  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _payload_received(
        self,
        context: QuicReceiveContext,
        plain: bytes,
        crypto_frame_required: bool = False,  # noqa: FBT001, FBT002
    ) -> tuple[bool, bool]:
        # Called once for every packet that decrypted.
        self.heard_at = context.time
        return super()._payload_received(context, plain, crypto_frame_required)

    def _close_begin(self, is_initiator: bool, now: float) -> None:  # noqa: FBT001
        # The library tells of the end only when its draining period is over; we want to know now.
        if not is_initiator and self._close_event is not None:
            ours = self._close_event.frame_type is None
            self.closed_by_peer = ClosedByPeer(code=self._close_event.error_code, ours=ours)
        super()._close_begin(is_initiator, now)

    def peer_spki_sha256(self) -> bytes | None:
        """The SHA-256 of the key in the certificate that the peer has proved to own."""
        certificate = self.tls._peer_certificate  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if certificate is None:
            return None
        public_key = certificate.public_key()
        encoded = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(encoded).digest()

    def unacknowledged_bytes(self, stream_id: int) -> int:
        """Bytes in a stream's send buffer."""
        stream = self._streams.get(stream_id)
        return len(stream.sender._buffer) if stream is not None else 0  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def datagrams_to_send(self, now: float) -> list[tuple[bytes, NetworkAddress]]:
        datagrams = super().datagrams_to_send(now)
        control, pacer = self._rate_control, self._loss._pacer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if isinstance(pacer, Pacer):
            pacer.end_turn()
        # What neither the window nor the pace holds back is held back by nothing: all is sent.
        if control is not None and self._pacing_at is None and control.has_room():
            control.note_limited()
        return datagrams

    def set_datagram_bytes(self, size: int) -> None:
        """How large datagrams are from now on."""
        if size != self._max_datagram_size:
            self._max_datagram_size = size
            if (control := self._rate_control) is not None:
                control.packet_bytes = size

    def begin_anew(self) -> None:
        """Forget what was learned of the path."""
        if (control := self._rate_control) is not None:
            control.begin_anew()

    def retry_now(self, now: float) -> None:
        """Forget the back-off of retransmissions, and send what is outstanding again."""
        self._loss._pto_count = 0  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._loss.on_loss_detection_timeout(now=now)


class _LowestFirst(list[QuicStream]):
    """Streams in the order of their numbers, however they are added."""

    def append(self, stream: QuicStream) -> None:
        super().append(stream)
        self.sort(key=_stream_number)

    def extend(self, streams: Iterable[QuicStream]) -> None:
        super().extend(streams)
        self.sort(key=_stream_number)


def _stream_number(stream: QuicStream) -> int:
    return stream.stream_id or 0


class _AioquicCore:
    """See `QuicCore`."""

    def __init__(self, quic: _Connection, address: tuple[str, int]) -> None:
        self._quic = quic
        self._address = address
        self._told_of_close = False
        self._own_id = quic.host_cid

    @property
    def heard_at(self) -> float:
        return self._quic.heard_at

    @property
    def own_id(self) -> bytes:
        return self._own_id

    def receive(self, datagram: bytes, now: float) -> None:
        try:
            self._quic.receive_datagram(datagram, self._address, now)
        except Exception as error:
            # Whatever a peer's packet makes the library trip over ends that peer's link, no other.
            fault = "a packet that QUIC could not make sense of"
            raise PeerError(fault) from error

    def events(self) -> Iterator[CoreEvent]:
        while (event := self._quic.next_event()) is not None:
            translated = self._translate(event)
            if translated is not None:
                yield translated
        if self._quic.closed_by_peer is not None and not self._told_of_close:
            self._told_of_close = True
            yield self._quic.closed_by_peer

    def _translate(self, event: quic_events.QuicEvent) -> CoreEvent | None:
        match event:
            case quic_events.StreamDataReceived(data=data, end_stream=ended, stream_id=stream_id):
                if ended or not stream_id & 2:
                    return StreamMisused()
                return StreamBytes(stream=stream_id // 4, data=data)
            case quic_events.StreamReset() | quic_events.StopSendingReceived():
                return StreamMisused()
            case quic_events.HandshakeCompleted():
                return Shaken(spki_sha256=self._quic.peer_spki_sha256())
            case quic_events.ConnectionIdIssued(connection_id=connection_id):
                return IdIssued(connection_id)
            case quic_events.ConnectionIdRetired(connection_id=connection_id):
                return IdRetired(connection_id)
            case quic_events.ConnectionTerminated():
                return Finished()
            case _:
                return None

    def datagrams(self, now: float, largest_bytes: int = SMALL_BYTES) -> list[bytes]:
        self._quic.set_datagram_bytes(largest_bytes)
        if self._quic.get_peer_address() is None:
            return []
        return [datagram for datagram, _ in self._quic.datagrams_to_send(now)]

    def deadline(self) -> float | None:
        return self._quic.get_timer()

    def expire(self, now: float) -> None:
        self._quic.handle_timer(now)

    def open_streams(self, count: int) -> None:
        # The library takes a stream that is opened after a higher one for a finished one.
        for stream in range(count):
            self.write(stream, b"")

    def write(self, stream: int, data: bytes) -> None:
        self._quic.send_stream_data(self._own_stream_id(stream), data)

    def backlog_bytes(self, stream: int) -> int:
        return self._quic.unacknowledged_bytes(self._own_stream_id(stream))

    def _own_stream_id(self, stream: int) -> int:
        # Unidirectional streams: each side has its own, and waits for nobody to open them.
        return stream * 4 + (2 if self._quic.configuration.is_client else 3)

    def ping(self) -> None:
        self._quic.send_ping(0)

    def nudge(self, now: float, *, moved: bool) -> None:
        if moved:
            self._quic.begin_anew()
        self._quic.retry_now(now)

    def close(self, code: int) -> None:
        self._quic.close(error_code=code)
