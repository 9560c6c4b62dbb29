"""A pair of members who have a right to be served, and notice when they are not."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

from helpers.abuse import WITHIN_S
from kafila.network.rendezvous_client import Exchange, RendezvousClient
from kafila.protocol.links import RelaySeat
from kafila.protocol.relay_frames import (
    DELIVERED,
    DELIVERED_OVERHEAD,
    SEATED,
    KeepAliveFrame,
    RelayedFrame,
    encode_to_relay,
)
from kafila.protocol.rendezvous_address import RendezvousAt


class Sitting:
    """One of the honest, in a seat at the relay."""

    def __init__(self, seat: RelaySeat) -> None:
        """Sits down when told."""
        self.seat = seat
        self.sent: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._next = count(1).__next__
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0)

    async def sit_down(self) -> None:
        await self._send(KeepAliveFrame(slot=self.seat.slot, counter=self._next()))
        async with asyncio.timeout(WITHIN_S):
            assert (await self._loop.sock_recv(self.socket, 2048))[0] == SEATED

    async def say(self, to: "Sitting", payload: bytes) -> None:
        """Until it is heard: in a flood the system itself loses datagrams."""
        while True:
            await self._send(
                RelayedFrame(source=self.seat.slot, counter=self._next(), destination=to.seat.slot, payload=payload)
            )
            try:
                async with asyncio.timeout(0.3):
                    while (data := await self._loop.sock_recv(to.socket, 2048))[DELIVERED_OVERHEAD:] != payload:
                        pass
            except TimeoutError:
                continue
            assert data[0] == DELIVERED
            return

    async def _send(self, frame: RelayedFrame | KeepAliveFrame) -> None:
        data = encode_to_relay(frame, self.seat.key)
        self.sent.append(data)
        await self._loop.sock_sendto(self.socket, data, (self.seat.relay.host, self.seat.relay.port))


class Pair:
    """A host and a joiner who have a right to be served."""

    def __init__(self, ends: tuple[Exchange, Exchange], seats: tuple[Sitting, Sitting]) -> None:
        self.seats = seats
        self.rounds = 0
        self._ends = ends

    async def go_on(self) -> None:
        """Say something through the mailbox and through the relay, both ways."""
        self.rounds += 1
        body = b"round %d" % self.rounds
        async with asyncio.timeout(WITHIN_S):
            for one, other in (self._ends, self._ends[::-1]):
                await one.say(body)
                assert await other.hear() == body
            for one, other in (self.seats, self.seats[::-1]):
                await one.say(other, body)


@asynccontextmanager
async def honest(rendezvous: RendezvousAt) -> AsyncGenerator[Pair]:
    async with asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(rendezvous, tasks=tasks)
        guest = await RendezvousClient.connect(rendezvous, tasks=tasks)
        opened = await host.open_session()
        exchange, seat = await guest.call(opened.nameplate)
        seats = Sitting(opened.seat), Sitting(seat)
        for each in seats:
            await each.sit_down()
        try:
            yield Pair((exchange, await anext(host.incoming())), seats)
        finally:
            for each in seats:
                each.socket.close()
            await guest.close()
            await host.close()
