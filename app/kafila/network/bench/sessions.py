"""A load for one rendezvous: many sessions whose members sign on, greet one another, and then rest.

Every member is a real client with a connection of its own, and holds a seat at the relay.
"""

import asyncio
import ipaddress
import socket
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count

import msgspec

from kafila.domain.errors import PeerError, UserError
from kafila.network.endpoint_seat import Seated, SeatHolder
from kafila.network.rendezvous_advice import silent
from kafila.network.rendezvous_client import Exchange, RendezvousClient
from kafila.network.rendezvous_tls import expect_many_connections
from kafila.protocol.links import RelaySeat
from kafila.protocol.relay_frames import SeatedFrame, decode_from_relay
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_limits import Limits
from kafila.protocol.rendezvous_session import SignallingEvent, SignallingLost

SPARE_FILES = 64
HELLO = bytes(400)
"""As long as what a joiner says first."""

_AT_ONCE = 16
"""Sessions that sign on side by side: a group's members come together, all groups do not."""
_FIRST_SOURCE = ipaddress.IPv4Address("127.1.0.1")
_SEATED_WITHIN_S = 15.0
_LOOK_EVERY_S = 0.1


class SignedOn(msgspec.Struct, frozen=True, kw_only=True):
    """How long the sessions took to get there, in the order in which they did."""

    sessions: int
    members: int
    addresses: int
    all_s: float
    """From the first connection until the last member had greeted its host and had its seat."""
    session_s: Sequence[float]
    """Each session, from its host's connection on."""
    hello_s: Sequence[float]
    """Each joiner's hello to its host and the answer, through the mailbox."""


def sources_for(sessions: int, members: int, limits: Limits) -> list[str | None]:
    """From which address each session comes, so that none has more than its share. Raises UserError."""
    each = int(
        min(
            limits.connections_per_source // members,
            limits.connects.burst // members,
            limits.opens.burst,
            limits.calls.burst // (members - 1),
        )
    )
    if each < 1 or members - 1 > limits.exchanges_per_session_and_source:
        raise UserError(
            title=f"A session of {members} is more than one address may have",
            advice="Measure smaller sessions.",
        )
    if sessions <= each:
        return [None] * sessions
    if not has_many_addresses():
        raise UserError(
            title="This system has one address to speak to itself from, and the rendezvous bounds what one may do",
            advice=f"Measure at most {each} sessions of {members} here, or more on Linux.",
        )
    return [str(_FIRST_SOURCE + number // each) for number in range(sessions)]


def has_many_addresses() -> bool:
    """Whether this system lets programs speak to it from addresses that look like other computers'."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(_FIRST_SOURCE), 0))
        except OSError:
            return False
        return True


@asynccontextmanager
async def many_sessions(rendezvous: RendezvousAt, *, sessions: int, members: int) -> AsyncGenerator["Crowd"]:
    """Sign on so many sessions of so many members, and keep them until the end. Raises UserError."""
    sources = sources_for(sessions, members, Limits())
    expect_many_connections()
    async with asyncio.TaskGroup() as tasks:
        crowd = Crowd(rendezvous, tasks)
        keeping = tasks.create_task(crowd.seats.keep())
        try:
            await crowd.sign_on(sources, members)
            yield crowd
        finally:
            keeping.cancel()
            crowd.seats.close()
            await crowd.leave()


class Crowd:
    """All clients of the load."""

    def __init__(self, rendezvous: RendezvousAt, tasks: asyncio.TaskGroup) -> None:
        """Use `many_sessions`."""
        self.signed_on: SignedOn
        """Once all have."""
        self.broken = 0
        """Connections that broke; each is made again."""
        self.seats = _Seats()
        self._rendezvous = rendezvous
        self._tasks = tasks
        self._clients: list[RendezvousClient] = []
        self._session_s: list[float] = []
        self._hello_s: list[float] = []

    async def sign_on(self, sources: Sequence[str | None], members: int) -> None:
        """All sessions, a bounded number at a time."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def in_turn(source: str | None) -> None:
            async with turns:
                await self._session(source, members)

        began = time.perf_counter()
        async with asyncio.TaskGroup() as signing:
            for source in sources:
                signing.create_task(in_turn(source))
        self.signed_on = SignedOn(
            sessions=len(sources),
            members=members,
            addresses=len(set(sources)),
            all_s=time.perf_counter() - began,
            session_s=self._session_s,
            hello_s=self._hello_s,
        )

    async def leave(self) -> None:
        """All say goodbye."""
        async with asyncio.TaskGroup() as leaving:
            for client in self._clients:
                leaving.create_task(client.close())

    async def _session(self, source: str | None, members: int) -> None:
        began = time.perf_counter()
        host = await self._client(source)
        opened = await host.open_session()
        async with asyncio.TaskGroup() as joining:
            joining.create_task(_answer_all(host, members - 1))
            joining.create_task(self.seats.take(opened.seat))
            for _ in range(members - 1):
                joining.create_task(self._joiner(source, opened.nameplate))
        self._session_s.append(time.perf_counter() - began)

    async def _joiner(self, source: str | None, nameplate: int) -> None:
        client = await self._client(source)
        exchange, seat = await client.call(nameplate)
        began = time.perf_counter()
        await exchange.say(HELLO)
        await exchange.hear()
        self._hello_s.append(time.perf_counter() - began)
        exchange.hang_up()
        await self.seats.take(seat)

    async def _client(self, source: str | None) -> RendezvousClient:
        client = await RendezvousClient.connect(self._rendezvous, tasks=self._tasks, on_event=self._note, source=source)
        self._clients.append(client)
        return client

    def _note(self, event: SignallingEvent) -> None:
        self.broken += isinstance(event, SignallingLost)


async def _answer_all(host: RendezvousClient, joiners: int) -> None:
    async with asyncio.TaskGroup() as answering:
        calls = host.incoming()
        for _ in range(joiners):
            answering.create_task(_answer(await anext(calls)))


async def _answer(exchange: Exchange) -> None:
    await exchange.say(await exchange.hear())


class _Seats:
    """The seats of all members, held on one socket."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)  # noqa: FBT003
        self._socket.bind(("127.0.0.1", 0))
        self._loop.add_reader(self._socket, self._read)
        self._holders: dict[int, SeatHolder] = {}
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._count = count(1).__next__

    async def take(self, seat: RelaySeat) -> None:
        """Hold this seat from now on. Raises UserError where the relay does not give it."""
        now = self._loop.time()
        holder = self._holders[seat.slot] = SeatHolder(seat, count=self._count, now=now)
        self._waiting[seat.slot] = taken = self._loop.create_future()
        self._ask(holder, now)
        try:
            async with asyncio.timeout(_SEATED_WITHIN_S):
                await taken
        except TimeoutError as error:
            raise silent(seat.relay) from error

    async def keep(self) -> None:
        """Show the relay that all are there, whenever that is due."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now = self._loop.time()
            for holder in self._holders.values():
                if holder.next_tick() <= now:
                    self._ask(holder, now)

    def close(self) -> None:
        """Hold no seat any more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _ask(self, holder: SeatHolder, now: float) -> None:
        if (frame := holder.tick(now)) is not None:
            relay = holder.seat.relay
            self._socket.sendto(frame, (relay.host, relay.port))

    def _read(self) -> None:
        for _ in range(64):
            try:
                frame = decode_from_relay(self._socket.recv(2048))
            except BlockingIOError:
                return
            except (OSError, PeerError):
                continue
            if isinstance(frame, SeatedFrame) and (holder := self._holders.get(frame.slot)) is not None:
                holder.heard(frame, self._loop.time())
                taken = self._waiting.get(frame.slot)
                if taken is not None and not taken.done() and isinstance(holder.state, Seated):
                    taken.set_result(None)
