"""How people live: two computers at one home, homes behind carriers, routers behind routers, IPv6."""

import asyncio

import pytest

from kafila.domain.plan import PathKind
from kafila.planner.reachability import predict_path
from nat.meeting import measure_all, serving
from nat.members import differing, open_group, until_paths
from natlab.internet import Line
from natlab.lab import MIDDLE, MIDDLE_IPV6, Carrier, SiteSpec, open_lab
from natlab.rules import Nat

LINE = Line(delay_ms=10)
STAYS_S = 2.5


async def _meet(
    specs: list[SiteSpec | Carrier], one: str, other: str, rendezvous: tuple[str, ...] = MIDDLE[:1]
) -> PathKind:
    """The path between two, which has to be the one predicted, and to stay it."""
    async with open_lab(*specs) as lab, serving(lab.middle, [*MIDDLE, MIDDLE_IPV6]):
        reach = await measure_all(lab, [one, other], *rendezvous)
        predicted = predict_path(reach[one], reach[other])
        async with open_group(lab, rendezvous[-1]) as group:
            a, b = await group.join(one, other)
            await group.introduce((a, b))
            await until_paths({(a, b): predicted})
            await asyncio.sleep(STAYS_S if predicted is PathKind.RELAYED else 0)
            await until_paths({(a, b): predicted})
            assert not differing({(a, b): predicted})
    return predicted


@pytest.mark.parametrize("nat", [Nat.SYMMETRIC, Nat.UDP_BLOCKED])
async def test_two_computers_at_one_home_are_direct_whatever_its_router_does(nat: Nat) -> None:
    home = SiteSpec(name="home", nat=nat, computers=2, line=LINE)
    assert await _meet([home], "home", "home2") is PathKind.DIRECT


@pytest.mark.parametrize(
    ("inner", "outer", "path"),
    [
        (Nat.PORT_RESTRICTED, Nat.PORT_RESTRICTED, PathKind.DIRECT),
        (Nat.FULL_CONE, Nat.PORT_MOVED, PathKind.DIRECT),
        (Nat.PORT_RESTRICTED, Nat.SYMMETRIC, PathKind.RELAYED),
        (Nat.SYMMETRIC, Nat.FULL_CONE, PathKind.RELAYED),
    ],
)
async def test_two_routers_in_a_row(inner: Nat, outer: Nat, path: PathKind) -> None:
    double = SiteSpec(name="double", nat=inner, behind=(outer,), line=LINE)
    assert await _meet([double, SiteSpec(name="home", nat=Nat.PORT_RESTRICTED, line=LINE)], "double", "home") is path


@pytest.mark.parametrize(("hairpin", "path"), [(True, PathKind.DIRECT), (False, PathKind.RELAYED)])
async def test_neighbours_behind_one_carrier(hairpin: bool, path: PathKind) -> None:  # noqa: FBT001
    carrier = Carrier(name="carrier", nat=Nat.PORT_RESTRICTED, hairpin=hairpin, line=LINE)
    homes = [SiteSpec(name=name, nat=Nat.PORT_RESTRICTED, carrier="carrier") for name in ("one", "two")]
    assert await _meet([carrier, *homes], "one", "two") is path


@pytest.mark.parametrize("first_delay_ms", [5, 50])
async def test_nobody_knocks_before_a_router_is_ready_whoever_learns_first(first_delay_ms: int) -> None:
    """These routers take an early knock for a connection of its own, and no way leads in any more."""
    first = SiteSpec(name="first", nat=Nat.LEAKY, line=Line(delay_ms=first_delay_ms))
    second = SiteSpec(name="second", nat=Nat.LEAKY, line=Line(delay_ms=55 - first_delay_ms))
    async with open_lab(first, second) as lab, serving(lab.middle), open_group(lab) as group:
        a, b = await group.join("first", "second")
        await group.introduce((a, b), later_s=0.15)
        await until_paths({(a, b): PathKind.DIRECT})
        assert not differing({(a, b): PathKind.DIRECT})


async def test_ipv6_joins_what_symmetric_routers_keep_apart() -> None:
    homes = [SiteSpec(name=name, nat=Nat.SYMMETRIC, ipv6=True, line=LINE) for name in ("one", "two")]
    assert await _meet([*homes], "one", "two", (MIDDLE[0], MIDDLE_IPV6)) is PathKind.DIRECT


async def test_two_homes_with_nothing_but_ipv6() -> None:
    homes = [SiteSpec(name=name, nat=Nat.PORT_RESTRICTED, ipv4=False, ipv6=True, line=LINE) for name in ("one", "two")]
    assert await _meet([*homes], "one", "two", (MIDDLE_IPV6,)) is PathKind.DIRECT
