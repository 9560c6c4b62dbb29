"""Every order of a small ring at once, where blocks are unequal and the cheapest order fits nobody.

Dynamic programs over sets of members. They read the ring against its direction and end with the
head, so that what the other members can do together is worked out once for all heads.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from kafila.planner.costs import UNLIMITED, Costs
from kafila.planner.nearest import NEVER, Nearest, Shortage, trace_counts
from kafila.planner.ring_order import Network, Order


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """For a set of members: the least weight for every end, and how it came about."""

    weights: Sequence[int]
    cuts: Sequence[int]
    last: Sequence[int]


def find_nearest_of_all(costs: Costs, arrival: Sequence[int]) -> Nearest:
    """The nearest division over all orders and heads; its shortfall is 0 where some order fits."""
    shortage = Shortage(costs, arrival)
    needs = _mirror(costs.needs)
    everyone = (1 << costs.members) - 1
    steps = [_Step(weights=[0] + [NEVER] * costs.blocks, cuts=(), last=())]
    for group in range(1, everyone):
        steps.append(_grow(shortage, needs, steps, group))
    least, best_head, cut = NEVER, 0, [0]
    for head in range(costs.members):
        before = steps[everyone ^ (1 << head)].weights
        weights, starts = shortage.extend(head, before, needs, head=True)
        if weights[-1] < least:
            least, best_head, cut = weights[-1], head, starts
    ring, cuts = [best_head], [cut]
    group, end = everyone ^ (1 << best_head), cut[-1]
    while group:
        step = steps[group]
        ring.append(step.last[end])
        cuts.append(list(step.cuts))
        group ^= 1 << ring[-1]
        end = step.cuts[end]
    counts = trace_counts(cuts[::-1], costs.blocks)
    return Nearest(ring=tuple(ring), counts=counts[::-1], shortfall=shortage.bytes_of(least))


def _grow(shortage: Shortage, needs: Sequence[int], steps: Sequence[_Step], group: int) -> _Step:
    weights = [NEVER] * len(needs)
    cuts = [0] * len(needs)
    last = [0] * len(needs)
    for member in range(group.bit_length()):
        if not group >> member & 1:
            continue
        before = steps[group ^ (1 << member)].weights
        found, starts = shortage.extend(member, before, needs, head=False)
        for end, weight in enumerate(found):
            if weight < weights[end]:
                weights[end], cuts[end], last[end] = weight, starts[end], member
    return _Step(weights=weights, cuts=cuts, last=last)


def find_fitting_order(costs: Costs, network: Network) -> Order | None:
    """The order of least weight for which some head has a division that fits, from the host on.

    Of equal ones the host's is taken first, then heads by id, then neighbours by id.
    """
    least, best = UNLIMITED, None
    for head in range(costs.members):
        search = _HeadSearch(costs, network, head)
        found = search.run()
        if found is not None and found[0] < least:
            least, best = found
    if best is None:
        return None
    host = best.index(0)
    return (*best[host:], *best[:host])


class _HeadSearch:
    """All orders under one head: least ring weight per set, last member and end of blocks."""

    def __init__(self, costs: Costs, network: Network, head: int) -> None:
        self._costs = costs
        self._weights = network.weights
        self._head = head
        self._others = [member for member in range(costs.members) if member != head]
        self._needs = _mirror(costs.needs)
        self._ends: dict[tuple[int, int], list[int]] = {}

    def run(self) -> tuple[int, Order] | None:
        """The least weight, and its ring from the head on."""
        everyone = sum(1 << member for member in self._others)
        for group in range(1, everyone + 1):
            if group & ~everyone:
                continue
            for member in self._others:
                if group >> member & 1:
                    self._ends[group, member] = self._reach(member, self._before(group, member))
        return self._finish(everyone)

    def _before(self, group: int, member: int) -> list[int]:
        """The least weight at which `member` can begin, before its place in the ring is filled."""
        rest = group ^ (1 << member)
        if not rest:
            return [self._weights[member][self._head]] + [UNLIMITED] * self._costs.blocks
        rows = [
            [self._weights[member][after] + weight for weight in self._ends[rest, after]]
            for after in self._others
            if rest >> after & 1
        ]
        return [min(column) for column in zip(*rows, strict=True)]

    def _reach(self, member: int, before: Sequence[int]) -> list[int]:
        """The least weight for every end that the member's room allows: a window minimum."""
        needs, room = self._needs, self._costs.rooms[member]
        after = [UNLIMITED] * len(needs)
        window: deque[int] = deque()
        start = 0
        for end in range(1, len(needs)):
            while window and before[window[-1]] >= before[end - 1]:
                window.pop()
            window.append(end - 1)
            while start < end and needs[end] - needs[start] > room:
                start += 1
            while window and window[0] < start:
                window.popleft()
            if window and before[window[0]] < UNLIMITED:
                after[end] = before[window[0]]
        return after

    def _finish(self, everyone: int) -> tuple[int, Order] | None:
        needs, blocks = self._needs, self._costs.blocks
        room = self._costs.rooms[self._head] - self._costs.head_need
        if not everyone:
            return (0, (self._head,)) if needs[blocks] <= room else None
        least, found = UNLIMITED, None
        for member in self._others:
            for end in range(blocks):
                weight = self._ends[everyone, member][end] + self._weights[self._head][member]
                if weight < least and needs[blocks] - needs[end] <= room:
                    least, found = weight, (member, end)
        if found is None:
            return None
        return least, (self._head, *self._trace(everyone, *found))

    def _trace(self, group: int, member: int, end: int) -> list[int]:
        """The ring after the head: each next member is the first that explains the weight."""
        ring = [member]
        while rest := group ^ (1 << member):
            weight = self._ends[group, member][end]
            member, end = next(
                (after, start)
                for after in self._others
                if rest >> after & 1
                for start in range(end)
                if self._needs[end] - self._needs[start] <= self._costs.rooms[member]
                and self._ends[rest, after][start] + self._weights[member][after] == weight
            )
            ring.append(member)
            group = rest
        return ring


def _mirror(needs: Sequence[int]) -> list[int]:
    """Running sums of the same blocks in reverse order."""
    return [needs[-1] - need for need in reversed(needs)]
