"""The exact order against every order."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafila.domain.capability import Mapping, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.planner.question import ask
from kafila.planner.ring_order import build_network, find_exact_order, hops
from planner.brute_force import Fleet
from planner.samples import OPEN, at, make_network
from planner.strategies import fleets, reachabilities


@settings(max_examples=60)
@given(
    reaches=st.lists(reachabilities, min_size=1, max_size=7),
    silent=st.sets(st.integers(0, 6), max_size=2),
)
def test_no_order_weighs_less_and_ties_go_by_id(reaches: list[Reachability], silent: set[int]) -> None:
    """With `silent` members, whose distance is not known, relays are counted instead."""
    network = make_network(*(at(None, reach) if place in silent else reach for place, reach in enumerate(reaches)))
    orders = [(0, *rest) for rest in permutations(range(1, len(reaches)))]
    assert find_exact_order(network) == min(orders, key=lambda order: (network.weigh(order), order))


@given(fleet=fleets(uniform=True))
def test_a_weight_ranks_as_the_price_does(fleet: Fleet) -> None:
    question = ask(fleet.spec, fleet.members, context=1, concurrency=1, pair_rtts=fleet.pair_rtts)
    network = build_network(question)
    orders = [(0, *rest) for rest in permutations(range(1, len(fleet.members)))]
    lightest = min(orders, key=network.weigh)
    assert network.price_us(lightest) == min(network.price_us(order) for order in orders)


def test_a_ring_of_one_has_no_edge_and_a_ring_of_two_has_two() -> None:
    assert hops((0,)) == []
    assert hops((0, 1)) == [(0, 1), (1, 0)]
    two = make_network(at(10.0), at(4.0))
    assert two.price_us((0, 1)) == 12_000
    assert make_network(at(10.0)).price_us((0,)) == 0


def test_prices_are_whole_microseconds() -> None:
    network = make_network(at(10.0004), at(10.0))
    assert network.edges[0][1].price_us == 0


def test_a_measured_pair_prices_a_direct_edge_only() -> None:
    pair = {frozenset((MemberId("m0"), MemberId("m1"))): 3.0}
    assert make_network(at(10.0), at(4.0), pair_rtts=pair).edges[0][1].price_us == 3_000
    blocked = Reachability(mapping=Mapping.UDP_BLOCKED, rendezvous_rtt_ms=4.0)
    relayed = make_network(at(10.0), blocked, pair_rtts=pair).edges[0][1]
    assert (relayed.path, relayed.price_us) == (PathKind.RELAYED, 14_000)


def test_where_everything_is_relayed_members_at_like_distances_are_neighbours() -> None:
    blocked = Reachability(mapping=Mapping.UDP_BLOCKED)
    network = make_network(*(at(rtt, blocked) for rtt in (5.0, 90.0, 6.0, 91.0)))
    pairs = {frozenset(hop) for hop in hops(find_exact_order(network))}
    assert {frozenset((0, 2)), frozenset((1, 3))} <= pairs


def test_without_distances_the_fewest_relays_win() -> None:
    strict = Reachability(mapping=Mapping.ENDPOINT_DEPENDENT)
    network = make_network(OPEN, strict, strict, OPEN)
    assert network.relays(find_exact_order(network)) == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_distance_that_cannot_be_counts_as_not_known(bad: float) -> None:
    pair = {frozenset((MemberId("m0"), MemberId("m1"))): bad}
    assert make_network(at(bad), at(4.0), pair_rtts=pair).edges[0][1].price_us is None
