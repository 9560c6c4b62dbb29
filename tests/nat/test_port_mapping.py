"""A router that opens a port when it is asked: by PCP, by NAT-PMP, by UPnP, not at all, or to no avail."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from kafila.domain.snapshot import NoPort
from kafila.network.port_mapping import PortLease
from kafila.protocol.links import Address
from nat.meeting import PATIENCE, PORT
from natlab.lab import Lab, Router, SiteSpec, open_lab
from natlab.namespaces import Computer
from natlab.port_mapper import Gateway, PortMapper, gateway_device, port_mapping
from natlab.rules import Nat

HOME = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)
ELSEWHERE = SiteSpec(name="elsewhere", nat=Nat.SYMMETRIC)
DOUBLE = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED, behind=(Nat.PORT_RESTRICTED,))
SEARCH_WITHIN_S = 1.0

WAYS: dict[str, Callable[[Router], AbstractAsyncContextManager[PortMapper | Gateway]]] = {
    "pcp": port_mapping,
    "nat-pmp": lambda router: port_mapping(router, only_older=True),
    "upnp": gateway_device,
}


@asynccontextmanager
async def _listening(computer: Computer) -> AsyncGenerator[None]:
    server = await computer.do(asyncio.start_server(lambda _, writer: writer.close(), "192.168.1.10", PORT))
    try:
        yield
    finally:
        await computer.ask(server.close)
        await computer.do(server.wait_closed())


async def _is_reached(lab: Lab, address: Address) -> bool:
    """Whether somebody listens there, seen from another home."""

    async def connect() -> bool:
        try:
            async with asyncio.timeout(1.5):
                _, writer = await asyncio.open_connection(address.host, address.port)
        except (TimeoutError, OSError):
            return False
        writer.close()
        await writer.wait_closed()
        return True

    return await lab["elsewhere"].do(connect())


async def _ask(lab: Lab) -> PortLease | NoPort:
    return await lab["home"].do(PortLease.ask(PORT))


@pytest.mark.parametrize("way", WAYS)
async def test_a_computer_at_home_is_reached_from_outside_as_long_as_the_lease_is_held(way: str) -> None:
    async with (
        open_lab(HOME, ELSEWHERE) as lab,
        WAYS[way](lab.routers("home")[0]) as router,
        _listening(lab["home"]),
    ):
        outside = Address(lab.outside("home"), PORT)
        assert not await _is_reached(lab, outside)
        lease = await _ask(lab)
        assert isinstance(lease, PortLease)
        assert (lease.outside, lease.how) == (outside, way)
        assert set(router.ports.leases_s) == {600}
        assert await _is_reached(lab, outside)
        await lab["home"].do(lease.close())
        assert router.open == {}
        assert not await _is_reached(lab, outside)


async def test_a_lease_by_upnp_is_renewed_and_its_loss_is_told() -> None:
    async with open_lab(HOME) as lab, gateway_device(lab.routers("home")[0]) as router:
        lease = await lab["home"].do(PortLease.ask(PORT, lease_s=1))
        assert isinstance(lease, PortLease)
        lost = lab["home"].begin(lease.lost())
        async with asyncio.timeout(60):
            while len(router.ports.leases_s) < 4:  # noqa: ASYNC110 - the router has no event for it
                await asyncio.sleep(0.1)
            assert not lost.done()
            router.fault = 501
            await asyncio.wrap_future(lost)
        await lab["home"].do(lease.close())
        assert router.open == {}


async def test_a_router_that_will_not_or_is_not_asked_that_way_grants_nothing() -> None:
    async with open_lab(HOME) as lab:
        begin = time.monotonic()
        assert await _ask(lab) is NoPort.REFUSED
        # Both ways at once, each bounded.
        assert time.monotonic() - begin < PATIENCE * SEARCH_WITHIN_S
        async with port_mapping(lab.routers("home")[0], refuses=True) as mapper:
            assert await _ask(lab) is NoPort.REFUSED
            assert mapper.open == {}


async def test_an_internet_gateway_that_will_not_grants_nothing() -> None:
    async with open_lab(HOME) as lab, gateway_device(lab.routers("home")[0]) as gateway:
        gateway.fault = 725  # only for ever: nobody would take that back after a crash
        assert await _ask(lab) is NoPort.REFUSED
        gateway.fault = None
        gateway.ports.add("tcp", PORT, "192.168.1.77", PORT, 600)
        lease = await _ask(lab)
        # The number was somebody else's, who keeps it; UDP was given back with it.
        assert isinstance(lease, PortLease)
        assert lease.outside.port != PORT
        kept = {("tcp", PORT): "192.168.1.77"}
        ours = {(protocol, lease.outside.port): "192.168.1.10" for protocol in ("udp", "tcp")}
        assert gateway.open == kept | ours
        await lab["home"].do(lease.close())
        assert gateway.open == kept


@pytest.mark.parametrize("way", WAYS)
async def test_a_port_of_a_router_behind_another_router_is_given_back(way: str) -> None:
    async with open_lab(DOUBLE) as lab, WAYS[way](lab.routers("home")[0]) as router:
        assert await _ask(lab) is NoPort.BEHIND_ANOTHER
        assert router.open == {}


async def test_only_the_gateway_itself_is_believed_and_only_so_much_of_it() -> None:
    home = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED, computers=2)
    async with open_lab(home) as lab:
        router = lab.routers("home")[0]
        async with gateway_device(router, impostor=lab["home2"]) as impostor:
            assert await _ask(lab) is NoPort.REFUSED
            assert impostor.searches > 0
            assert impostor.asked == []
        async with gateway_device(router) as gateway:
            await _is_bounded(lab, gateway)


async def _is_bounded(lab: Lab, gateway: Gateway) -> None:
    good = gateway.location
    for location in ("http://192.168.1.11:5000/igd.xml", good.replace("http", "https"), "http://[", "nonsense"):
        gateway.location = location
        assert await _ask(lab) is NoPort.REFUSED
        assert gateway.searches > 0
        assert gateway.asked == []
    gateway.location = good
    gateway.control = "http://192.168.1.11:5000/control"
    assert await _ask(lab) is NoPort.REFUSED
    gateway.control = "/control"
    gateway.padding = f"<serialNumber>{'1' * (1 << 20)}</serialNumber>"
    assert await _ask(lab) is NoPort.REFUSED
    gateway.padding = "<unclosed>"
    assert await _ask(lab) is NoPort.REFUSED
    assert gateway.asked == []
    gateway.padding = ""
    lease = await _ask(lab)
    assert isinstance(lease, PortLease)
    await lab["home"].do(lease.close())


async def test_a_question_that_is_called_off_leaves_nothing_open() -> None:
    async with open_lab(HOME) as lab, gateway_device(lab.routers("home")[0]) as gateway:

        async def call_off() -> None:
            asking = asyncio.ensure_future(PortLease.ask(PORT))  # noqa: TID251 - cancelled right here
            while not gateway.open:  # noqa: ASYNC110 - the router has no event for it
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait((asking,))

        async with asyncio.timeout(60):
            await lab["home"].do(call_off())
        assert gateway.open == {}
