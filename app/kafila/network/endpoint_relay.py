"""The endpoint's side of the relay: the seat it holds, and frames to and from it.

Frames are datagrams, and go over UDP. Where the relay does not answer there, a connection over TCP
is tried beside it, and whichever is answered first carries them from then on. One that breaks ends
the seat, and it begins anew with UDP.
"""

import asyncio
import socket
from collections.abc import Callable
from itertools import count

import msgspec

from kafila.domain.errors import PeerError, UserError
from kafila.network.endpoint_seat import Seated, SeatHolder
from kafila.network.endpoint_socket import UdpSocket
from kafila.network.relay_stream import RelayStream
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import DeliveredFrame, SeatedFrame, decode_from_relay

SEAT_ANSWER_WITHIN_S = 3.0
STREAM_AFTER_S = 0.6
"""How long datagrams may go unanswered before a connection is tried beside them."""
STREAM_AGAIN_AFTER_S = 5.0
LOOK_AGAIN_EVERY_S = 0.5


class RelaySide:
    """Sends through the relay while there is a seat, and knows whether there is one."""

    def __init__(
        self, udp: UdpSocket, *, on_change: Callable[[], None], on_delivered: Callable[[DeliveredFrame], None]
    ) -> None:
        """`on_change` is called when the seat is there, or is no longer, or is seen at another address.

        `on_delivered` is called for what comes over a connection; what comes over UDP is handed in.
        """
        self._udp = udp
        self._on_change = on_change
        self._on_delivered = on_delivered
        self._loop = asyncio.get_running_loop()
        self._holder: SeatHolder | None = None
        self._stream: RelayStream | None = None
        self._stream_due_at = 0.0
        self._look_again_at = 0.0
        self._answered = asyncio.Event()
        # One count for all seats in turn: a relay passes over numbers that it has seen.
        self._count = count(1).__next__

    @property
    def seated(self) -> Seated | None:
        """The seat, while the relay answers."""
        if self._holder is not None and isinstance(self._holder.state, Seated):
            return self._holder.state
        return None

    @property
    def observed(self) -> Address | None:
        """Where the relay sees this socket, if it does."""
        return None if self.seated is None or self._is_streaming() else self.seated.observed

    @property
    def slot(self) -> int | None:
        """The slot of the seat, while the relay answers."""
        return self._holder.seat.slot if self._holder is not None and self.seated else None

    async def take(self, seat: RelaySeat) -> bool:
        """Hold this seat from now on; whether the relay answered soon. Raises UserError."""
        relay = await self._resolve(seat.relay)
        self.forget()
        self._hold(msgspec.structs.replace(seat, relay=relay))
        self._on_change()
        try:
            async with asyncio.timeout(SEAT_ANSWER_WITHIN_S):
                await self._answered.wait()
        except TimeoutError:
            return False
        return True

    def forget(self) -> None:
        """Hold no seat."""
        self._holder = None
        if self._stream is not None:
            self._stream.abandon()
            self._stream = None
        self._note_change()

    async def close(self) -> None:
        """Hold no seat, once what was sent is on its way."""
        stream, self._stream = self._stream, None
        self._holder = None
        if stream is not None:
            await stream.close()

    def look_again(self, now: float) -> None:
        """Find out whether the relay still sees this socket at the same address."""
        if self._holder is not None and self.seated is not None and now >= self._look_again_at:
            self._look_again_at = now + LOOK_AGAIN_EVERY_S
            self._transmit(self._holder.ask(now), self._holder.seat.relay)

    def send(self, datagram: bytes, slot: int) -> None:
        """Send a datagram to another seat, if there is a relay."""
        if self._holder is not None:
            self._transmit(self._holder.relayed(slot, datagram), self._holder.seat.relay)

    def receive(self, datagram: bytes, source: Address, now: float) -> DeliveredFrame | None:
        """A frame that says it comes from the relay; what it delivers, if it does."""
        if self._holder is None or source != self._holder.seat.relay:
            return None
        return self._take_in(datagram, now)

    def tick(self, now: float) -> None:
        """Keep the seat, if that is due."""
        if self._holder is None:
            return
        was = self.seated is not None
        if (frame := self._holder.tick(now)) is not None:
            self._transmit(frame, self._holder.seat.relay)
        if was and self.seated is None:
            self._stream_due_at = now + STREAM_AFTER_S
            self._note_change()
        if self._needs_stream() and now >= self._stream_due_at:
            self._connect(self._holder.seat)

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        if self._holder is None:
            return None
        due = self._holder.next_tick()
        return min(due, self._stream_due_at) if self._needs_stream() else due

    # The connection beside UDP

    def _needs_stream(self) -> bool:
        return self._holder is not None and self.seated is None and self._stream is None

    def _is_streaming(self) -> bool:
        return self._stream is not None and self._stream.is_open

    def _connect(self, seat: RelaySeat) -> None:
        self._stream = RelayStream(
            seat, on_open=self._stream_opened, on_frame=self._stream_brought, on_lost=self._stream_lost
        )

    def _stream_opened(self) -> None:
        """Take the seat here, unless datagrams were answered meanwhile."""
        if self._holder is None or self._stream is None:
            return
        if self.seated is None:
            self._transmit(self._holder.ask(self._loop.time()), self._holder.seat.relay)
        else:
            self._stream.abandon()
            self._stream = None

    def _stream_brought(self, frame: bytes) -> None:
        delivered = self._take_in(frame, self._loop.time()) if self._holder is not None else None
        if delivered is not None:
            self._on_delivered(delivered)

    def _stream_lost(self) -> None:
        was_seated = self.seated is not None
        self._stream = None
        if self._holder is None:
            return
        now = self._loop.time()
        self._stream_due_at = now + (STREAM_AFTER_S if was_seated else STREAM_AGAIN_AFTER_S)
        if was_seated:
            self._hold(self._holder.seat)
        self._note_change()

    # What both ways share

    def _hold(self, seat: RelaySeat) -> None:
        now = self._loop.time()
        self._holder = SeatHolder(seat, count=self._count, now=now)
        self._stream_due_at = now + STREAM_AFTER_S

    def _transmit(self, frame: bytes, relay: Address) -> None:
        if self._stream is not None and self._stream.is_open:
            self._stream.send(frame)
        else:
            self._udp.send(frame, relay)

    def _take_in(self, datagram: bytes, now: float) -> DeliveredFrame | None:
        try:
            frame = decode_from_relay(datagram)
        except PeerError:
            return None
        match frame:
            case DeliveredFrame():
                return frame
            case SeatedFrame():
                was = self.observed
                if self._holder is not None:
                    self._holder.heard(frame, now)
                if self.seated is not None and (self.observed != was or not self._answered.is_set()):
                    self._note_change()
                return None

    def _note_change(self) -> None:
        if self.seated is None:
            self._answered.clear()
        else:
            self._answered.set()
        self._on_change()

    async def _resolve(self, address: Address) -> Address:
        family = socket.AF_UNSPEC if self._udp.takes_ipv6 else socket.AF_INET
        try:
            found = await self._loop.getaddrinfo(address.host, address.port, family=family, type=socket.SOCK_DGRAM)
        except OSError as error:
            raise UserError(
                title=f"{address.host} was not found",
                advice="Check the rendezvous's address, and that this computer is online.",
            ) from error
        host, port, *_ = found[0][4]
        return Address(str(host), int(port))
