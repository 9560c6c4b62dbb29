"""The division that comes nearest to fitting, where none fits: what a refusal speaks of.

Nearest is the least total shortfall, then the fewest short members, then the first of them by
arrival. The three are one whole number, which adds up over the members of a chain.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kafila.planner.costs import UNLIMITED, Costs
from kafila.planner.ring_order import Order

NEVER = UNLIMITED << 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A ring from the head on, and counts that would overfill somebody by `shortfall` in all."""

    ring: tuple[int, ...]
    counts: tuple[int, ...]
    shortfall: int


class Shortage:
    """Counts how short members are, in one number for the three criteria."""

    def __init__(self, costs: Costs, arrival: Sequence[int]) -> None:
        self._costs = costs
        members = costs.members
        # An early member weighs more in the lowest field, and a larger field is taken off a
        # constant, so that of two equally long lists of short members the earlier one is less.
        self._unit = 1 << (members + members.bit_length() + 1)
        self._penalty = [(1 << members) - (1 << (members - 1 - place)) for place in arrival]

    def bytes_of(self, weight: int) -> int:
        """The total shortfall in a weight."""
        return weight // self._unit

    def extend(
        self, member: int, before: Sequence[int], needs: Sequence[int], *, head: bool
    ) -> tuple[list[int], list[int]]:
        """Let one more member take blocks: the least weight for every end, and where it began.

        What fits weighs nothing, so the start is a window minimum; what does not weighs linearly,
        so the start is a minimum over all earlier ones.
        """
        room = self._costs.rooms[member] - (self._costs.head_need if head else 0)
        unit, penalty = self._unit, self._penalty[member]
        after = [NEVER] * len(needs)
        cut = [0] * len(needs)
        window: deque[int] = deque()
        start = 0
        short, short_at = NEVER, 0
        for end in range(1, len(needs)):
            while window and before[window[-1]] >= before[end - 1]:
                window.pop()
            window.append(end - 1)
            while start < end and needs[end] - needs[start] > room:
                slope = before[start] - needs[start] * unit
                if before[start] < NEVER and slope <= short:
                    short, short_at = slope, start
                start += 1
            while window and window[0] < start:
                window.popleft()
            if window:
                after[end], cut[end] = before[window[0]], window[0]
            if short < NEVER:
                weight = short + (needs[end] - room) * unit + penalty
                if weight < after[end]:
                    after[end], cut[end] = weight, short_at
        return after, cut


def find_nearest(costs: Costs, arrival: Sequence[int], rings: Sequence[Order]) -> Nearest:
    """The nearest division of these rings, each read from the head on; of equal ones the first."""
    shortage = Shortage(costs, arrival)
    best: Nearest | None = None
    least = NEVER
    for ring in rings:
        weights = [0] + [NEVER] * costs.blocks
        cuts: list[list[int]] = []
        for place, member in enumerate(ring):
            weights, cut = shortage.extend(member, weights, costs.needs, head=place == 0)
            cuts.append(cut)
        if weights[-1] < least:
            least = weights[-1]
            best = Nearest(
                ring=ring,
                counts=trace_counts(cuts, costs.blocks),
                shortfall=shortage.bytes_of(least),
            )
    if best is None:
        message = "more members than blocks"
        raise ValueError(message)
    return best


def trace_counts(cuts: Sequence[Sequence[int]], blocks: int) -> tuple[int, ...]:
    """Read the counts back from the start that each member chose for each end."""
    end = blocks
    counts: list[int] = []
    for cut in reversed(cuts):
        counts.append(end - cut[end])
        end = cut[end]
    return tuple(reversed(counts))
