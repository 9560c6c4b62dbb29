"""Refusals: who is too small, by how much, and what would help."""

from kafila.domain.plan import Refusal
from kafila.planner.question import Question
from kafila.planner.solve import NoFit, TooMany, Workings
from kafila.planner.words import say_bytes, say_count


def refuse(outcome: NoFit | TooMany) -> Refusal:
    """The refusal that names the member who is short."""
    if isinstance(outcome, TooMany):
        return _refuse_too_many(outcome.question)
    workings, nearest = outcome.workings, outcome.nearest
    tiny = _find_tiny(workings)
    if tiny is not None:
        return tiny
    costs, members = workings.costs, workings.question.members
    first = 0
    short: list[tuple[int, int, int]] = []
    for place, (member, count) in enumerate(zip(nearest.ring, nearest.counts, strict=True)):
        need = costs.need_bytes(first, first + count, head=place == 0)
        if need > costs.rooms[member]:
            short.append((workings.question.arrival[member], member, need))
        first += count
    _, member, need = min(short)
    name, room = members[member].name, costs.rooms[member]
    return Refusal(
        member=members[member].member,
        sentence=f"{name} is {say_bytes(need - room)} short.",
        needs_bytes=need,
        has_bytes=room,
    )


def _refuse_too_many(question: Question) -> Refusal:
    parts, members = question.spec.blocks, len(question.members)
    return Refusal(
        member=None,
        sentence=(
            f"{question.spec.name} has {say_count(parts, 'part')} "
            f"and every computer holds at least one, but {members} are here."
        ),
        needs_bytes=0,
        has_bytes=0,
        help=(f"Start with {say_count(members - parts, 'computer')} fewer.",),
    )


def _find_tiny(workings: Workings) -> Refusal | None:
    """The first to arrive that cannot hold even the smallest block."""
    costs, question = workings.costs, workings.question
    least = min(costs.need_bytes(block, block + 1, head=False) for block in range(costs.blocks))
    tiny = [(question.arrival[member], member) for member in range(costs.members) if costs.rooms[member] < least]
    if not tiny:
        return None
    member = min(tiny)[1]
    name, room = question.members[member].name, costs.rooms[member]
    return Refusal(
        member=question.members[member].member,
        sentence=(
            f"{name} has no room for even one part: it needs {say_bytes(least)} and has {say_bytes(max(0, room))}."
        ),
        needs_bytes=least,
        has_bytes=room,
    )
