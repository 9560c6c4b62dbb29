"""Divisions that people make."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal
from kafila.planner.by_hand import plan_by_hand
from kafila.planner.plan import answer
from kafila.planner.question import Question, ask
from planner.brute_force import Fleet, all_counts, measure, shortfalls
from planner.samples import make_member, make_spec
from planner.strategies import fleets


def pair(*, room: int = 10**6) -> Question:
    members = [make_member("A", bandwidth=75.0, flops=1e9, room=room), make_member("B", bandwidth=150.0, flops=1e9)]
    return ask(make_spec([3] * 6, head_bytes=3, head_resident=3), members, context=1, concurrency=1)


def ids(*names: str) -> list[MemberId]:
    return [MemberId(name) for name in names]


@settings(max_examples=60)
@given(fleet=st.one_of(fleets(uniform=True), fleets(uniform=False)), data=st.data())
def test_a_persons_division_is_measured_and_guarded_like_any(fleet: Fleet, data: st.DataObject) -> None:
    ring = tuple(data.draw(st.permutations(range(len(fleet.members)))))
    counts = data.draw(st.sampled_from([*all_counts(fleet.spec.blocks, len(ring))]))
    question = ask(
        fleet.spec,
        fleet.members,
        context=fleet.context,
        concurrency=fleet.concurrency,
        pair_rtts=fleet.pair_rtts,
    )
    plan = plan_by_hand(question, [fleet.members[place].member for place in ring], counts)
    short = shortfalls(fleet, ring, counts)
    if short:
        first = next(place for place in ring if place in short)
        assert isinstance(plan, Refusal)
        assert plan.member == fleet.members[first].member
        assert plan.needs_bytes - plan.has_bytes == short[first]
        return
    assert isinstance(plan, Plan)
    found = measure(fleet, ring, counts)
    assert plan.search == "by-hand"
    assert [share.blocks for share in plan.shares] == list(counts)
    assert plan.figures.circuit_ms == pytest.approx(float(found.circuit) * 1000)
    assert plan.figures.bottleneck_ms == pytest.approx(float(found.bottleneck) * 1000)


def test_what_it_costs_next_to_the_planners_own() -> None:
    """Each part on A instead of B costs 20 ms a token, and a word is 4/3 tokens."""
    plan = plan_by_hand(pair(), ids("b", "a"), [3, 3])
    assert isinstance(plan, Plan)
    assert plan.advice == ("By hand each word comes 53 ms later than by Kafila's own plan.",)


def test_the_planners_own_division_by_hand_costs_nothing() -> None:
    own = answer(pair())
    assert isinstance(own, Plan)
    again = plan_by_hand(pair(), [share.member for share in own.shares], [share.blocks for share in own.shares])
    assert isinstance(again, Plan)
    assert again.figures == own.figures
    assert again.advice == ("By hand each word comes as soon as by Kafila's own plan.",)


def test_a_refusal_says_how_much_would_fit() -> None:
    refusal = plan_by_hand(pair(room=9), ids("a", "b"), [3, 3])
    assert isinstance(refusal, Refusal)
    assert refusal.sentence == "A is 3 bytes short."
    assert refusal.help == ("Give A 2 parts at most.",)
    refusal = plan_by_hand(pair(room=5), ids("a", "b"), [3, 3])
    assert isinstance(refusal, Refusal)
    assert refusal.help == ("A cannot hold any of these parts while it leads.",)


@pytest.mark.parametrize(
    ("ring", "counts"),
    [
        (ids("a"), [6]),
        (ids("a", "a"), [3, 3]),
        (ids("a", "b"), [3, 2]),
        (ids("a", "b"), [6, 0]),
        (ids("a", "b"), [2, 2, 2]),
    ],
)
def test_what_is_no_division_is_our_own_mistake(ring: list[MemberId], counts: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ring|counts"):
        plan_by_hand(pair(), ring, counts)


def test_without_times_there_is_nothing_to_compare() -> None:
    members = [make_member("A", flops=None), make_member("B")]
    question = ask(make_spec([1] * 4), members, context=1, concurrency=1)
    plan = plan_by_hand(question, ids("a", "b"), [1, 3])
    assert isinstance(plan, Plan)
    assert plan.advice == ()
