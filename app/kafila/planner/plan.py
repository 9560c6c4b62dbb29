"""The planner's front: who holds what, or who stands in the way and what would help."""

from collections.abc import Mapping, Sequence

from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Figures, Objective, Plan, Refusal
from kafila.planner.admission import refuse
from kafila.planner.advice import advise, figure_solution, plan_host_alone, plan_without
from kafila.planner.baselines import divide_by_memory, divide_evenly
from kafila.planner.costs import UNLIMITED
from kafila.planner.figures import figure, list_edges, list_shares
from kafila.planner.question import NOT_MEASURED, Candidate, Question, ask
from kafila.planner.solve import Solution, Workings, solve

__all__ = ["Candidate", "answer", "make_plan"]


def make_plan(
    spec: ModelSpec,
    members: Sequence[Candidate],
    *,
    context: int,
    concurrency: int,
    objective: Objective = Objective.FASTEST,
    pair_rtts: Mapping[frozenset[MemberId], float] = NOT_MEASURED,
) -> Plan | Refusal:
    """Divide a model among all members, of whom the first is the host.

    `pair_rtts` are measured round trips in milliseconds; they price direct edges. Raises
    ValueError as `ask` does.
    """
    question = ask(spec, members, context=context, concurrency=concurrency, objective=objective, pair_rtts=pair_rtts)
    return answer(question)


def answer(question: Question) -> Plan | Refusal:
    """The plan with its comparisons and advice, or the refusal with its help."""
    outcome = solve(question)
    return describe(outcome) if isinstance(outcome, Solution) else refuse(outcome)


def describe(solution: Solution) -> Plan:
    """A solution as a plan."""
    workings, placement = solution.workings, solution.placement
    question, counts = workings.question, placement.division.counts
    alone = figure(workings, placement.ring, counts, concurrency=1)
    host_first = _turn_to_host(placement.ring)
    rooms = [workings.costs.rooms[member] for member in host_first]
    known = rooms if UNLIMITED not in rooms else [1] * len(rooms)
    without = plan_without(solution)
    return Plan(
        objective=question.objective,
        tier=workings.costs.tier,
        tier_reason=workings.costs.tier_reason,
        shares=list_shares(workings, placement.ring, counts),
        edges=list_edges(workings, placement.ring),
        figures=figure_solution(solution),
        tokens_per_second_alone=alone.tokens_per_second,
        search="exact" if solution.exact else "heuristic",
        search_note=solution.note,
        uniform=_compare(workings, host_first, divide_evenly(workings.costs.blocks, len(rooms))),
        memory_proportional=_compare(workings, host_first, divide_by_memory(workings.costs.blocks, known)),
        host_alone=plan_host_alone(question),
        without=without,
        advice=advise(solution, without),
    )


def _turn_to_host(ring: Sequence[int]) -> tuple[int, ...]:
    host = ring.index(0)
    return (*ring[host:], *ring[:host])


def _compare(workings: Workings, ring: Sequence[int], counts: Sequence[int]) -> Figures:
    return figure(workings, ring, counts, concurrency=workings.question.concurrency)
