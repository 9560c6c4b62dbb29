"""Plans from live stage times."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafila.domain.plan import Plan, Tier
from kafila.planner.live import calibrate, replan
from kafila.planner.plan import Candidate, answer
from kafila.planner.question import Question, ask
from kafila.planner.solve import work_out
from planner.brute_force import Fleet
from planner.samples import make_member, make_spec
from planner.strategies import fleets


def question_of(*members: Candidate, concurrency: int = 9) -> Question:
    return ask(make_spec([100] * 12), members, context=1, concurrency=concurrency)


def plan_of(question: Question) -> Plan:
    plan = answer(question)
    assert isinstance(plan, Plan)
    return plan


def test_a_member_that_is_slower_than_measured_gets_less() -> None:
    question = question_of(make_member("A", flops=1e9), make_member("B", flops=1e9))
    plan = plan_of(question)
    assert [share.blocks for share in plan.shares] == [6, 6]
    again = replan(question, plan, {share.member: 600.0 if share.head else 1200.0 for share in plan.shares})
    assert isinstance(again, Plan)
    assert [again.share_of(one.member).blocks for one in question.members] == [8, 4]
    # Nine people wait for 800 ms instead of 1200 ms each time round, and a word is 4/3 tokens.
    assert again.advice[0] == "Dividing the parts anew makes each word come 4800 ms sooner."


def test_where_the_times_are_as_predicted_nothing_changes() -> None:
    question = question_of(make_member("A", flops=1e9, bandwidth=300.0), make_member("B", flops=1e9))
    plan = plan_of(question)
    again = replan(question, plan, {share.member: share.stage_ms or 0.0 for share in plan.shares})
    assert isinstance(again, Plan)
    assert again.shares == plan.shares
    assert again.advice[0] == "The parts are divided as well as they can be."


@settings(max_examples=60)
@given(
    fleet=st.one_of(fleets(uniform=True), fleets(uniform=False)),
    stages=st.lists(st.floats(0.1, 1e4), min_size=5, max_size=5),
)
def test_the_present_division_is_predicted_to_take_what_it_took(fleet: Fleet, stages: list[float]) -> None:
    question = ask(fleet.spec, fleet.members, context=fleet.context, concurrency=fleet.concurrency)
    plan = answer(question)
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    stage_ms = {share.member: ms for share, ms in zip(plan.shares, stages, strict=False)}
    measured = calibrate(question, plan, stage_ms)
    costs = work_out(measured).costs
    for share in plan.shares:
        place = measured.place_of(share.member)
        ticks = costs.stage_ticks(place, share.first, share.end, head=share.head)
        assert ticks / 10**18 == pytest.approx(stage_ms[share.member])


def test_stage_times_lift_a_fleet_that_was_not_measured_to_the_full_tier() -> None:
    question = question_of(make_member("A", flops=None), make_member("B", bandwidth=None, flops=None))
    plan = plan_of(question)
    assert plan.tier is Tier.ROOM
    again = replan(question, plan, {question.members[0].member: 300.0, question.members[1].member: 600.0})
    assert isinstance(again, Plan)
    assert again.tier is Tier.FULL
    assert [again.share_of(one.member).blocks for one in question.members] == [8, 4]


@pytest.mark.parametrize("nonsense", [0.0, -1.0, float("nan"), float("inf"), 1e-300])
def test_a_time_that_cannot_be_changes_nothing_or_is_not_believed(nonsense: float) -> None:
    question = question_of(make_member("A", flops=1e9), make_member("B", flops=1e9))
    plan = plan_of(question)
    again = replan(question, plan, {question.members[1].member: nonsense})
    assert isinstance(again, Plan)
    assert sum(share.blocks for share in again.shares) == 12
