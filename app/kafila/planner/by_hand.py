"""Divisions that a person makes, and what they cost next to the planner's own.

Admission guards here too: a division that does not fit is refused, whoever made it.
"""

from collections.abc import Sequence

import msgspec

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal, Tier
from kafila.planner.costs import TICKS_PER_MS, Costs
from kafila.planner.figures import list_shares
from kafila.planner.partition import Division
from kafila.planner.placement import Placement
from kafila.planner.plan import describe
from kafila.planner.question import Question
from kafila.planner.solve import Solution, Workings, solve, work_out
from kafila.planner.words import say_bytes, say_count, say_ms_per_word


def plan_by_hand(question: Question, ring: Sequence[MemberId], counts: Sequence[int]) -> Plan | Refusal:
    """The division of a ring, read from the head on, by these counts.

    Raises ValueError where the ring is not one of all members, or the counts are not those of all
    blocks with at least one for everyone.
    """
    if sorted(ring) != sorted(one.member for one in question.members):
        message = "the ring does not hold every member once"
        raise ValueError(message)
    if len(counts) != len(ring) or min(counts) < 1 or sum(counts) != question.spec.blocks:
        message = "the counts do not share out all blocks"
        raise ValueError(message)
    workings = work_out(question)
    places = tuple(question.place_of(member) for member in ring)
    refusal = _guard(workings, places, counts)
    if refusal is not None:
        return refusal
    solution = hold_to(workings, places, counts)
    return msgspec.structs.replace(describe(solution), search="by-hand", advice=_compare(solution))


def hold_to(workings: Workings, ring: tuple[int, ...], counts: Sequence[int]) -> Solution:
    """A given division in the form of a solution."""
    stages: list[int] = []
    first = 0
    for member, count in zip(ring, counts, strict=True):
        stages.append(workings.costs.stage_ticks(member, first, first + count, head=not stages))
        first += count
    division = Division(counts=tuple(counts), total=sum(stages), bottleneck=max(stages))
    return Solution(workings=workings, placement=Placement(ring=ring, division=division), exact=False, note="")


def _guard(workings: Workings, ring: Sequence[int], counts: Sequence[int]) -> Refusal | None:
    """The refusal of the first in the ring that is too small for its share."""
    costs = workings.costs
    first = 0
    for place, (member, count) in enumerate(zip(ring, counts, strict=True)):
        need, room = costs.need_bytes(first, first + count, head=place == 0), costs.rooms[member]
        if need > room:
            one = workings.question.members[member]
            return Refusal(
                member=one.member,
                sentence=f"{one.name} is {say_bytes(need - room, up=True)} short.",
                needs_bytes=need,
                has_bytes=room,
                help=(_say_most(costs, one.name, room, range(first, first + count), head=place == 0),),
                shares=list_shares(workings, ring, counts),
            )
        first += count
    return None


def _say_most(costs: Costs, name: str, room: int, held: range, *, head: bool) -> str:
    """How many blocks from the same start on the member could hold."""
    most = next((end - held.start for end in reversed(held) if costs.need_bytes(held.start, end, head=head) <= room), 0)
    if most == 0:
        return f"{name} cannot hold any of these parts{' while it leads' if head else ''}."
    return f"Give {name} {say_count(most, 'part')} at most."


def _compare(solution: Solution) -> tuple[str, ...]:
    """What the person's division costs next to the planner's."""
    best = solve(solution.workings.question, hint=True)
    if not isinstance(best, Solution) or best.workings.costs.tier is not Tier.FULL:
        return ()
    later = solution.token_ticks - best.token_ticks
    if later > 0:
        return (f"By hand each word comes {say_ms_per_word(later / TICKS_PER_MS)} later than by Kafila's own plan.",)
    if later < 0:
        return (f"By hand each word comes {say_ms_per_word(-later / TICKS_PER_MS)} sooner than by Kafila's own plan.",)
    return ("By hand each word comes as soon as by Kafila's own plan.",)
