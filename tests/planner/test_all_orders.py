"""Dearer orders, where the cheapest leaves no division that fits."""

from hypothesis import assume, given, settings

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal
from kafila.planner.all_orders import find_fitting_order
from kafila.planner.nearest import find_nearest
from kafila.planner.plan import make_plan
from kafila.planner.question import ask
from kafila.planner.ring_order import turn_round
from kafila.planner.solve import work_out
from planner.brute_force import Fleet, all_counts, all_orders, rotations, shortfalls
from planner.samples import at, make_member, make_spec
from planner.strategies import fleets


def test_the_next_order_is_taken_and_said_to_be() -> None:
    """Only A can lead, then it holds one block, and the next is one that only C can hold."""
    members = [make_member("A", room=11), make_member("B", room=1), make_member("C", room=5)]
    plan = make_plan(make_spec([1, 5, 1], head_resident=10), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert [share.member for share in plan.shares] == ["a", "c", "b"]
    assert "the next one" in plan.search_note
    assert plan.search == "exact"


def test_of_all_heads_the_one_with_the_lightest_order_decides() -> None:
    """D alone holds the large block, so it stands after the head, which is A or C by room.

    After A the ring costs 22 at least; C and D are far from each other.
    """
    rooms = {"A": (2, 0.0), "B": (1, 1.0), "C": (2, 2.0), "D": (5, 10.0)}
    members = [make_member(name, room=room, reach=at(rtt_ms)) for name, (room, rtt_ms) in rooms.items()]
    pair_rtts = {frozenset((MemberId("c"), MemberId("d"))): 100.0}
    spec = make_spec([1, 5, 1, 1], head_resident=1)
    workings = work_out(ask(spec, members, context=1, concurrency=1, pair_rtts=pair_rtts))
    assert find_fitting_order(workings.costs, workings.network) == (0, 3, 1, 2)


@settings(max_examples=60)
@given(fleet=fleets(uniform=False, most_members=4, most_blocks=7))
def test_the_lightest_order_that_fits_is_found(fleet: Fleet) -> None:
    question = ask(
        fleet.spec,
        fleet.members,
        context=fleet.context,
        concurrency=fleet.concurrency,
        pair_rtts=fleet.pair_rtts,
    )
    workings = work_out(question)
    by_place = [fleet.members.index(fleet.members[place]) for place in question.arrival]

    def fits(order: tuple[int, ...]) -> bool:
        return any(
            not shortfalls(fleet, ring, counts)
            for ring in rotations(order)
            for counts in all_counts(fleet.spec.blocks, len(order))
        )

    fitting = [order for order in all_orders(fleet) if fits(order)]
    found = find_fitting_order(workings.costs, workings.network)
    if not fitting:
        assert found is None
        return
    assert found is not None
    assert found[0] == 0
    places = {arrival: place for place, arrival in enumerate(by_place)}
    assert workings.network.weigh(found) == min(
        workings.network.weigh([places[member] for member in order]) for order in fitting
    )


@settings(max_examples=60)
@given(fleet=fleets(uniform=False, most_members=4, most_blocks=7))
def test_the_nearest_of_one_order_is_no_nearer_than_that_of_all(fleet: Fleet) -> None:
    refusal = make_plan(fleet.spec, fleet.members, context=fleet.context, concurrency=fleet.concurrency)
    assume(isinstance(refusal, Refusal))
    assert isinstance(refusal, Refusal)
    workings = work_out(ask(fleet.spec, fleet.members, context=fleet.context, concurrency=fleet.concurrency))
    one = find_nearest(workings.costs, workings.question.arrival, turn_round(tuple(range(len(fleet.members)))))
    missing = sum(max(0, share.need_bytes - (share.room_bytes or 0)) for share in refusal.shares)
    assert 0 < missing <= one.shortfall
