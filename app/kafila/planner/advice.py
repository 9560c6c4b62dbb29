"""What each member costs and brings, and what shorter or fewer conversations would free.

Every sentence comes from planning the changed question. It is advice only: a session uses every
member that was let in.
"""

from dataclasses import replace

from kafila.domain.ids import MemberId
from kafila.domain.plan import Figures, Tier, Without
from kafila.planner.alternatives import leave_out
from kafila.planner.costs import TICKS_PER_MS
from kafila.planner.figures import figure
from kafila.planner.question import Question
from kafila.planner.ring_order import EXACT_MEMBERS
from kafila.planner.solve import NoFit, Solution, TooMany, solve, solve_along
from kafila.planner.words import say_bytes, say_ms_per_word

_NOTICEABLE = 0.01
_WORTH_SAYING = 0.05
_SUSPECTS = 3


def figure_solution(solution: Solution) -> Figures:
    """What the solution costs at the declared concurrency."""
    workings = solution.workings
    return figure(
        workings,
        solution.placement.ring,
        solution.placement.division.counts,
        concurrency=workings.question.concurrency,
    )


def plan_without(solution: Solution) -> tuple[Without, ...]:
    """The plan of the rest, member by member."""
    members = solution.workings.question.members
    return tuple(_judge(members[member].member, _solve_without(solution, member)) for member in _suspects(solution))


def _solve_without(solution: Solution, member: int) -> Solution | NoFit | TooMany:
    """The rest by itself; in a large ring, along the same order."""
    ring = solution.placement.ring
    rest = leave_out(solution.workings.question, member)
    if len(ring) <= EXACT_MEMBERS:
        return solve(rest, hint=True)
    return solve_along(rest, tuple(other - (other > member) for other in ring if other != member))


def plan_host_alone(question: Question) -> Figures | None:
    """The host by itself, where the model fits on it."""
    alone = solve(replace(question, members=question.members[:1], arrival=(0,)), hint=True)
    return figure_solution(alone) if isinstance(alone, Solution) else None


def _suspects(solution: Solution) -> list[int]:
    """Everyone but the host; of large rings those whose place in it costs most."""
    ring, edges = solution.placement.ring, solution.workings.network.edges
    if len(ring) <= EXACT_MEMBERS:
        return [member for member in ring if member != 0]

    def detour(place: int) -> int:
        one, member, other = ring[place - 1], ring[place], ring[(place + 1) % len(ring)]
        there, back, across = edges[one][member], edges[member][other], edges[one][other]
        return (there.price_us or 0) + (back.price_us or 0) - (across.price_us or 0)

    places = sorted(range(len(ring)), key=detour, reverse=True)
    return [ring[place] for place in places if ring[place] != 0][:_SUSPECTS]


def _judge(member: MemberId, rest: Solution | NoFit | TooMany) -> Without:
    if isinstance(rest, Solution):
        return Without(member=member, missing_bytes=0, figures=figure_solution(rest))
    missing = rest.nearest.shortfall if isinstance(rest, NoFit) else 0
    return Without(member=member, missing_bytes=missing, figures=None)


def advise(solution: Solution, without: tuple[Without, ...]) -> tuple[str, ...]:
    """Who holds the ring up first, then who is needed, then what memory could be freed."""
    lines = [_say_member(solution, one) for one in without]
    lines.sort(key=lambda line: line[0])
    return (*(text for _, text in lines), *_say_memory(solution))


def _say_member(solution: Solution, without: Without) -> tuple[int, str]:
    """A rank and a sentence."""
    question = solution.workings.question
    name = question.name_of(without.member)
    rooms = {one.member: one.capability.room_bytes for one in question.members}
    room = rooms[without.member]
    brings = "" if room is None else f"{name} brings {say_bytes(room)} of room"
    if without.figures is None:
        missing = say_bytes(without.missing_bytes, up=True)
        return 1, f"{brings or name + ' is needed'}; without it {missing} would be missing."
    if without.figures.circuit_ms is None:
        return 2, f"Without {name} the model still fits."
    with_ms = _token_ms(figure_solution(solution), question.concurrency)
    gain_ms = with_ms - _token_ms(without.figures, question.concurrency)
    if gain_ms > _NOTICEABLE * with_ms:
        return 0, f"Without {name} each word comes {say_ms_per_word(gain_ms)} sooner and the model still fits."
    if gain_ms < -_NOTICEABLE * with_ms:
        return 2, f"With {name} each word comes {say_ms_per_word(-gain_ms)} sooner."
    return 3, f"{name} hardly changes the speed, and the model also fits without it."


def _token_ms(figures: Figures, concurrency: int) -> float:
    """The time between two tokens of one conversation."""
    rate = figures.tokens_per_second
    return concurrency * 1000 / rate if rate else 0.0


def _say_memory(solution: Solution) -> tuple[str, ...]:
    """What half the length or one person fewer would free, and whether that buys speed."""
    question = solution.workings.question
    kv_bytes = sum(question.spec.kv_bytes_per_token)
    if not kv_bytes:
        return ()
    lines: list[str] = []
    if question.context > 1:
        shorter = replace(question, context=question.context // 2)
        freed = kv_bytes * question.concurrency * (question.context - shorter.context)
        lines.append(f"Conversations half as long would free {say_bytes(freed)}{_say_speed(solution, shorter)}.")
    if question.concurrency > 1:
        fewer = replace(question, concurrency=question.concurrency - 1)
        freed = kv_bytes * question.context
        lines.append(f"One person fewer at once would free {say_bytes(freed)}{_say_speed(solution, fewer)}.")
    return tuple(lines)


def _say_speed(solution: Solution, other: Question) -> str:
    ring = solution.placement.ring
    changed = solve(other, hint=True) if len(ring) <= EXACT_MEMBERS else solve_along(other, ring)
    if solution.workings.costs.tier is not Tier.FULL or not isinstance(changed, Solution):
        return ""
    gain = solution.token_ticks - changed.token_ticks
    if gain < _WORTH_SAYING * solution.token_ticks:
        return ""
    return f" and make each word come {say_ms_per_word(gain / TICKS_PER_MS)} sooner"
