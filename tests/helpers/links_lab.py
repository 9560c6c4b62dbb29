"""Real endpoints on loopback, a real relay that can be tapped and stopped, and a wire to cut."""

import asyncio
import secrets
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from helpers.tls import TRUST
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity
from kafila.network.link import Link
from kafila.protocol.links import Address, Candidates, Channel, LinkEvent, LinkUp, PathChanged, Peer, RelaySeat
from kafila.protocol.probes import WHERE
from kafila.protocol.relay_frames import DELIVERED_OVERHEAD
from kafila.protocol.rendezvous_limits import Limits
from kafila.protocol.rendezvous_relay import RelayMachine, Route

LOOPBACK = "127.0.0.1"
WITHIN_S = 30.0
"""Far longer than anything takes, so that a busy machine fails no test."""


class Relay:
    """The rendezvous's relay on a socket of its own. Keeps a copy of all that it passes on."""

    def __init__(self) -> None:
        self._machine = RelayMachine(Limits())
        self._socket = _udp_socket()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._read)
        self.address = Address(*self._socket.getsockname())
        self.seen: list[bytes] = []
        self.is_deaf = False
        self.hides_where = False
        """Whether it swallows what members tell each other of their addresses."""

    @property
    def dropped(self) -> dict[str, int]:
        """Frames that went nowhere, by reason."""
        return dict(self._machine.dropped)

    def seat(self) -> RelaySeat:
        slot, key = secrets.randbits(64), secrets.token_bytes(32)
        self._machine.seat(slot=slot, session=1, key=key, now=self._loop.time())
        return RelaySeat(relay=self.address, slot=slot, key=key, trust=TRUST)

    def _read(self) -> None:
        data, source = self._socket.recvfrom(2048)
        if self.is_deaf:
            return
        forward = self._machine.receive(data, Route(0, Address(*source), source[0]), self._loop.time())
        if forward is not None and not (self.hides_where and forward.data[DELIVERED_OVERHEAD:][:1] == bytes((WHERE,))):
            self.seen.append(forward.data)
            self._socket.sendto(forward.data, (forward.route.address.host, forward.route.address.port))

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()


class Wire:
    """A way between two addresses that can be cut. Each end sees the other at the wire's own address."""

    def __init__(self, far: Address) -> None:
        self._far = far
        self._near: Address | None = None
        self._loop = asyncio.get_running_loop()
        self._near_side, self._far_side = _udp_socket(), _udp_socket()
        self._loop.add_reader(self._near_side, self._outward)
        self._loop.add_reader(self._far_side, self._inward)
        self.entrance = Address(*self._near_side.getsockname())
        self.is_cut = False
        self.carried = 0
        self.swallowed = 0

    def _outward(self) -> None:
        data, source = self._near_side.recvfrom(2048)
        self._near = Address(*source)
        self._pass_on(self._far_side, data, self._far)

    def _inward(self) -> None:
        data, _ = self._far_side.recvfrom(2048)
        if self._near is not None:
            self._pass_on(self._near_side, data, self._near)

    def _pass_on(self, side: socket.socket, data: bytes, to: Address) -> None:
        if self.is_cut:
            self.swallowed += 1
        else:
            self.carried += 1
            side.sendto(data, (to.host, to.port))

    def close(self) -> None:
        for side in (self._near_side, self._far_side):
            self._loop.remove_reader(side)
            side.close()


class Node:
    """An endpoint, and what it has told."""

    def __init__(self, identity: DeviceIdentity) -> None:
        self.identity = identity
        self.events: list[LinkEvent] = []
        self._changed = asyncio.Event()
        self.endpoint: Endpoint
        self.seat: RelaySeat | None = None

    @property
    def member(self) -> MemberId:
        return self.identity.member

    def hear(self, event: LinkEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def paths(self, peer: "Node") -> list[PathKind]:
        """The paths that the edge has had, each change once."""
        told = [e.path for e in self.events if isinstance(e, PathChanged) and e.peer == peer.member]
        return [path for index, path in enumerate(told) if index == 0 or told[index - 1] != path]

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    async def poll(self, happened: Callable[[], object]) -> None:
        """Wait for something that no event tells of."""
        async with asyncio.timeout(WITHIN_S):
            while not happened():  # noqa: ASYNC110  # nobody tells of it
                await asyncio.sleep(0.005)

    async def told(self, kind: type[LinkEvent], *, since: int = 0) -> LinkEvent:
        await self.until(lambda: any(isinstance(event, kind) for event in self.events[since:]))
        return next(event for event in self.events[since:] if isinstance(event, kind))

    def as_peer(self, key: bytes, *, addresses: tuple[Address, ...] | None = None) -> Peer:
        known = self.endpoint.candidates()
        return Peer(
            member=self.member,
            spki_sha256=self.identity.spki_sha256,
            probe_key=key,
            candidates=Candidates(
                relay_slot=known.relay_slot,
                addresses=known.addresses if addresses is None else addresses,
            ),
        )


class Lab:
    """Nodes and wires that all end with it."""

    def __init__(self) -> None:
        self.relay = Relay()
        self._nodes: list[Node] = []
        self._wires: list[Wire] = []
        self._keys: dict[frozenset[MemberId], bytes] = {}

    async def node(
        self,
        identity: DeviceIdentity | None = None,
        *,
        seat: RelaySeat | None = None,
        seated: bool = True,
        direct: bool = True,
    ) -> Node:
        node = Node(identity or DeviceIdentity.generate())
        node.endpoint = await Endpoint.open(node.identity, Address(LOOPBACK, 0), node.hear, direct=direct)
        self._nodes.append(node)
        if seated:
            node.seat = seat or self.relay.seat()
            assert await node.endpoint.take_seat(node.seat)
        return node

    async def pair(self, *, seated: bool = True, direct: bool = True) -> tuple[Node, Node]:
        """Two nodes; the first one dials."""
        low, high = sorted((DeviceIdentity.generate() for _ in range(2)), key=lambda each: each.member)
        return (
            await self.node(low, seated=seated, direct=direct),
            await self.node(high, seated=seated, direct=direct),
        )

    def wire(self, far: Node) -> Wire:
        wire = Wire(far.endpoint.local)
        self._wires.append(wire)
        return wire

    def key(self, one: Node, other: Node) -> bytes:
        """The probe key of a pair."""
        return self._keys.setdefault(frozenset((one.member, other.member)), secrets.token_bytes(32))

    def introduce(self, *nodes: Node) -> None:
        """Tell every node of every other."""
        for node in nodes:
            node.endpoint.set_peers(
                {other.member: other.as_peer(self.key(node, other)) for other in nodes if other is not node}
            )

    def introduce_through(self, wire: Wire, near: Node, far: Node) -> None:
        """Tell two nodes of each other; the wire is the only direct way."""
        key = self.key(near, far)
        self.relay.hides_where = True
        near.endpoint.set_peers({far.member: far.as_peer(key, addresses=(wire.entrance,))})
        far.endpoint.set_peers({near.member: near.as_peer(key, addresses=())})

    async def close(self) -> None:
        for node in self._nodes:
            await node.endpoint.close()
        for wire in self._wires:
            wire.close()
        self.relay.close()


async def connect(one: Node, other: Node, *, since: int = 0) -> tuple[Link, Link]:
    """Both ends of a link, once it is up. The other's news before `since` are old."""
    for node, peer in ((one, other), (other, one)):
        node.endpoint.open_link(peer.member)
    async with asyncio.timeout(WITHIN_S):
        here = await one.endpoint.connected(other.member)
        await other.told(LinkUp, since=since)
        return here, await other.endpoint.connected(one.member)


async def exchange(here: Link, there: Link) -> None:
    """A word in either direction."""
    async with asyncio.timeout(WITHIN_S):
        await here.send(Channel.DECODE, b"ping")
        assert await there.receive(Channel.DECODE) == b"ping"
        await there.send(Channel.DECODE, b"pong")
        assert await here.receive(Channel.DECODE) == b"pong"


@asynccontextmanager
async def open_lab() -> AsyncGenerator[Lab]:
    lab = Lab()
    try:
        yield lab
    finally:
        await lab.close()


def _udp_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((LOOPBACK, 0))
    made.settimeout(0)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    return made
