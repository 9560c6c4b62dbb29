"""Questions that differ in one thing: what if. And whether memory alone would allow them."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from kafila.planner.costs import UNLIMITED, Costs, build_costs
from kafila.planner.partition import build_chain
from kafila.planner.question import Question
from kafila.planner.ring_order import EXACT_MEMBERS, Order, build_network, find_exact_order, turn_round


def leave_out(question: Question, member: int) -> Question:
    """The same without one member, who is not the host."""
    stays = [place for place in range(len(question.members)) if place != member]
    ranks = sorted(question.arrival[place] for place in stays)
    return replace(
        question,
        members=tuple(question.members[place] for place in stays),
        arrival=tuple(ranks.index(question.arrival[place]) for place in stays),
    )


def scale_weights(question: Question, percent: int) -> Question:
    """The same with weights of another size."""
    spec = question.spec
    return replace(
        question,
        spec=msgspec.structs.replace(
            spec,
            block_bytes=tuple(size * percent // 100 for size in spec.block_bytes),
            head_resident_bytes=spec.head_resident_bytes * percent // 100,
        ),
    )


def add_member(costs: Costs, room: int) -> Costs:
    """The same memory with one more computer, of which nothing but its room is known."""
    # Whose times do not matter, so another's serve.
    return replace(
        costs,
        ticks=(*costs.ticks, costs.ticks[0]),
        head_ticks=(*costs.head_ticks, costs.head_ticks[0]),
        kinds=(*costs.kinds, *costs.kinds[:1]),
        rooms=(*costs.rooms, room),
    )


def give_room(costs: Costs, member: int, room: int) -> Costs:
    """The same memory with another room on one member."""
    rooms = list(costs.rooms)
    rooms[member] = room
    return replace(costs, rooms=tuple(rooms))


def fits(costs: Costs, order: Order) -> bool:
    """Whether memory allows a division of this order, whoever leads."""
    if costs.members > costs.blocks:
        return False
    return any(build_chain(costs, ring).probe(UNLIMITED).feasible for ring in turn_round(order))


def fits_somehow(question: Question) -> bool:
    """Whether memory allows a division of the cheapest order."""
    costs = build_costs(question)
    order = tuple(range(costs.members))
    if not costs.uniform and costs.members <= EXACT_MEMBERS:
        order = find_exact_order(build_network(question))
    return fits(costs, order)


def find_largest(least: int, most: int, allowed: Callable[[int], bool]) -> int | None:
    """The largest number in [least, most] that is allowed, where larger ones only get harder."""
    if least > most or not allowed(least):
        return None
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if allowed(middle) else (least, middle - 1)
    return least


def find_smallest(least: int, most: int, allowed: Callable[[int], bool]) -> int | None:
    """The smallest number in [least, most] that is allowed, where larger ones only get easier."""
    found = find_largest(-most, -least, lambda number: allowed(-number))
    return None if found is None else -found
