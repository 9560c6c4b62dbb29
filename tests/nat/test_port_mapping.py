"""A router that opens a port when it is asked: by PCP, by NAT-PMP, not at all, or to no avail."""

import asyncio

import aiohttp
import pytest

from kafila.network.port_mapping import PortLease
from kafila.protocol.links import Address
from nat.meeting import PORT, serving
from natlab.lab import Lab, SiteSpec, open_lab
from natlab.port_mapper import port_mapping
from natlab.rules import Nat

HOME = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)
ELSEWHERE = SiteSpec(name="elsewhere", nat=Nat.SYMMETRIC)


async def _is_reached(lab: Lab, address: Address) -> bool:
    """Whether a rendezvous answers there, seen from another home."""

    async def ask() -> bool:
        try:
            async with (
                asyncio.timeout(3),
                aiohttp.ClientSession() as session,
                session.get(f"http://{address}/healthz") as answer,
            ):
                return answer.status == 200
        except (TimeoutError, aiohttp.ClientError):
            return False

    return await lab["elsewhere"].do(ask())


@pytest.mark.parametrize("only_older", [False, True], ids=["PCP", "NAT-PMP"])
async def test_a_rendezvous_at_home_is_reached_from_outside_as_long_as_the_lease_is_held(only_older: bool) -> None:  # noqa: FBT001
    async with (
        open_lab(HOME, ELSEWHERE) as lab,
        port_mapping(lab.routers("home")[0], only_older=only_older) as mapper,
        serving(lab["home"], ["192.168.1.10"]),
    ):
        outside = Address(lab.outside("home"), PORT)
        assert not await _is_reached(lab, outside)
        lease = await lab["home"].do(PortLease.ask(PORT))
        assert lease is not None
        assert lease.outside == outside
        assert await _is_reached(lab, outside)
        await lab["home"].do(lease.close())
        assert mapper.open == {}
        assert not await _is_reached(lab, outside)


async def test_a_router_that_will_not_or_is_not_asked_that_way_grants_nothing() -> None:
    async with open_lab(HOME, ELSEWHERE) as lab:
        assert await lab["home"].do(PortLease.ask(PORT)) is None
        async with port_mapping(lab.routers("home")[0], refuses=True) as mapper:
            assert await lab["home"].do(PortLease.ask(PORT)) is None
            assert mapper.open == {}


async def test_a_port_of_a_router_behind_another_router_is_given_back() -> None:
    double = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED, behind=(Nat.PORT_RESTRICTED,))
    async with open_lab(double) as lab, port_mapping(lab.routers("home")[0]) as mapper:
        assert await lab["home"].do(PortLease.ask(PORT)) is None
        assert mapper.open == {}
