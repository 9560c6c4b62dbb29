"""What members cost and bring."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafila.domain.capability import Mapping, Reachability
from kafila.domain.plan import Objective, Plan, Refusal
from kafila.planner.plan import make_plan
from planner.brute_force import Fleet
from planner.samples import make_member, make_spec
from planner.strategies import fleets

GB = 10**9
FAR = Reachability(mapping=Mapping.UDP_BLOCKED, rendezvous_rtt_ms=60.0)
HERE = Reachability(rendezvous_rtt_ms=1.0, lan="home")


@settings(max_examples=60)
@given(fleet=st.one_of(fleets(uniform=True), fleets(uniform=False)), objective=st.sampled_from(Objective))
def test_the_plan_without_a_member_is_the_plan_of_the_rest(fleet: Fleet, objective: Objective) -> None:
    def plan(members: tuple[int, ...]) -> Plan | Refusal:
        return make_plan(
            fleet.spec,
            [fleet.members[place] for place in members],
            context=fleet.context,
            concurrency=fleet.concurrency,
            objective=objective,
            pair_rtts=fleet.pair_rtts,
        )

    everyone = tuple(range(len(fleet.members)))
    whole = plan(everyone)
    assume(isinstance(whole, Plan))
    assert isinstance(whole, Plan)
    assert {one.member for one in whole.without} == {one.member for one in fleet.members[1:]}
    for place in everyone[1:]:
        rest = plan(tuple(other for other in everyone if other != place))
        without = next(one for one in whole.without if one.member == fleet.members[place].member)
        if isinstance(rest, Plan):
            assert (without.figures, without.missing_bytes) == (rest.figures, 0)
        else:
            assert without.figures is None
            assert without.missing_bytes > 0
    alone = plan((0,))
    assert whole.host_alone == (alone.figures if isinstance(alone, Plan) else None)


def advise(*others: tuple[str, Reachability, float, int], room: int, concurrency: int = 1) -> tuple[str, ...]:
    host = make_member("Desk", bandwidth=100e9, flops=1e15, room=room, reach=HERE)
    members = [
        make_member(name, bandwidth=bandwidth, flops=1e15, room=space, reach=reach)
        for name, reach, bandwidth, space in others
    ]
    plan = make_plan(make_spec([GB] * 10, kv=100_000), [host, *members], context=1000, concurrency=concurrency)
    assert isinstance(plan, Plan)
    return plan.advice


def test_a_member_that_holds_the_ring_up() -> None:
    """One block less on the host saves 10 ms; two relayed hops cost 61 ms. A word is 4/3 tokens."""
    advice = advise(("Attic mini", FAR, 100e9, 20 * GB), room=20 * GB)
    assert advice[0] == "Without Attic mini each word comes 81 ms sooner and the model still fits."


def test_a_member_without_whom_it_does_not_fit() -> None:
    advice = advise(("Attic mini", FAR, 100e9, 20 * GB), room=6 * GB)
    assert advice[0] == "Attic mini brings 20.0 GB of room; without it 5.0 GB would be missing."


def test_a_member_that_makes_words_come_sooner() -> None:
    """Nine of ten blocks at 1 ms instead of 10 ms."""
    advice = advise(("Attic mini", HERE, 1000e9, 20 * GB), room=20 * GB)
    assert advice[0] == "With Attic mini each word comes 108 ms sooner."


def test_a_member_that_changes_nothing() -> None:
    advice = advise(("Attic mini", HERE, 100e9, 20 * GB), room=20 * GB)
    assert advice[0] == "Attic mini hardly changes the speed, and the model also fits without it."


def test_who_holds_the_ring_up_is_spoken_of_first() -> None:
    advice = advise(("Aside", HERE, 100e9, 20 * GB), ("Zero", FAR, 100e9, 20 * GB), room=20 * GB)
    assert advice[0].startswith("Without Zero")


def test_what_shorter_and_fewer_conversations_free() -> None:
    advice = advise(room=30 * GB, concurrency=2)
    assert advice == (
        "Conversations half as long would free 1.0 GB.",
        "One person fewer at once would free 1.0 GB and make each word come 133 ms sooner.",
    )


def test_without_times_only_room_is_spoken_of() -> None:
    members = [make_member("Desk", flops=None, room=100), make_member("Den", room=100)]
    plan = make_plan(make_spec([10] * 4), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.advice == ("Without Den the model still fits.",)


def test_in_a_large_ring_the_longest_detours_are_looked_at() -> None:
    members = [
        make_member(f"M{number:02}", reach=FAR if number == 7 else HERE, bandwidth=1000.0 + number)
        for number in range(12)
    ]
    plan = make_plan(make_spec([1] * 20), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.without[0].member == "m07"
    assert len(plan.without) == 3
    assert plan.advice[0].startswith("Without M07")
