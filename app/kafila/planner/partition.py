"""Dividing a chain of blocks among members in a fixed order (section V.C of the paper).

A chain answers one question: of all divisions whose stages stay within a bound and within the
members' memory, with at least one block each, which has the least total time? Everything that the
planner optimises is found by asking it at the right bounds.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kafila.planner.costs import UNLIMITED, BlockKind, Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How many blocks each member of a chain holds, from the head on."""

    counts: tuple[int, ...]
    total: int
    """All stages together, in ticks."""
    bottleneck: int
    """The longest stage, in ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The answer at one bound."""

    division: Division | None
    next_bound: int
    """The next larger bound at which the answer can differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Whether any division exists at one bound."""

    feasible: bool
    next_bound: int
    """The next larger bound at which the answer can differ."""


class Chain(Protocol):
    """Members in ring order from the head on, with the blocks that they are to share."""

    @property
    def longest(self) -> int:
        """A bound that every stage keeps."""
        ...

    def probe(self, bound: int) -> Probe:
        """Whether `fill` would find a division, for less."""
        ...

    def underestimate(self, bound: int) -> int:
        """Quick to know: no division that `fill` would find has a smaller total."""
        ...

    def fill(self, bound: int) -> Filling:
        """The division of least total time with no stage above `bound` ticks.

        Of equal ones, the one that gives the members later in the ring fewer blocks, the last
        member first.
        """
        ...


class UniformChain:
    """A chain of equal blocks: the fastest members are filled first, which is exact here."""

    def __init__(self, *, ticks: Sequence[int], extras: Sequence[int], limits: Sequence[int], blocks: int) -> None:
        self._ticks = ticks
        self._extras = extras
        self._limits = limits
        self._blocks = blocks
        self._fastest_first = sorted(range(len(ticks)), key=lambda place: (ticks[place], place))

    @property
    def longest(self) -> int:
        """See `Chain.longest`."""
        return max(self._extras) + max(self._ticks) * self._blocks

    def probe(self, bound: int) -> Probe:
        """See `Chain.probe`."""
        caps, next_bound = self._cap(bound)
        return Probe(feasible=min(caps) >= 1 and sum(caps) >= self._blocks, next_bound=next_bound)

    def underestimate(self, bound: int) -> int:
        """See `Chain.underestimate`."""
        division = self.fill(bound).division
        return UNLIMITED if division is None else division.total

    def _cap(self, bound: int) -> tuple[list[int], int]:
        """How many blocks each member can take, and the next bound at which one can take more."""
        caps: list[int] = []
        next_bound = UNLIMITED
        for ticks, extra, limit in zip(self._ticks, self._extras, self._limits, strict=True):
            within = (bound - extra) // ticks if ticks else limit if bound >= extra else 0
            cap = max(0, min(limit, within))
            caps.append(cap)
            if cap < limit:
                next_bound = min(next_bound, extra + (cap + 1) * ticks)
        return caps, next_bound

    def fill(self, bound: int) -> Filling:
        """See `Chain.fill`."""
        caps, next_bound = self._cap(bound)
        if min(caps) < 1 or sum(caps) < self._blocks:
            return Filling(division=None, next_bound=next_bound)
        counts = [1] * len(caps)
        left = self._blocks - len(caps)
        for place in self._fastest_first:
            more = min(caps[place] - 1, left)
            counts[place] += more
            left -= more
        stages = [extra + count * ticks for count, ticks, extra in zip(counts, self._ticks, self._extras, strict=True)]
        division = Division(counts=tuple(counts), total=sum(stages), bottleneck=max(stages))
        return Filling(division=division, next_bound=next_bound)


class MixedChain:
    """A chain of unequal blocks: a dynamic program over the cut positions.

    A pass from left to right that takes as much as it can is wrong here: with blocks 1, 1, 5, 1
    and limits 2, 1, 6 it leaves the second member only a block that it cannot hold.
    """

    def __init__(
        self,
        *,
        ticks: Sequence[Sequence[int]],
        extras: Sequence[int],
        needs: Sequence[int],
        rooms: Sequence[int],
        kinds: Sequence[Sequence[BlockKind]],
    ) -> None:
        self._ticks = ticks
        self._extras = extras
        self._needs = needs
        self._rooms = rooms
        self._blocks = len(needs) - 1
        self._kinds = kinds
        need = min(kind.need for kind in kinds[0])
        self._cheapest = UniformChain(
            ticks=[min(kind.ticks for kind in row) for row in kinds],
            extras=extras,
            limits=_limit_blocks(rooms, need, self._blocks),
            blocks=self._blocks,
        )

    @property
    def longest(self) -> int:
        """See `Chain.longest`."""
        return max(self._extras) + max(row[-1] for row in self._ticks)

    def probe(self, bound: int) -> Probe:
        """See `Chain.probe`: the ends that each member can reach, as a set of bits.

        Where a member can hold any single block, an unbroken run of starts gives an unbroken run
        of ends, up to what the last start reaches. Only ends behind a block that is too large for
        it fall out. So a set is a few runs, and mostly one.
        """
        ends, next_bound = 1, UNLIMITED
        for place in range(len(self._rooms)):
            ends, nearest = self._reach(place, ends, bound)
            next_bound = min(next_bound, nearest)
        return Probe(feasible=bool(ends >> self._blocks & 1), next_bound=next_bound)

    def underestimate(self, bound: int) -> int:
        """See `Chain.underestimate`: as if every block were each member's cheapest."""
        return self._cheapest.underestimate(bound)

    def _reach(self, place: int, starts: int, bound: int) -> tuple[int, int]:
        ticks, needs = self._ticks[place], self._needs
        extra, room = self._extras[place], self._rooms[place]
        blocked, nearest = self._find_blocked(place, bound)
        ends = 0
        while starts:
            low = (starts & -starts).bit_length() - 1
            high = low + ((starts >> low) ^ ((starts >> low) + 1)).bit_length() - 2
            starts = starts >> (high + 1) << (high + 1)
            held = bisect_right(needs, needs[high] + room) - 1
            done = bisect_right(ticks, ticks[high] + bound - extra) - 1
            if done < held:
                nearest = min(nearest, ticks[done + 1] - ticks[high] + extra)
            end = min(held, done, self._blocks)
            if end > low:
                ends |= (1 << (end + 1)) - (1 << (low + 1))
        return ends & ~blocked, nearest

    def _find_blocked(self, place: int, bound: int) -> tuple[int, int]:
        """The ends behind a block that is too large by itself, and the next bound that frees one."""
        extra, room = self._extras[place], self._rooms[place]
        blocked, nearest = 0, UNLIMITED
        for kind in self._kinds[place]:
            if kind.need > room:
                blocked |= kind.ends
            elif kind.ticks + extra > bound:
                blocked |= kind.ends
                nearest = min(nearest, kind.ticks + extra)
        return blocked, nearest

    def fill(self, bound: int) -> Filling:
        """See `Chain.fill`."""
        totals = [0] + [UNLIMITED] * self._blocks
        next_bound = UNLIMITED
        cuts: list[list[int]] = []
        for place in range(len(self._rooms)):
            totals, cut, nearest = self._extend(place, totals, bound)
            cuts.append(cut)
            next_bound = min(next_bound, nearest)
        if totals[-1] >= UNLIMITED:
            return Filling(division=None, next_bound=next_bound)
        return Filling(division=self._trace(cuts, totals[-1]), next_bound=next_bound)

    def _extend(self, place: int, before: Sequence[int], bound: int) -> tuple[list[int], list[int], int]:
        """Let one more member take the blocks up to each end; a window minimum over its start."""
        ticks, needs, room = self._ticks[place], self._needs, self._rooms[place]
        extra = self._extras[place]
        limit = bound - extra
        after = [UNLIMITED] * (self._blocks + 1)
        cut = [0] * (self._blocks + 1)
        nearest = UNLIMITED
        window: deque[tuple[int, int]] = deque()
        start = 0
        last = self._blocks - (len(self._rooms) - 1 - place)
        for end in range(place + 1, last + 1):
            if before[end - 1] < UNLIMITED:
                value = before[end - 1] - ticks[end - 1]
                while window and window[-1][0] >= value:
                    window.pop()
                window.append((value, end - 1))
            while start < end:
                fits = needs[end] - needs[start] <= room
                if fits and ticks[end] - ticks[start] <= limit:
                    break
                if fits and before[start] < UNLIMITED:
                    nearest = min(nearest, ticks[end] - ticks[start] + extra)
                start += 1
            while window and window[0][1] < start:
                window.popleft()
            if window:
                value, cut[end] = window[0]
                after[end] = value + ticks[end] + extra
        return after, cut, nearest

    def _trace(self, cuts: Sequence[Sequence[int]], total: int) -> Division:
        end = self._blocks
        counts: list[int] = []
        bottleneck = 0
        for place in reversed(range(len(cuts))):
            first = cuts[place][end]
            stage = self._ticks[place][end] - self._ticks[place][first] + self._extras[place]
            bottleneck = max(bottleneck, stage)
            counts.append(end - first)
            end = first
        return Division(counts=tuple(reversed(counts)), total=total, bottleneck=bottleneck)


def build_chain(costs: Costs, ring: Sequence[int]) -> Chain:
    """The chain of a ring, read from the head on."""
    extras = [costs.head_ticks[ring[0]], *(0 for _ in ring[1:])]
    rooms = [costs.rooms[member] for member in ring]
    rooms[0] -= costs.head_need
    if not costs.uniform:
        return MixedChain(
            ticks=[costs.ticks[member] for member in ring],
            extras=extras,
            needs=costs.needs,
            rooms=rooms,
            kinds=[costs.kinds[member] for member in ring],
        )
    return UniformChain(
        ticks=[costs.ticks[member][1] for member in ring],
        extras=extras,
        limits=_limit_blocks(rooms, costs.needs[1], costs.blocks),
        blocks=costs.blocks,
    )


def _limit_blocks(rooms: Sequence[int], need: int, blocks: int) -> list[int]:
    """How many blocks each member has room for, if every other holds one."""
    most = blocks - len(rooms) + 1
    if need == 0:
        return [most if room >= 0 else 0 for room in rooms]
    return [max(0, min(most, room // need)) for room in rooms]
