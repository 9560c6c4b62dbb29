"""Members behind routers: real endpoints with seats that a real rendezvous gave them."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager

from helpers.tls import known
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity
from kafila.network.link import Link
from kafila.network.rendezvous_client import RendezvousClient
from kafila.protocol.links import Address, Candidates, Channel, LinkEvent, Peer, RelaySeat
from nat.meeting import PORT
from natlab.lab import MIDDLE, Lab
from natlab.namespaces import Computer

WITHIN_S = 20.0
"""Far longer than anything takes, so that a busy machine fails no test."""


class Member:
    """An endpoint on a computer of a lab, whose loop does everything."""

    def __init__(
        self, computer: Computer, identity: DeviceIdentity, endpoint: Endpoint, events: list[LinkEvent]
    ) -> None:
        self.computer = computer
        self.identity = identity
        self.endpoint = endpoint
        self.events = events
        self.peers: dict[MemberId, Peer] = {}

    @property
    def id(self) -> MemberId:
        return self.identity.member

    async def candidates(self) -> Candidates:
        return await self.computer.ask(self.endpoint.candidates)

    async def meet(self) -> None:
        """Take notice of the peers, and connect with them."""

        def meet() -> None:
            self.endpoint.set_peers(self.peers)
            for peer in self.peers:
                self.endpoint.open_link(peer)

        await self.computer.ask(meet)

    async def linked(self, other: "Member") -> None:
        """Wait until there is a link."""

        async def linked() -> None:
            async with asyncio.timeout(WITHIN_S):
                await self.endpoint.connected(other.id)

        await self.computer.do(linked())

    async def time_linking(self, other: "Member") -> float:
        """How long it takes from now until there is a link."""

        async def time() -> float:
            begin = self.computer.loop.time()
            async with asyncio.timeout(WITHIN_S):
                await self.endpoint.connected(other.id)
            return self.computer.loop.time() - begin

        return await self.computer.do(time())

    def path_to(self, other: "Member") -> PathKind | None:
        """How the link with a peer travels; None where there is none."""
        link = self.endpoint.link(other.id)
        return None if link is None else link.path

    async def say(self, other: "Member", message: bytes) -> None:
        await self.computer.do(self._link(other).send(Channel.DECODE, message))

    async def hear(self, other: "Member", *, within_s: float = WITHIN_S) -> bytes:
        async def hear() -> bytes:
            async with asyncio.timeout(within_s):
                return await self._link(other).receive(Channel.DECODE)

        return await self.computer.do(hear())

    def _link(self, other: "Member") -> Link:
        link = self.endpoint.link(other.id)
        assert link is not None
        return link


class Group:
    """Members of one session, whose seats are at the rendezvous in the middle."""

    def __init__(self, lab: Lab, rendezvous: Address) -> None:
        """Use `open_group`."""
        self._lab = lab
        self._rendezvous = rendezvous
        self._nameplate: int | None = None
        self._keys: dict[frozenset[MemberId], bytes] = {}
        self._members: list[Member] = []
        self._lines: list[tuple[Computer, asyncio.Event, Future[None]]] = []

    async def join(self, *names: str) -> list[Member]:
        """One member on each computer; earlier ones dial later ones."""
        identities = sorted((DeviceIdentity.generate() for _ in names), key=lambda each: each.member)
        joined: dict[str, Member] = {}

        async def join(name: str, identity: DeviceIdentity) -> None:
            joined[name] = await self._join(name, identity)
            self._members.append(joined[name])

        (first, *others) = zip(names, identities, strict=True)
        await join(*first)
        async with asyncio.TaskGroup() as tasks:
            for name, identity in others:
                tasks.create_task(join(name, identity))
        return [joined[name] for name in names]

    async def introduce(self, *pairs: tuple[Member, Member], later_s: float = 0.0) -> None:
        """Tell both of each pair of the other, the second so much later, and have them connect."""
        everyone = {member.id: member for pair in pairs for member in pair}
        known = {member.id: await member.candidates() for member in everyone.values()}
        for one, other in pairs:
            key = self._keys.setdefault(frozenset((one.id, other.id)), secrets.token_bytes(32))
            for member, peer in ((one, other), (other, one)):
                member.peers[peer.id] = Peer(
                    member=peer.id,
                    spki_sha256=peer.identity.spki_sha256,
                    probe_key=key,
                    candidates=known[peer.id],
                )
        seconds = {other.id for _, other in pairs}

        async def meet(member: Member) -> None:
            await asyncio.sleep(later_s if member.id in seconds else 0.0)
            await member.meet()

        async with asyncio.TaskGroup() as tasks:
            for member in everyone.values():
                tasks.create_task(meet(member))

    async def close(self) -> None:
        for member in self._members:
            await member.computer.do(member.endpoint.close())
        for computer, over, staying in self._lines:
            computer.loop.call_soon_threadsafe(over.set)
            await asyncio.wrap_future(staying)

    async def _join(self, name: str, identity: DeviceIdentity) -> Member:
        computer = self._lab[name]
        seat = await self._sit(computer)
        heard: list[LinkEvent] = []
        endpoint = await computer.do(Endpoint.open(identity, None, heard.append))
        await computer.do(endpoint.take_seat(seat))
        return Member(computer, identity, endpoint, heard)

    async def _sit(self, computer: Computer) -> RelaySeat:
        """A seat at the rendezvous, on a line that stays until the group is closed."""
        given: Future[RelaySeat] = Future()
        over = asyncio.Event()

        async def stay() -> None:
            async with asyncio.TaskGroup() as tasks:
                line = await RendezvousClient.connect(known(self._rendezvous), tasks=tasks)
                given.set_result(await self._take_seat(line))
                await over.wait()
                await line.close()

        staying = computer.begin(stay())
        self._lines.append((computer, over, staying))
        async with asyncio.timeout(WITHIN_S):
            return await asyncio.wrap_future(given)

    async def _take_seat(self, line: RendezvousClient) -> RelaySeat:
        if self._nameplate is None:
            opened = await line.open_session()
            self._nameplate = opened.nameplate
            return opened.seat
        exchange, seat = await line.call(self._nameplate)
        exchange.hang_up()
        return seat


@asynccontextmanager
async def open_group(lab: Lab, host: str = MIDDLE[0]) -> AsyncGenerator[Group]:
    """A session at the rendezvous in the middle."""
    group = Group(lab, Address(host, PORT))
    try:
        yield group
    finally:
        await group.close()


async def until_paths(expected: Mapping[tuple[Member, Member], PathKind | None]) -> None:
    """Wait until both of every pair use this path."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while differing(expected):  # noqa: ASYNC110  # nobody tells of it across loops
                await asyncio.sleep(0.05)
    except TimeoutError:
        return


def differing(expected: Mapping[tuple[Member, Member], PathKind | None]) -> dict[str, str]:
    """The pairs that use another path, and which."""
    return {
        f"{one.computer.name} and {other.computer.name}": f"{one.path_to(other)}, {other.path_to(one)} not {path}"
        for (one, other), path in expected.items()
        if {one.path_to(other), other.path_to(one)} != {path}
    }
