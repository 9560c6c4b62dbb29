"""Who leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.plan import Objective, Plan
from kafila.planner.partition import UniformChain
from kafila.planner.placement import HighestRate, ShortestBottleneck
from kafila.planner.plan import make_plan
from planner.chains import Case, any_case, fitting, stages_of
from planner.samples import make_member, make_spec


@given(case=any_case, hops=st.integers(0, 40), people=st.integers(1, 6))
def test_the_highest_rate_is_found(case: Case, hops: int, people: int) -> None:
    goal = HighestRate(hop_ticks=hops * 10**20, concurrency=people)
    ranks = [
        (max(sum(stages) + goal.hop_ticks, people * max(stages)), max(stages), sum(stages))
        for stages in (stages_of(case, counts) for counts in fitting(case))
    ]
    division = goal.solve(case.chain)
    if not ranks:
        assert division is None
        return
    assert division is not None
    best = min(ranks)
    assert (goal.value(division), division.bottleneck, division.total) == best
    assert goal.reaches(case.chain, best[0])
    assert not goal.reaches(case.chain, best[0] - 1)


def test_the_best_may_lie_between_two_bounds() -> None:
    """Three blocks each: 17 and 12, so a circuit of 59; a longer stage of three people takes 60."""
    chain = UniformChain(ticks=[3, 4], extras=[8, 0], limits=[5, 5], blocks=6)
    goal = HighestRate(hop_ticks=30, concurrency=3)
    division = goal.solve(chain)
    assert division is not None
    assert division.counts == (3, 3)
    assert goal.value(division) == 59


@given(case=any_case)
def test_the_shortest_bottleneck_is_found(case: Case) -> None:
    goal = ShortestBottleneck()
    ranks = [(max(stages), sum(stages)) for stages in (stages_of(case, counts) for counts in fitting(case))]
    division = goal.solve(case.chain)
    if not ranks:
        assert division is None
        return
    assert division is not None
    best = min(ranks)
    assert (division.bottleneck, division.total) == best
    assert goal.reaches(case.chain, best[0])
    assert not goal.reaches(case.chain, best[0] - 1)


def plan_pair(*, host: float, other: float, objective: Objective, room: int = 10**6) -> Plan:
    """Two blocks, one each, and a head as heavy as a block: whoever leads is the bottleneck."""
    spec = make_spec([100, 100], head_bytes=100, head_resident=100)
    members = [make_member("A", bandwidth=host, flops=1e9, room=room), make_member("B", bandwidth=other, flops=1e9)]
    plan = make_plan(spec, members, context=1, concurrency=9, objective=objective)
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    ("other", "head"),
    [
        (200.0, "a"),  # no better
        (205.0, "a"),  # a little better is not worth a change
        (210.0, "a"),  # 0.952 of the host's bottleneck, 1.05 times its rate
        (211.0, "b"),
        (300.0, "b"),
    ],
)
@pytest.mark.parametrize("objective", Objective)
def test_the_host_leads_unless_another_is_better_by_more_than_the_margin(
    other: float, head: str, objective: Objective
) -> None:
    assert plan_pair(host=200.0, other=other, objective=objective).head == head


def test_the_margin_of_the_bottleneck_is_a_share_of_the_hosts() -> None:
    """Host 1.0 s; exactly 0.95 s is not enough."""
    at_margin = plan_pair(host=200.0, other=200.0 / 0.95, objective=Objective.BALANCED)
    above = plan_pair(host=200.0, other=200.0 / 0.9499, objective=Objective.BALANCED)
    assert (at_margin.head, above.head) == ("a", "b")


@pytest.mark.parametrize("objective", Objective)
def test_a_host_that_cannot_hold_the_head_does_not_lead(objective: Objective) -> None:
    assert plan_pair(host=300.0, other=200.0, objective=objective, room=199).head == "b"


def test_one_person_is_served_fastest_by_the_fastest_and_many_by_all() -> None:
    spec = make_spec([100] * 10)
    members = [make_member("A", bandwidth=100.0, flops=1e9), make_member("B", bandwidth=400.0, flops=1e9)]

    def parts(people: int) -> list[int]:
        plan = make_plan(spec, members, context=1, concurrency=people)
        assert isinstance(plan, Plan)
        return [plan.share_of(one.member).blocks for one in members]

    assert parts(1) == [1, 9]
    assert parts(4) == [2, 8]


def test_equals_share_evenly_where_it_costs_nothing() -> None:
    """Of divisions with the same rate the one with the shortest bottleneck is taken."""
    members = [make_member(name) for name in "ABC"]
    plan = make_plan(make_spec([1] * 9), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert [share.blocks for share in plan.shares] == [3, 3, 3]
