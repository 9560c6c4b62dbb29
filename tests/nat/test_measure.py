"""The classifier behind every class of router, against our own rendezvous."""

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from kafila.domain.capability import Filtering, Mapping
from nat.meeting import AT_ONCE, CLASSES, PATIENCE, measure, serving
from natlab.internet import Line
from natlab.lab import MIDDLE, MIDDLE_IPV6, Carrier, SiteSpec, open_lab
from natlab.rules import Nat

if TYPE_CHECKING:
    from kafila.network.measure import NetworkReport


async def test_every_class_is_told_from_the_others_within_two_seconds() -> None:
    specs = [SiteSpec(name=nat.name, nat=nat, line=Line(delay_ms=10)) for nat in CLASSES]
    reports: dict[Nat, NetworkReport] = {}
    took: dict[Nat, float] = {}
    turns = asyncio.Semaphore(AT_ONCE)
    async with open_lab(*specs) as lab, serving(lab.middle, MIDDLE), asyncio.TaskGroup() as tasks:
        for nat in CLASSES:

            async def learn(nat: Nat = nat) -> None:
                async with turns:
                    begin = time.monotonic()
                    reports[nat] = await measure(lab, nat.name)
                    took[nat] = time.monotonic() - begin

            tasks.create_task(learn())
    assert {nat: (report.mapping, report.filtering) for nat, report in reports.items()} == CLASSES
    assert max(took.values()) < PATIENCE * 2.0


async def test_what_one_address_cannot_tell_is_not_learned() -> None:
    specs = [SiteSpec(name=nat.name, nat=nat) for nat in (Nat.OPEN, Nat.PORT_RESTRICTED)]
    async with open_lab(*specs) as lab, serving(lab.middle, MIDDLE[:1]):
        public = await measure(lab, "OPEN")
        home = await measure(lab, "PORT_RESTRICTED")
    assert (home.udp, home.mapping, home.filtering) == (True, Mapping.UNKNOWN, Filtering.UNKNOWN)
    # Whoever is not translated has the same address for everyone, which takes no second server.
    assert (public.mapping, public.filtering) == (Mapping.ENDPOINT_INDEPENDENT, Filtering.UNKNOWN)


async def test_two_rendezvous_with_one_address_each_tell_how_ports_are_mapped() -> None:
    specs = [SiteSpec(name=nat.name, nat=nat) for nat in (Nat.PORT_RESTRICTED, Nat.SYMMETRIC, Nat.OPEN)]
    async with open_lab(*specs) as lab, serving(lab.middle, MIDDLE[:1]), serving(lab["OPEN"], [lab.outside("OPEN")]):
        both = (MIDDLE[0], lab.outside("OPEN"))
        assert (await measure(lab, "PORT_RESTRICTED", *both)).mapping is Mapping.ENDPOINT_INDEPENDENT
        assert (await measure(lab, "SYMMETRIC", *both)).mapping is Mapping.ENDPOINT_DEPENDENT


async def test_nothing_is_claimed_where_nothing_answers() -> None:
    async with open_lab(SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)) as lab:
        report = await measure(lab, "home")
        assert (report.udp, report.mapping, report.rtt_ms) == (None, Mapping.UNKNOWN, None)
        lab.change("home", is_cut=True)
        assert (await measure(lab, "home")).udp is None


async def test_blocked_datagrams_are_told_from_an_absent_rendezvous() -> None:
    async with (
        open_lab(SiteSpec(name="home", nat=Nat.UDP_BLOCKED, line=Line(delay_ms=20))) as lab,
        serving(lab.middle, MIDDLE),
    ):
        report = await measure(lab, "home")
    assert report.udp is False
    assert report.reachability().mapping is Mapping.UDP_BLOCKED
    assert report.rtt_ms is not None
    assert report.rtt_ms >= 50


async def test_the_round_trip_is_that_of_the_path() -> None:
    near, far = SiteSpec(name="near", nat=Nat.OPEN), SiteSpec(name="far", nat=Nat.SYMMETRIC, line=Line(delay_ms=60))
    async with open_lab(near, far) as lab, serving(lab.middle, MIDDLE):
        here, there = await measure(lab, "near"), await measure(lab, "far")
    assert here.rtt_ms is not None
    assert there.rtt_ms is not None
    assert there.rtt_ms >= 130
    assert 10 <= here.rtt_ms < there.rtt_ms
    assert there.rtt_spread_ms is not None


async def test_ipv6_counts_where_it_was_tried() -> None:
    specs = (
        SiteSpec(name="both", nat=Nat.PORT_RESTRICTED, ipv6=True),
        SiteSpec(name="old", nat=Nat.PORT_RESTRICTED),
    )
    async with open_lab(*specs) as lab, serving(lab.middle, [MIDDLE[0], MIDDLE_IPV6]):
        both = await measure(lab, "both", MIDDLE[0], MIDDLE_IPV6)
        old = await measure(lab, "old", MIDDLE[0], MIDDLE_IPV6)
        untried = await measure(lab, "both")
    assert (both.ipv6, old.ipv6, untried.ipv6) == (True, False, None)
    assert both.ipv6_address == untried.ipv6_address == "2001:db8:1:1::10"


@pytest.mark.parametrize("mtu", [1500, 1420])
async def test_the_largest_packet_that_fits_is_found(mtu: int) -> None:
    async with open_lab(SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)) as lab, serving(lab.middle, MIDDLE):
        lab.routers("home")[0].namespace.ip(f"link set wan0 mtu {mtu}")
        assert (await measure(lab, "home")).mtu_bytes == mtu


async def test_hairpin_is_measured_not_assumed() -> None:
    specs = [
        SiteSpec(name=f"{nat.name} {hairpin}", nat=nat, hairpin=hairpin)
        for nat in (Nat.FULL_CONE, Nat.PORT_RESTRICTED)
        for hairpin in (False, True)
    ]
    async with open_lab(*specs) as lab, serving(lab.middle, MIDDLE):
        for spec in specs:
            assert (await measure(lab, spec.name)).hairpin is spec.hairpin, spec.name


async def test_a_local_network_is_known_again_and_told_from_a_neighbours() -> None:
    homes = [SiteSpec(name=name, nat=Nat.PORT_RESTRICTED, carrier="carrier", computers=2) for name in ("one", "two")]
    async with open_lab(Carrier(name="carrier", nat=Nat.SYMMETRIC), *homes) as lab, serving(lab.middle, MIDDLE):
        reports = {name: await measure(lab, name) for name in ("one", "one2", "two", "two2")}
    networks = {name: report.network for name, report in reports.items()}
    assert networks["one"] == networks["one2"]
    assert networks["two"] == networks["two2"]
    assert networks["one"] != networks["two"]
    assert None not in networks.values()
    # One carrier, one address, the same private addresses: only the routers differ.
    assert len({report.public_address.host for report in reports.values() if report.public_address}) == 1


async def test_losing_packets_does_not_change_the_class() -> None:
    chosen = {nat: CLASSES[nat] for nat in (Nat.FULL_CONE, Nat.ADDRESS_RESTRICTED, Nat.SYMMETRIC)}
    specs = [SiteSpec(name=nat.name, nat=nat, line=Line(delay_ms=25, loss=0.02)) for nat in chosen]
    async with open_lab(*specs) as lab, serving(lab.middle, MIDDLE):
        for nat, expected in chosen.items():
            for _ in range(3):
                report = await measure(lab, nat.name)
                assert (report.mapping, report.filtering) == expected


async def test_two_routers_in_a_row_are_as_strict_as_the_stricter() -> None:
    double = SiteSpec(name="double", nat=Nat.FULL_CONE, behind=(Nat.SYMMETRIC,))
    async with open_lab(double) as lab, serving(lab.middle, MIDDLE):
        report = await measure(lab, "double")
    assert report.mapping is Mapping.ENDPOINT_DEPENDENT
    assert report.filtering is Filtering.ADDRESS_AND_PORT_DEPENDENT
