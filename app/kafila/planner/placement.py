"""Which member leads, and how the blocks are divided then: every rotation of the ring, exactly.

Two goals. Both reduce to one number to be made small, and to the question whether a division
exists that keeps it under a target; so a whole rotation is ruled out by one look at its chain.
"""

from dataclasses import dataclass
from typing import Protocol

from kafila.planner.costs import UNLIMITED, Costs
from kafila.planner.partition import Chain, Division, Filling, build_chain
from kafila.planner.ring_order import Order, turn_round

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

    def solve(self, chain: Chain) -> Division | None:
        """The best division: least value, then shortest bottleneck, then shortest circuit."""
        ...

    def reaches(self, chain: Chain, target: int) -> bool:
        """Whether some division has a value of at most `target`."""
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

    def solve(self, chain: Chain) -> Division | None:
        """See `Goal`."""
        shortest = find_shortest_bottleneck(chain)
        return None if shortest is None else chain.fill(shortest).division

    def reaches(self, chain: Chain, target: int) -> bool:
        """See `Goal`."""
        return chain.probe(target).feasible

    def target_to_beat(self, host_value: int) -> int:
        """Below (1 - μ) of the host's."""
        return (_round_off((100 - HEAD_MARGIN_PERCENT) * host_value) - 1) // 100


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

    def solve(self, chain: Chain) -> Division | None:
        """See `Goal`. Halves the interval between a value that is met and one that is not.

        The least total of all is known from the start, and no circuit is shorter.
        """
        best = chain.fill(UNLIMITED).division
        if best is None:
            return None
        floor = best.total + self.hop_ticks
        while floor < self.value(best):
            target = (floor + self.value(best)) // 2
            filling = self._fill(chain, target)
            if filling.division is not None and self.value(filling.division) <= target:
                best = filling.division
            else:
                floor = self._next_target(filling)
        return self._even_out(chain, best)

    def reaches(self, chain: Chain, target: int) -> bool:
        """See `Goal`."""
        if chain.underestimate(target // self.concurrency) + self.hop_ticks > target:
            return False
        division = self._fill(chain, target).division
        return division is not None and self.value(division) <= target

    def target_to_beat(self, host_value: int) -> int:
        """A rate above (1 + μ) of the host's."""
        return (_round_off(100 * host_value) - 1) // (100 + HEAD_MARGIN_PERCENT)

    def _fill(self, chain: Chain, target: int) -> Filling:
        bound = target // self.concurrency
        probe = chain.probe(bound)
        return chain.fill(bound) if probe.feasible else Filling(division=None, next_bound=probe.next_bound)

    def _next_target(self, filling: Filling) -> int:
        """The next target that can be met: with a longer stage, or with the circuit as it is."""
        longer_stage = self.concurrency * filling.next_bound
        if filling.division is None:
            return longer_stage
        return min(longer_stage, filling.division.total + self.hop_ticks)

    def _even_out(self, chain: Chain, best: Division) -> Division:
        """The shortest bottleneck that keeps the value."""
        value = self.value(best)
        floor, bound = 0, best.bottleneck - 1
        while floor < best.bottleneck:
            filling = chain.fill(bound)
            if filling.division is not None and self.value(filling.division) <= value:
                best = filling.division
            else:
                floor = filling.next_bound
            bound = (floor + best.bottleneck) // 2
        return best


def _round_off(value: int) -> int:
    """A little less: what is better only by the rounding of speeds to ticks is not better."""
    return value - value // 10**12


def find_shortest_bottleneck(chain: Chain) -> int | None:
    """The least bound that some division keeps; None: memory allows none at all.

    After a bound that fails, the next one at which anything changes is tried itself: it is the
    answer, or the floor rises to the one after it.
    """
    floor, best = 0, chain.longest
    if not chain.probe(best).feasible:
        return None
    while floor < best:
        middle = (floor + best) // 2
        probe = chain.probe(middle)
        if probe.feasible:
            best = middle
            continue
        probe = chain.probe(floor := probe.next_bound)
        if probe.feasible:
            return floor
        floor = probe.next_bound
    return best


def place(costs: Costs, order: Order, goal: Goal, *, host_leads: bool = False) -> Placement | None:
    """The best head and division for an order that begins with the host; None: nothing fits.

    With `host_leads` another head is taken only where the host cannot hold it. Of equal heads the
    first after the host in the ring leads.
    """
    division = goal.solve(build_chain(costs, order))
    best = None if division is None else Placement(ring=order, division=division)
    if best is not None and host_leads:
        return best
    target = UNLIMITED if best is None else goal.target_to_beat(goal.value(best.division))
    challenger: Placement | None = None
    for ring in turn_round(order)[1:]:
        chain = build_chain(costs, ring)
        division = goal.solve(chain) if goal.reaches(chain, target) else None
        if division is None:
            continue
        if challenger is None or _rank(goal, division) < _rank(goal, challenger.division):
            challenger = Placement(ring=ring, division=division)
            target = goal.value(division)
    return challenger or best


def _rank(goal: Goal, division: Division) -> tuple[int, int, int]:
    return goal.value(division), division.bottleneck, division.total
