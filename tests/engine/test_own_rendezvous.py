"""From how far away the host's own rendezvous is reached: never taken for granted, and told as it is shown."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kafila.domain.snapshot import NoPort, Reach
from kafila.engine.own_rendezvous import OwnRendezvous
from kafila.engine.ports import Announcement, Line, OpenPort, Rendezvous
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import SignallingEvent
from kafila.protocol.trust import Pinned
from kafila.protocol.words import WordList

AT_HOME, ELSEWHERE, WITNESS = "192.168.1.30", "198.51.100.99", RendezvousAt(Address("203.0.113.1", 47470))
LAN, IPV6 = Address("192.168.1.10", 47470), Address("2001:db8:1::10", 47470)
OUTSIDE = Address("198.51.100.7", 47470)
FINGERPRINT = bytes(range(32))
WITHIN_S = 20.0


@dataclass
class Server:
    """A rendezvous as the engine sees it."""

    addresses: tuple[Address, ...] = (Address("0.0.0.0", 47470),)  # noqa: S104
    fingerprint: bytes = FINGERPRINT
    closed: bool = False
    came: Callable[[str], None] = print

    def watch(self, came: Callable[[str], None]) -> None:
        self.came = came

    async def close(self) -> None:
        self.closed = True


@dataclass
class Port:
    """A port that a router keeps open, until it does not."""

    outside: Address = OUTSIDE
    closed: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def lost(self) -> None:
        await self.gone.wait()

    async def close(self) -> None:
        self.closed += 1


@dataclass
class House:
    """This computer's doors, as far as its own rendezvous knows them."""

    router: Port | NoPort = NoPort.REFUSED
    lan: tuple[Address, ...] = (LAN,)
    through: bool | None = None
    words: WordList = field(init=False)
    server: Server = field(default_factory=Server)
    tried: list[Address] = field(default_factory=list[Address])

    async def serve(self, listen: Address | None, *, loopback_only: bool) -> Rendezvous:
        del listen, loopback_only
        return self.server

    async def line(
        self, at: RendezvousAt, *, tasks: asyncio.TaskGroup, on_event: Callable[[SignallingEvent], None]
    ) -> Line:
        raise AssertionError((at, tasks, on_event))

    async def find(self, nameplate: int) -> tuple[RendezvousAt, ...]:
        raise AssertionError(nameplate)

    async def announce(self, nameplate: int, port: int, fingerprint: bytes) -> Announcement:
        raise AssertionError((nameplate, port, fingerprint))

    def lan_addresses(self, port: int) -> tuple[Address, ...]:
        del port
        return self.lan

    def is_outside(self, host: str) -> bool:
        return host not in {AT_HOME, "127.0.0.1"}

    async def is_reached(self, here: Address, witness: RendezvousAt) -> bool | None:
        assert witness == WITNESS
        self.tried.append(here)
        return self.through

    async def open_port(self, port: int) -> OpenPort | NoPort:
        del port
        return self.router


@asynccontextmanager
async def opened(house: House, *, open_port: bool = True) -> AsyncGenerator[tuple[OwnRendezvous, list[Reach]]]:
    """The rendezvous, and what its reach has changed to."""
    reaches: list[Reach] = []
    own = OwnRendezvous(house, announced=True, changed=lambda: reaches.append(own.reach))
    async with asyncio.TaskGroup() as tasks:
        assert await own.open(None, open_port=open_port, tasks=tasks) == RendezvousAt(
            Address("127.0.0.1", 47470), Pinned(FINGERPRINT)
        )
        yield own, reaches
        await own.close()
        assert house.server.closed


async def test_without_a_way_in_only_this_network_is_spoken_of() -> None:
    async with opened(House(lan=(LAN, IPV6)), open_port=False) as (own, _):
        assert (own.reach, own.no_port) == (Reach.SAME_NETWORK, None)
        assert own.reachable == (LAN, IPV6)


@pytest.mark.parametrize("refusal", [NoPort.NO_ROUTER, NoPort.REFUSED, NoPort.BEHIND_ANOTHER])
async def test_a_router_that_opens_nothing_is_told_of_with_the_reason(refusal: NoPort) -> None:
    async with opened(House(router=refusal)) as (own, _):
        assert (own.reach, own.no_port) == (Reach.NEEDS_RENDEZVOUS, refusal)


async def test_an_opened_port_probably_leads_here_until_somebody_came_in_by_it() -> None:
    house = House(router=Port())
    async with opened(house) as (own, reaches):
        assert own.reach is Reach.PROBABLY_ANYWHERE
        assert own.reachable == (LAN, OUTSIDE)
        # People at home prove nothing, nor does the router's own address, by which some routers let them in.
        for host in ("127.0.0.1", AT_HOME, OUTSIDE.host):
            house.server.came(host)
        assert reaches == []
        house.server.came(ELSEWHERE)
        house.server.came(ELSEWHERE)
        assert reaches == [Reach.ANYWHERE]
    assert isinstance(house.router, Port)
    assert house.router.closed == 1


async def test_a_public_address_probably_leads_here_and_one_of_ipv6_has_to_be_shown() -> None:
    async with opened(House(lan=(OUTSIDE,)), open_port=False) as (own, _):
        assert own.reach is Reach.PROBABLY_ANYWHERE
    house = House(lan=(LAN, IPV6))
    async with opened(house) as (own, reaches):
        assert own.reach is Reach.NEEDS_RENDEZVOUS
        house.server.came("2001:db8:2::1")
        assert reaches == [Reach.ANYWHERE]
        assert own.no_port is None


@pytest.mark.parametrize(
    ("through", "serves", "reach", "no_port"),
    [
        (True, True, Reach.ANYWHERE, None),
        (False, False, Reach.PROBABLY_ANYWHERE, NoPort.NOT_REACHED),
        (None, True, Reach.PROBABLY_ANYWHERE, None),
    ],
)
async def test_a_witness_decides_whether_this_rendezvous_will_do(
    through: bool | None,  # noqa: FBT001
    serves: bool,  # noqa: FBT001
    reach: Reach,
    no_port: NoPort | None,
) -> None:
    house = House(router=Port(), through=through)
    async with opened(house) as (own, _):
        assert await own.prove(WITNESS) is serves
        assert house.tried == [OUTSIDE]
        assert (own.reach, own.no_port) == (reach, no_port)


async def test_a_computer_on_no_network_asks_no_router() -> None:
    async with opened(House(router=Port(), lan=(Address("127.0.0.1", 47470),))) as (own, _):
        assert (own.reach, own.no_port) == (Reach.THIS_COMPUTER, NoPort.NO_ROUTER)


async def test_a_witness_is_not_asked_where_there_is_no_way_in() -> None:
    house = House()
    async with opened(house) as (own, _):
        assert not await own.prove(WITNESS)
        assert (house.tried, own.no_port) == ([], NoPort.REFUSED)


async def test_a_port_that_the_router_closes_leads_here_no_longer() -> None:
    port = Port()
    async with opened(House(router=port)) as (own, reaches):
        port.gone.set()
        async with asyncio.timeout(WITHIN_S):
            while not reaches:  # noqa: ASYNC110 - it has no event for it
                await asyncio.sleep(0)
        assert reaches == [Reach.NEEDS_RENDEZVOUS]
        assert own.reachable == (LAN,)
        assert port.closed == 1
