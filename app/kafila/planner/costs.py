"""What each block costs on each member, in time and in memory, as whole numbers.

Times are whole ticks of 10^-21 s. Sums of them are exact, so two divisions that cost the same
compare as equal, and a binary search over bounds ends at the true optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from kafila.domain.plan import Tier
from kafila.planner.question import Candidate, Question

TICKS_PER_SECOND = 10**21
TICKS_PER_MS = TICKS_PER_SECOND // 1000
UNLIMITED = 1 << 200
"""More than any sum of ticks or bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKind:
    """Blocks that cost a member the same."""

    ticks: int
    need: int
    ends: int
    """Where its blocks end, as a set of bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The cost model of one question. Members by their place in `Question.members`."""

    tier: Tier
    tier_reason: str
    blocks: int
    ticks: tuple[tuple[int, ...], ...]
    """Per member, the running sum of its blocks' times: blocks [a, b) take ticks[b] - ticks[a].
    Below the full tier they are no times, only proportions."""
    head_ticks: tuple[int, ...]
    needs: tuple[int, ...]
    """The running sum of the blocks' bytes, KV caches included."""
    head_need: int
    rooms: tuple[int, ...]
    uniform: bool
    """Every block costs the same."""
    kinds: tuple[tuple[BlockKind, ...], ...]
    """Per member, the kinds of its blocks; empty where they are uniform."""

    @property
    def members(self) -> int:
        """How many computers there are."""
        return len(self.rooms)

    def stage_ticks(self, member: int, first: int, end: int, *, head: bool) -> int:
        """What a member's stage takes per token."""
        ticks = self.ticks[member]
        return ticks[end] - ticks[first] + (self.head_ticks[member] if head else 0)

    def need_bytes(self, first: int, end: int, *, head: bool) -> int:
        """What a stage holds in memory."""
        return self.needs[end] - self.needs[first] + (self.head_need if head else 0)


def build_costs(question: Question) -> Costs:
    """The cost model of the best tier that all members share."""
    spec = question.spec
    tokens = question.context * question.concurrency
    needs = tuple(size + kv * tokens for size, kv in zip(spec.block_bytes, spec.kv_bytes_per_token, strict=True))
    tier, reason = choose_tier(question.members)
    match tier:
        case Tier.FULL:
            rows = [_full_ticks(question, one) for one in question.members]
        case Tier.THROUGHPUT:
            rows = [_throughput_ticks(question, one) for one in question.members]
        case Tier.ROOM:
            rows = _room_ticks(question, needs)
    uniform = len(set(needs)) == 1 and all(len(set(row[1:])) == 1 for row in rows)
    return Costs(
        tier=tier,
        tier_reason=reason,
        blocks=spec.blocks,
        ticks=tuple(_running_sum(row[1:]) for row in rows),
        head_ticks=tuple(row[0] for row in rows),
        needs=_running_sum(needs),
        head_need=spec.head_resident_bytes,
        rooms=tuple(room_of(one) for one in question.members),
        uniform=uniform,
        kinds=() if uniform else tuple(_sort_blocks(row[1:], needs) for row in rows),
    )


def room_of(one: Candidate) -> int:
    """The member's room in bytes; one whose room is not known is not limited."""
    room = one.capability.room_bytes
    return UNLIMITED if room is None else room


def choose_tier(members: Sequence[Candidate]) -> tuple[Tier, str]:
    """The best tier that all members share, and why not a better one."""
    unread = _names_without(members, bandwidth=True)
    uncounted = _names_without(members, bandwidth=False)
    if not unread and not uncounted:
        return Tier.FULL, "Memory speed and arithmetic were measured on every computer."
    if not uncounted:
        return Tier.THROUGHPUT, (
            f"Memory speed was not measured on {unread}, "
            "so the parts follow arithmetic alone and no speed is predicted."
        )
    return Tier.ROOM, (
        f"Arithmetic was not measured on {uncounted}, so the parts follow room alone and no speed is predicted."
    )


def _names_without(members: Sequence[Candidate], *, bandwidth: bool) -> str:
    figures = ((one.name, one.capability.bandwidth_bytes_s if bandwidth else one.capability.flops_s) for one in members)
    return ", ".join(name for name, figure in figures if figure is None)


def _ticks(amount: float, per_second: float | None) -> int:
    return round(amount / (per_second or 1.0) * TICKS_PER_SECOND)


def _full_ticks(question: Question, one: Candidate) -> list[int]:
    """The head's extra work, then the blocks': whatever is slower of reading and computing."""
    spec, able = question.spec, one.capability
    work = [(spec.head_bytes, spec.head_flops)]
    work += zip(spec.block_bytes, spec.block_flops, strict=True)
    seen: dict[tuple[int, int], int] = {}
    for size, flops in work:
        if (size, flops) not in seen:
            seen[size, flops] = max(_ticks(size, able.bandwidth_bytes_s), _ticks(flops, able.flops_s))
    return [seen[item] for item in work]


def _throughput_ticks(question: Question, one: Candidate) -> list[int]:
    spec = question.spec
    return [_ticks(flops, one.capability.flops_s) for flops in (spec.head_flops, *spec.block_flops)]


def _room_ticks(question: Question, needs: Sequence[int]) -> list[list[int]]:
    """How much of its room each block fills: the least full division is proportional to room."""
    rooms = [one.capability.room_bytes for one in question.members]
    scales = [1 if None in rooms or room is None else max(1, room) for room in rooms]
    amounts = (question.spec.head_resident_bytes, *needs)
    return [[amount * TICKS_PER_SECOND // scale for amount in amounts] for scale in scales]


def _running_sum(values: Sequence[int]) -> tuple[int, ...]:
    return tuple(accumulate(values, initial=0))


def _sort_blocks(ticks: Sequence[int], needs: Sequence[int]) -> tuple[BlockKind, ...]:
    ends: dict[tuple[int, int], int] = {}
    for place, kind in enumerate(zip(ticks, needs, strict=True), start=1):
        ends[kind] = ends.get(kind, 0) | 1 << place
    return tuple(BlockKind(ticks=kind[0], need=kind[1], ends=bits) for kind, bits in ends.items())
