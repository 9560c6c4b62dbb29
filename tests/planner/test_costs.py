"""Tiers of measurement, and what blocks cost under each."""

import msgspec
import pytest

from kafila.domain.plan import Objective, Plan, Tier
from kafila.planner.costs import TICKS_PER_SECOND, build_costs
from kafila.planner.plan import Candidate, make_plan
from kafila.planner.question import ask
from planner.samples import make_member, make_spec


def plan_of(*members: Candidate, blocks: int = 6, objective: Objective = Objective.FASTEST) -> Plan:
    plan = make_plan(make_spec([10] * blocks), members, context=1, concurrency=1, objective=objective)
    assert isinstance(plan, Plan)
    return plan


def parts(plan: Plan) -> dict[str, int]:
    return {share.member: share.blocks for share in plan.shares}


def test_a_block_takes_what_is_slower_of_reading_and_computing() -> None:
    spec = make_spec([10, 20])
    reader = make_member("A", bandwidth=10.0, flops=1e9)
    costs = build_costs(ask(spec, [reader], context=1, concurrency=1))
    assert costs.ticks[0] == (0, TICKS_PER_SECOND, 3 * TICKS_PER_SECOND)


def test_the_cache_is_counted_for_every_token_of_every_conversation() -> None:
    costs = build_costs(ask(make_spec([10, 10], kv=3), [make_member("A")], context=5, concurrency=2))
    assert costs.needs == (0, 40, 80)


def test_the_full_tier_needs_both_figures_of_everyone() -> None:
    plan = plan_of(make_member("A"), make_member("B"))
    assert plan.tier is Tier.FULL
    assert plan.figures.circuit_ms is not None


def test_without_one_bandwidth_parts_follow_arithmetic_and_nothing_is_timed() -> None:
    plan = plan_of(make_member("A", bandwidth=None, flops=100.0), make_member("B", flops=200.0))
    assert plan.tier is Tier.THROUGHPUT
    assert "A" in plan.tier_reason


@pytest.mark.parametrize("objective", Objective)
def test_arithmetic_alone_divides_in_its_proportion(objective: Objective) -> None:
    spec = msgspec.structs.replace(make_spec([10] * 6), block_flops=(10,) * 6)
    members = [make_member("A", bandwidth=None, flops=100.0), make_member("B", flops=200.0)]
    plan = make_plan(spec, members, context=1, concurrency=1, objective=objective)
    assert isinstance(plan, Plan)
    assert parts(plan) == {"a": 2, "b": 4}
    figures = plan.figures
    assert (figures.bottleneck_ms, figures.circuit_ms, figures.tokens_per_second, figures.utilisation) == (None,) * 4
    assert plan.tokens_per_second_alone is None
    assert {share.stage_ms for share in plan.shares} == {None}
    assert plan.uniform is not None
    assert plan.uniform.bottleneck_ms is None


def test_without_arithmetic_parts_follow_room() -> None:
    plan = plan_of(
        make_member("A", flops=None, room=100), make_member("B", room=200), make_member("C", room=300), blocks=12
    )
    assert plan.tier is Tier.ROOM
    assert "A" in plan.tier_reason
    assert parts(plan) == {"a": 2, "b": 4, "c": 6}


def test_room_that_is_not_known_for_one_is_taken_as_equal_for_all() -> None:
    plan = plan_of(make_member("A", flops=None, room=None), make_member("B", room=1000), blocks=6)
    assert parts(plan) == {"a": 3, "b": 3}
    assert plan.share_of(plan.head).room_bytes is None


def test_under_lower_tiers_the_host_leads_unless_it_cannot() -> None:
    spec = make_spec([10] * 4, head_resident=50)
    small, large = make_member("A", flops=None, room=60), make_member("B", room=1000)
    plan = make_plan(spec, [small, large], context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.head == "a"
    tiny = make_member("A", flops=None, room=59)
    plan = make_plan(spec, [tiny, large], context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.head == "b"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 0.0, 1e300])
def test_figures_that_no_computer_has_count_as_not_measured(bad: float) -> None:
    assert plan_of(make_member("A", bandwidth=bad), make_member("B")).tier is Tier.THROUGHPUT
    assert plan_of(make_member("A", flops=bad), make_member("B")).tier is Tier.ROOM
