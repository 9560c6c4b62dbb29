"""The endpoint's side of the relay: the seat it holds, and frames to and from it."""

import asyncio
import socket
from collections.abc import Callable
from itertools import count

from kafila.domain.errors import PeerError, UserError
from kafila.network.endpoint_seat import Seated, SeatHolder
from kafila.network.endpoint_socket import UdpSocket
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import DeliveredFrame, SeatedFrame, decode_from_relay

SEAT_ANSWER_WITHIN_S = 3.0


class RelaySide:
    """Sends through the relay while there is a seat, and knows whether there is one."""

    def __init__(self, udp: UdpSocket, on_change: Callable[[], None]) -> None:
        """`on_change` is called when the seat is there, or is no longer."""
        self._udp = udp
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._holder: SeatHolder | None = None
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
    def slot(self) -> int | None:
        """The slot of the seat, while the relay answers."""
        return self._holder.seat.slot if self._holder is not None and self.seated else None

    async def take(self, seat: RelaySeat) -> bool:
        """Hold this seat from now on; whether the relay answered soon. Raises UserError."""
        relay = await self._resolve(seat.relay)
        self.forget()
        seat = RelaySeat(relay=relay, slot=seat.slot, key=seat.key)
        self._holder = SeatHolder(seat, count=self._count, now=self._loop.time())
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
        self._note_change()

    def send(self, datagram: bytes, slot: int) -> None:
        """Send a datagram to another seat, if there is a relay."""
        if self._holder is not None:
            self._udp.send(self._holder.relayed(slot, datagram), self._holder.seat.relay)

    def receive(self, datagram: bytes, source: Address, now: float) -> DeliveredFrame | None:
        """A frame that says it comes from the relay; what it delivers, if it does."""
        if self._holder is None or source != self._holder.seat.relay:
            return None
        try:
            frame = decode_from_relay(datagram)
        except PeerError:
            return None
        match frame:
            case DeliveredFrame():
                return frame
            case SeatedFrame():
                was = self.seated is not None
                self._holder.heard(frame, now)
                if not was and self.seated is not None:
                    self._note_change()
                return None

    def tick(self, now: float) -> None:
        """Keep the seat, if that is due."""
        if self._holder is None:
            return
        was = self.seated is not None
        if (frame := self._holder.tick(now)) is not None:
            self._udp.send(frame, self._holder.seat.relay)
        if was and self.seated is None:
            self._note_change()

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        return None if self._holder is None else self._holder.next_tick()

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
