"""Which member leads, and how the blocks are divided then: every rotation of the ring, exactly.

Two goals. Both reduce to one number to be made small, and to the question whether a division
exists that keeps it under a target; so a whole rotation is ruled out by one look at its chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kafila.planner.costs import UNLIMITED, Costs
from kafila.planner.partition import Chain, Division, Filling, build_chain

HEAD_MARGIN_PERCENT = 5
"""Another head must be better than the host by more than this: μ in the paper, for noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A ring read from the head on, and what each of its members holds."""

    ring: tuple[int, ...]
    division: Division


class Goal(Protocol):
    """What is to be made small."""

    def value(self, division: Division) -> int:
        """The number to be made small."""
        ...

    def bound(self, target: int) -> int:
        """The longest stage of any division whose value is at most `target`."""
        ...

    def next_target(self, filling: Filling) -> int:
        """The next larger target that could be met, after one that was not."""
        ...

    def target_to_beat(self, host_value: int) -> int:
        """The largest value that is better than the host's by more than the margin."""
        ...


@dataclass(frozen=True, slots=True)
class ShortestBottleneck:
    """The paper's goal: the longest stage."""

    def value(self, division: Division) -> int:
        """See `Goal`."""
        return division.bottleneck

    def bound(self, target: int) -> int:
        """See `Goal`."""
        return target

    def next_target(self, filling: Filling) -> int:
        """See `Goal`."""
        return filling.next_bound

    def target_to_beat(self, host_value: int) -> int:
        """Below (1 - μ) of the host's."""
        return ((100 - HEAD_MARGIN_PERCENT) * host_value - 1) // 100


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestRate:
    """Most tokens per second at c conversations: rate = min(c / circuit, 1 / longest stage).

    Made small is c / rate, the time between two tokens of one conversation, which is the larger
    of the circuit and c times the longest stage.
    """

    hop_ticks: int
    concurrency: int

    def value(self, division: Division) -> int:
        """See `Goal`."""
        return max(division.total + self.hop_ticks, self.concurrency * division.bottleneck)

    def bound(self, target: int) -> int:
        """See `Goal`."""
        return target // self.concurrency

    def next_target(self, filling: Filling) -> int:
        """See `Goal`: either a longer stage is let in, or the circuit is let be as long as it is."""
        longer_stage = self.concurrency * filling.next_bound
        if filling.division is None:
            return longer_stage
        return min(longer_stage, filling.division.total + self.hop_ticks)

    def target_to_beat(self, host_value: int) -> int:
        """A rate above (1 + μ) of the host's."""
        return (100 * host_value - 1) // (100 + HEAD_MARGIN_PERCENT)


def solve_chain(chain: Chain, goal: Goal) -> Division | None:
    """The best division with this head: least value, then shortest bottleneck, then circuit."""
    best = chain.fill(UNLIMITED).division
    if best is None:
        return None
    floor = 0
    while floor < goal.value(best):
        target = (floor + goal.value(best)) // 2
        filling = chain.fill(goal.bound(target))
        if filling.division is not None and goal.value(filling.division) <= target:
            best = filling.division
        else:
            floor = goal.next_target(filling)
    return _even_out(chain, goal, best)


def _even_out(chain: Chain, goal: Goal, best: Division) -> Division:
    """The shortest bottleneck that keeps the value."""
    value = goal.value(best)
    floor, bound = 0, best.bottleneck - 1
    while floor < best.bottleneck:
        filling = chain.fill(bound)
        if filling.division is not None and goal.value(filling.division) <= value:
            best = filling.division
        else:
            floor = filling.next_bound
        bound = (floor + best.bottleneck) // 2
    return best


def place(costs: Costs, order: Sequence[int], goal: Goal, *, host_leads: bool = False) -> Placement | None:
    """The best head and division for an order that begins with the host; None: nothing fits.

    With `host_leads` another head is taken only where the host cannot hold it. Of equal heads the
    first after the host in the ring leads.
    """
    ring = tuple(order)
    division = solve_chain(build_chain(costs, ring), goal)
    best = None if division is None else Placement(ring=ring, division=division)
    if best is not None and host_leads:
        return best
    target = UNLIMITED if best is None else goal.target_to_beat(goal.value(best.division))
    challenger: Placement | None = None
    for turn in range(1, len(order)):
        ring = (*order[turn:], *order[:turn])
        chain = build_chain(costs, ring)
        first_look = chain.fill(goal.bound(target)).division
        if first_look is None or goal.value(first_look) > target:
            continue
        division = solve_chain(chain, goal)
        if division is None:
            continue
        if challenger is None or _rank(goal, division) < _rank(goal, challenger.division):
            challenger = Placement(ring=ring, division=division)
            target = goal.value(division)
    return challenger or best


def _rank(goal: Goal, division: Division) -> tuple[int, int, int]:
    return goal.value(division), division.bottleneck, division.total
