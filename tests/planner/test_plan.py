"""The whole planner against trying everything."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafila.domain.plan import Objective, PathKind, Plan, Refusal
from kafila.planner.plan import make_plan
from planner import brute_force as brute
from planner.brute_force import Fleet, Found
from planner.strategies import fleets

ALMOST = 1e-9
either_kind = st.one_of(fleets(uniform=True), fleets(uniform=False))
objectives = st.sampled_from(Objective)


def plan_fleet(fleet: Fleet, objective: Objective) -> Plan | Refusal:
    return make_plan(
        fleet.spec,
        fleet.members,
        context=fleet.context,
        concurrency=fleet.concurrency,
        objective=objective,
        pair_rtts=fleet.pair_rtts,
    )


def ring_of(fleet: Fleet, plan: Plan) -> tuple[int, ...]:
    places = {one.member: place for place, one in enumerate(fleet.members)}
    return tuple(places[share.member] for share in plan.shares)


def cost_of(fleet: Fleet, found: Found, objective: Objective) -> float:
    """What the objective makes small."""
    if objective is Objective.BALANCED:
        return float(found.bottleneck)
    return float(1 / brute.rate(found, fleet.concurrency))


def allowed_heads(fleet: Fleet, best: dict[int, Found], objective: Objective) -> list[int]:
    """Who may lead by the margin rule; both where the margin is met to the last digit."""
    costs = {head: cost_of(fleet, found, objective) for head, found in best.items()}
    least = min(costs.values())
    leaders = [head for head, cost in costs.items() if cost <= least * (1 + ALMOST)]
    if 0 not in costs:
        return leaders
    edge = costs[0] * 0.95 if objective is Objective.BALANCED else costs[0] / 1.05
    if abs(least - edge) <= edge * ALMOST:
        return [0, *leaders]
    return leaders if least < edge else [0]


@given(fleet=either_kind, objective=objectives)
def test_a_plan_is_the_best_of_all_and_refusals_only_where_nothing_fits(fleet: Fleet, objective: Objective) -> None:
    plan = plan_fleet(fleet, objective)
    expected = brute.first_fitting_order(fleet, objective)
    if expected is None:
        assert isinstance(plan, Refusal)
        return
    assert isinstance(plan, Plan)
    order, best = expected
    ring = ring_of(fleet, plan)
    assert brute.price_us(fleet, ring)[0] == brute.price_us(fleet, order)[0]
    # A dearer order is another one of the same price perhaps, so its own heads are searched.
    host = ring.index(0)
    best = brute.best_per_head(fleet, (*ring[host:], *ring[:host]), objective)
    assert ring[0] in allowed_heads(fleet, best, objective)
    got = brute.measure(fleet, ring, [share.blocks for share in plan.shares])
    want = best[ring[0]]
    assert cost_of(fleet, got, objective) == pytest.approx(cost_of(fleet, want, objective), rel=ALMOST)
    assert float(got.bottleneck) <= float(want.bottleneck) * (1 + ALMOST)
    assert float(got.circuit) == pytest.approx(float(want.circuit), rel=ALMOST)


@given(fleet=either_kind, objective=objectives)
def test_the_cheapest_order_is_taken_where_it_fits(fleet: Fleet, objective: Objective) -> None:
    plan = plan_fleet(fleet, objective)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    cheapest = brute.all_orders(fleet)[0]
    assume(brute.best_per_head(fleet, cheapest, objective))
    ring = ring_of(fleet, plan)
    host = ring.index(0)
    assert (*ring[host:], *ring[:host]) == cheapest


@given(fleet=either_kind, objective=objectives)
def test_every_plan_keeps_its_invariants(fleet: Fleet, objective: Objective) -> None:
    plan = plan_fleet(fleet, objective)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    assert sorted(share.member for share in plan.shares) == sorted(one.member for one in fleet.members)
    assert [share.head for share in plan.shares] == [True] + [False] * (len(plan.shares) - 1)
    assert plan.shares[0].first == 0
    assert plan.shares[-1].end == fleet.spec.blocks
    for share, following in zip(plan.shares, plan.shares[1:], strict=False):
        assert share.end == following.first
    for share in plan.shares:
        assert share.blocks >= 1
        assert share.need_bytes == brute.need(fleet, range(share.first, share.end), head=share.head)
        assert share.room_bytes is not None
        assert share.need_bytes <= share.room_bytes
    assert plan.figures.fits


@given(fleet=either_kind, objective=objectives)
def test_figures_are_those_of_the_cost_model(fleet: Fleet, objective: Objective) -> None:
    plan = plan_fleet(fleet, objective)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    ring = ring_of(fleet, plan)
    found = brute.measure(fleet, ring, [share.blocks for share in plan.shares])
    figures = plan.figures
    assert figures.bottleneck_ms == pytest.approx(float(found.bottleneck) * 1000)
    assert figures.circuit_ms == pytest.approx(float(found.circuit) * 1000)
    assert figures.tokens_per_second == pytest.approx(float(brute.rate(found, fleet.concurrency)))
    assert plan.tokens_per_second_alone == pytest.approx(float(brute.rate(found, 1)))
    stages = sum(share.stage_ms or 0 for share in plan.shares)
    assert figures.utilisation == pytest.approx(stages / (len(ring) * float(found.bottleneck) * 1000))
    assert len(plan.edges) == len(brute.edges_of(ring))
    for edge, (one, other) in zip(plan.edges, brute.edges_of(ring), strict=True):
        assert (edge.from_member, edge.to_member) == (fleet.members[one].member, fleet.members[other].member)
        assert edge.price_ms == brute.distance_us(fleet, one, other)[0] / 1000
        direct = brute.reaches(fleet.members[one].capability.reachability, fleet.members[other].capability.reachability)
        assert edge.predicted is (PathKind.DIRECT if direct else PathKind.RELAYED)


@given(fleet=either_kind, objective=objectives)
def test_a_refusal_names_who_is_short_in_the_division_nearest_to_fitting(fleet: Fleet, objective: Objective) -> None:
    refusal = plan_fleet(fleet, objective)
    assume(isinstance(refusal, Refusal))
    assert isinstance(refusal, Refusal)
    least = min(brute.need(fleet, range(block, block + 1), head=False) for block in range(fleet.spec.blocks))
    rooms = [one.capability.room_bytes or 0 for one in fleet.members]
    tiny = [place for place, room in enumerate(rooms) if room < least]
    if tiny:
        assert refusal.member == fleet.members[tiny[0]].member
        assert (refusal.needs_bytes, refusal.has_bytes) == (least, rooms[tiny[0]])
        return
    total, count, short = brute.nearest_to_fitting(fleet, brute.all_orders(fleet))
    assert refusal.member == fleet.members[short[0]].member
    assert refusal.has_bytes == rooms[short[0]]
    lack = refusal.needs_bytes - refusal.has_bytes
    assert 0 < lack <= total
    if count == 1:
        assert lack == total


@given(fleet=either_kind, objective=objectives, data=st.data())
def test_the_order_of_arrival_changes_no_plan(fleet: Fleet, objective: Objective, data: st.DataObject) -> None:
    others = data.draw(st.permutations(fleet.members[1:]))
    shuffled = Fleet(
        spec=fleet.spec,
        members=(fleet.members[0], *others),
        context=fleet.context,
        concurrency=fleet.concurrency,
        pair_rtts=fleet.pair_rtts,
    )
    plan = plan_fleet(fleet, objective)
    other = plan_fleet(shuffled, objective)
    if isinstance(plan, Plan):
        assert plan == other
    else:
        assert isinstance(other, Refusal)


@given(fleet=either_kind)
def test_fastest_is_never_slower_than_balanced_beyond_the_head_margin(fleet: Fleet) -> None:
    fastest, balanced = plan_fleet(fleet, Objective.FASTEST), plan_fleet(fleet, Objective.BALANCED)
    assume(isinstance(fastest, Plan))
    assert isinstance(fastest, Plan)
    assert isinstance(balanced, Plan)
    one, other = fastest.figures.tokens_per_second, balanced.figures.tokens_per_second
    assert one is not None
    assert other is not None
    least = 1.0 if fastest.head == balanced.head else 0.95
    assert one >= least * other * (1 - ALMOST)
