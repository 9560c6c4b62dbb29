"""The planner's question answered by trying everything, written apart from the planner's own code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations

from kafila.domain.capability import Capability, Filtering, Mapping, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Objective
from kafila.planner.question import Candidate

MICRO = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    spec: ModelSpec
    members: tuple[Candidate, ...]
    context: int
    concurrency: int
    pair_rtts: dict[frozenset[MemberId], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A division of a ring, read from the head on."""

    ring: tuple[int, ...]
    counts: tuple[int, ...]
    bottleneck: Fraction
    circuit: Fraction


def reaches(one: Reachability, other: Reachability) -> bool:
    """The reachability table, word by word."""
    if one.lan is not None and one.lan == other.lan:
        return True
    if Mapping.UDP_BLOCKED in (one.mapping, other.mapping):
        return False
    if one.ipv6 and other.ipv6:
        return True
    dependent = [not reach.port_mapping and reach.mapping is not Mapping.ENDPOINT_INDEPENDENT for reach in (one, other)]
    if not any(dependent):
        return True
    if all(dependent):
        return False
    independent = other if dependent[0] else one
    return independent.port_mapping or independent.filtering in (
        Filtering.ENDPOINT_INDEPENDENT,
        Filtering.ADDRESS_DEPENDENT,
    )


def distance_us(fleet: Fleet, one: int, other: int) -> tuple[int, int]:
    """The edge's price, and how far apart its ends are as seen from the rendezvous."""
    a, b = fleet.members[one], fleet.members[other]
    near, far = (c.capability.reachability.rendezvous_rtt_ms for c in (a, b))
    assert near is not None
    assert far is not None
    apart = round(abs(near - far) * 1000)
    if not reaches(a.capability.reachability, b.capability.reachability):
        return round((near + far) * 1000), apart
    measured = fleet.pair_rtts.get(frozenset((a.member, b.member)))
    return apart if measured is None else round(measured * 1000), apart


def edges_of(order: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(order, [*order[1:], order[0]], strict=True)) if len(order) > 1 else []


def price_us(fleet: Fleet, order: Sequence[int]) -> tuple[int, int]:
    both = [distance_us(fleet, one, other) for one, other in edges_of(order)]
    return sum(price for price, _ in both), sum(apart for _, apart in both)


def all_orders(fleet: Fleet) -> list[tuple[int, ...]]:
    """Every order that begins with the host, the cheapest first, ties by ids."""
    orders = [(0, *rest) for rest in permutations(range(1, len(fleet.members)))]
    return sorted(
        orders, key=lambda order: (price_us(fleet, order), [fleet.members[place].member for place in order[1:]])
    )


def all_counts(blocks: int, members: int) -> Iterator[tuple[int, ...]]:
    for cuts in combinations(range(1, blocks), members - 1):
        edges = (0, *cuts, blocks)
        yield tuple(edges[i + 1] - edges[i] for i in range(members))


def slower(size: int, flops: int, able: Capability) -> Fraction:
    assert able.bandwidth_bytes_s is not None
    assert able.flops_s is not None
    return max(size / Fraction(able.bandwidth_bytes_s), flops / Fraction(able.flops_s))


def stage_s(fleet: Fleet, member: int, blocks: range, *, head: bool) -> Fraction:
    spec, able = fleet.spec, fleet.members[member].capability
    total = sum((slower(spec.block_bytes[j], spec.block_flops[j], able) for j in blocks), Fraction(0))
    return total + (slower(spec.head_bytes, spec.head_flops, able) if head else 0)


def need(fleet: Fleet, blocks: range, *, head: bool) -> int:
    spec = fleet.spec
    tokens = fleet.context * fleet.concurrency
    total = sum(spec.block_bytes[j] + spec.kv_bytes_per_token[j] * tokens for j in blocks)
    return total + (spec.head_resident_bytes if head else 0)


def spans(counts: Sequence[int]) -> list[range]:
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return [range(end - count, end) for end, count in zip(ends, counts, strict=True)]


def shortfalls(fleet: Fleet, ring: Sequence[int], counts: Sequence[int]) -> dict[int, int]:
    """Who is short, and by how much."""
    short: dict[int, int] = {}
    for place, (member, blocks) in enumerate(zip(ring, spans(counts), strict=True)):
        room = fleet.members[member].capability.room_bytes
        assert room is not None
        lack = need(fleet, blocks, head=place == 0) - room
        if lack > 0:
            short[member] = lack
    return short


def measure(fleet: Fleet, ring: Sequence[int], counts: Sequence[int]) -> Found:
    stages = [
        stage_s(fleet, member, blocks, head=place == 0)
        for place, (member, blocks) in enumerate(zip(ring, spans(counts), strict=True))
    ]
    hops = price_us(fleet, ring)[0] * MICRO / 2
    return Found(ring=tuple(ring), counts=tuple(counts), bottleneck=max(stages), circuit=sum(stages) + hops)


def rate(found: Found, concurrency: int) -> Fraction:
    return min(concurrency / found.circuit, 1 / found.bottleneck)


def rotations(order: Sequence[int]) -> list[tuple[int, ...]]:
    return [(*order[turn:], *order[:turn]) for turn in range(len(order))]


def best_per_head(fleet: Fleet, order: Sequence[int], objective: Objective) -> dict[int, Found]:
    """For every head that some division fits: its best division."""
    best: dict[int, Found] = {}
    for ring in rotations(order):
        fitting = [
            measure(fleet, ring, counts)
            for counts in all_counts(fleet.spec.blocks, len(ring))
            if not shortfalls(fleet, ring, counts)
        ]
        if not fitting:
            continue
        if objective is Objective.BALANCED:
            best[ring[0]] = min(fitting, key=lambda found: (found.bottleneck, found.circuit))
        else:
            best[ring[0]] = min(
                fitting, key=lambda found: (-rate(found, fleet.concurrency), found.bottleneck, found.circuit)
            )
    return best


def first_fitting_order(fleet: Fleet, objective: Objective) -> tuple[tuple[int, ...], dict[int, Found]] | None:
    """The cheapest order in which some division fits, with every head's best."""
    for order in all_orders(fleet):
        best = best_per_head(fleet, order, objective)
        if best:
            return order, best
    return None


def nearest_to_fitting(fleet: Fleet, orders: Sequence[Sequence[int]]) -> tuple[int, int, list[int]]:
    """Least total shortfall, then fewest short members, then the first of them."""
    keys: list[tuple[int, int, list[int]]] = []
    for order in orders:
        for ring in rotations(order):
            for counts in all_counts(fleet.spec.blocks, len(ring)):
                short = shortfalls(fleet, ring, counts)
                keys.append((sum(short.values()), len(short), sorted(short)))
    return min(keys)
