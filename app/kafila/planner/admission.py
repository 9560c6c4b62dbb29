"""Refusals: who is too small, by how much, and which single change would make it fit."""

from dataclasses import dataclass, replace

from kafila.domain.plan import Refusal, Remedies
from kafila.planner.alternatives import (
    add_member,
    find_largest,
    find_smallest,
    fits,
    fits_somehow,
    give_room,
    leave_out,
    scale_weights,
)
from kafila.planner.figures import list_shares
from kafila.planner.question import Question
from kafila.planner.ring_order import Order
from kafila.planner.solve import NoFit, TooMany, Workings
from kafila.planner.words import say_bytes, say_count, say_words

CONTEXT_STEP = 256
_FINENESS = 2000
"""Missing room is found to one part in so many of the model."""
_PERCENT_STEP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Short:
    """The member that a refusal names."""

    member: int
    needs: int
    has: int
    tiny: bool
    """It cannot hold even one block."""


def refuse(outcome: NoFit | TooMany) -> Refusal:
    """The refusal that names who is short."""
    if isinstance(outcome, TooMany):
        return _refuse_too_many(outcome.question)
    workings, nearest = outcome.workings, outcome.nearest
    short = _find_tiny(workings) or _find_short(outcome)
    remedies = _find_remedies(workings, nearest.ring, short)
    one = workings.question.members[short.member]
    lack = say_bytes(short.needs - short.has, up=True)
    if short.tiny:
        sentence = f"{one.name} is {lack} short of room for even one part."
    elif nearest.shortfall > short.needs - short.has:
        missing = say_bytes(nearest.shortfall, up=True)
        sentence = f"{one.name} is {lack} short, and {missing} are missing in all."
    else:
        sentence = f"{one.name} is {lack} short."
    return Refusal(
        member=one.member,
        sentence=sentence,
        needs_bytes=short.needs,
        has_bytes=short.has,
        help=_say_remedies(workings, one.name, remedies),
        remedies=remedies,
        shares=list_shares(workings, nearest.ring, nearest.counts),
    )


def _refuse_too_many(question: Question) -> Refusal:
    parts, members = question.spec.blocks, len(question.members)
    return Refusal(
        member=None,
        sentence=(
            f"{question.spec.name} has {say_count(parts, 'part')} and every computer holds at least one, "
            f"but {say_count(members, 'computer')} are here."
        ),
        needs_bytes=0,
        has_bytes=0,
        help=(f"Start with {say_count(members - parts, 'computer')} fewer.",),
    )


def _find_tiny(workings: Workings) -> _Short | None:
    """The first to arrive that cannot hold even the smallest block."""
    costs, arrival = workings.costs, workings.question.arrival
    least = min(costs.need_bytes(block, block + 1, head=False) for block in range(costs.blocks))
    tiny = [(arrival[member], member) for member in range(costs.members) if costs.rooms[member] < least]
    if not tiny:
        return None
    member = min(tiny)[1]
    return _Short(member=member, needs=least, has=costs.rooms[member], tiny=True)


def _find_short(outcome: NoFit) -> _Short:
    """The first to arrive of those that the nearest division overfills."""
    costs, arrival = outcome.workings.costs, outcome.workings.question.arrival
    short: list[tuple[int, int, int]] = []
    first = 0
    for place, (member, count) in enumerate(zip(outcome.nearest.ring, outcome.nearest.counts, strict=True)):
        need = costs.need_bytes(first, first + count, head=place == 0)
        if need > costs.rooms[member]:
            short.append((arrival[member], member, need))
        first += count
    _, member, need = min(short)
    return _Short(member=member, needs=need, has=costs.rooms[member], tiny=False)


def _find_remedies(workings: Workings, ring: Order, short: _Short) -> Remedies:
    """Try each change by itself on the memory of the same ring."""
    question, costs = workings.question, workings.costs
    everything = costs.needs[-1] + costs.head_need
    step = max(1, everything // _FINENESS)
    steps = find_smallest(
        1, -(-everything // step), lambda count: fits(add_member(costs, count * step), (*ring, costs.members))
    )
    room = find_smallest(
        short.has + 1, max(short.has + 1, everything), lambda room: fits(give_room(costs, short.member, room), ring)
    )
    percent = find_largest(
        1,
        100 // _PERCENT_STEP - 1,
        lambda count: fits_somehow(scale_weights(question, count * _PERCENT_STEP)),
    )
    return Remedies(
        context=_find_context(question),
        concurrency=find_largest(
            1, question.concurrency - 1, lambda count: fits_somehow(replace(question, concurrency=count))
        ),
        more_room_bytes=None if room is None else room - short.has,
        new_member_bytes=None if steps is None else steps * step,
        size_percent=None if percent is None else percent * _PERCENT_STEP,
        leave_out=short.member != 0 and fits_somehow(leave_out(question, short.member)),
    )


def _find_context(question: Question) -> int | None:
    """The longest shorter conversations that fit, in steps that are worth naming."""
    steps = find_largest(
        1,
        (question.context - 1) // CONTEXT_STEP,
        lambda count: fits_somehow(replace(question, context=count * CONTEXT_STEP)),
    )
    return None if steps is None else steps * CONTEXT_STEP


def _say_remedies(workings: Workings, name: str, remedies: Remedies) -> tuple[str, ...]:
    question, costs = workings.question, workings.costs
    said: list[str] = []
    if remedies.leave_out:
        said.append(f"Without {name} the model fits on the others.")
    if remedies.context is not None:
        said.append(
            f"Choose shorter conversations: up to {say_words(remedies.context)} each would fit, "
            f"which needs {_say_freed(question, replace(question, context=remedies.context))} less."
        )
    if remedies.concurrency is not None:
        fewer = replace(question, concurrency=remedies.concurrency)
        said.append(
            f"Let fewer people chat at once: {say_count(remedies.concurrency, 'conversation')} at a time would fit, "
            f"which needs {_say_freed(question, fewer)} less."
        )
    if remedies.new_member_bytes is not None:
        room = say_bytes(remedies.new_member_bytes, up=True)
        said.append(f"Let in one more computer with {room} of room or more.")
    if remedies.more_room_bytes is not None:
        said.append(f"Free {say_bytes(remedies.more_room_bytes, up=True)} on {name}, by closing programs there.")
    if remedies.size_percent is not None:
        said.append(
            f"Choose a smaller model: this one would fit at {remedies.size_percent} % of its size, "
            "for example in fewer bits."
        )
    needed = costs.needs[-1] + costs.head_need
    has = sum(costs.rooms)
    if needed > has:
        said.append(f"In all, {say_bytes(needed, up=True)} are needed and {say_bytes(has)} are here.")
    return tuple(said)


def _say_freed(question: Question, other: Question) -> str:
    fewer_tokens = question.context * question.concurrency - other.context * other.concurrency
    return say_bytes(fewer_tokens * sum(question.spec.kv_bytes_per_token))
