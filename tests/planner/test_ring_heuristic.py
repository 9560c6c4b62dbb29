"""Large rings: good orders, honest bounds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafila.domain.capability import Filtering, Mapping, Reachability
from kafila.domain.plan import Plan
from kafila.planner.plan import make_plan
from kafila.planner.reachability import count_fewest_relays
from kafila.planner.ring_heuristic import search_orders
from kafila.planner.ring_order import find_exact_order
from planner.samples import at, make_member, make_network, make_spec
from planner.strategies import reachabilities

PERMISSIVE = Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ENDPOINT_INDEPENDENT)
ORDINARY = Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ADDRESS_AND_PORT_DEPENDENT)
RESTRICTIVE = Reachability(mapping=Mapping.ENDPOINT_DEPENDENT)


@settings(max_examples=60)
@given(reaches=st.lists(reachabilities, min_size=5, max_size=8), timed=st.booleans())
def test_bounds_lie_below_the_best_order_and_findings_above(reaches: list[Reachability], *, timed: bool) -> None:
    network = make_network(*(reach if timed else at(None, reach) for reach in reaches))
    search = search_orders(network)
    best = find_exact_order(network)
    assert search.least_price_us <= network.price_us(best) or network.counted
    assert search.least_relays <= min(network.relays(order) for order in (best, *search.orders))
    assert network.weigh(search.orders[0]) >= network.weigh(best)
    for order in search.orders:
        assert order[0] == 0
        assert sorted(order) == list(range(len(reaches)))
        assert (0, *reversed(order[1:])) in search.orders
    weights = [network.weigh(order) for order in search.orders]
    assert weights == sorted(weights)


@settings(max_examples=40)
@given(distances=st.lists(st.sampled_from([1.0, 7.0, 20.0, 45.0, 90.0, 91.0]), min_size=10, max_size=24))
def test_on_a_line_of_distances_the_search_ends_at_the_bound(distances: list[float]) -> None:
    """Direct members cost the difference of their distances: out and back is the least."""
    network = make_network(*(at(distance) for distance in distances))
    search = search_orders(network)
    least = round(2 * (max(distances) - min(distances)) * 1000)
    assert network.price_us(search.orders[0]) == least
    assert search.least_price_us <= least


@settings(max_examples=60)
@given(
    permissive=st.integers(0, 8),
    ordinary=st.integers(0, 8),
    restrictive=st.integers(0, 8),
    data=st.data(),
)
def test_without_distances_a_ring_has_no_more_relays_than_it_must(
    permissive: int, ordinary: int, restrictive: int, data: st.DataObject
) -> None:
    kinds = [PERMISSIVE] * permissive + [ORDINARY] * ordinary + [RESTRICTIVE] * restrictive
    if len(kinds) < 5:
        return
    network = make_network(*data.draw(st.permutations(kinds)))
    search = search_orders(network)
    fewest = count_fewest_relays(permissive=permissive, ordinary=ordinary, restrictive=restrictive)
    assert network.relays(search.orders[0]) == fewest == search.least_relays


def test_a_plan_says_how_sure_its_order_is() -> None:
    spec = make_spec([1] * 12)
    members = [make_member(f"M{number:02}", reach=at(float(number * 7 % 30))) for number in range(12)]
    small = make_plan(spec, members[:9], context=1, concurrency=1)
    large = make_plan(spec, members, context=1, concurrency=1)
    assert isinstance(small, Plan)
    assert isinstance(large, Plan)
    assert (small.search, small.search_note) == ("exact", "")
    assert large.search == "heuristic"
    assert "above the least possible" in large.search_note
    assert sum(share.blocks for share in large.shares) == 12


def test_a_large_ring_of_unequal_blocks_turns_until_it_fits() -> None:
    """Only one member holds the large block, and it stands where the ring's direction puts it."""
    sizes = [1] * 8 + [9] + [1] * 3
    members = [
        make_member(f"M{number:02}", room=9 if number == 3 else 2, reach=at(float(number))) for number in range(10)
    ]
    plan = make_plan(make_spec(sizes), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.share_of(members[3].member).end == 9
