"""A division as people and programs see it: shares, edges, and what a token costs."""

from collections.abc import Sequence

from kafila.domain.plan import Figures, PlannedEdge, Share, Tier
from kafila.planner.costs import TICKS_PER_MS, TICKS_PER_SECOND
from kafila.planner.ring_order import hops
from kafila.planner.solve import Workings, hop_ticks


def list_shares(workings: Workings, ring: Sequence[int], counts: Sequence[int]) -> tuple[Share, ...]:
    """What each member of a ring holds, from the head on."""
    costs, members = workings.costs, workings.question.members
    timed = costs.tier is Tier.FULL
    shares: list[Share] = []
    first = 0
    for member, count in zip(ring, counts, strict=True):
        head, end = not shares, first + count
        ticks = costs.stage_ticks(member, first, end, head=head)
        shares.append(
            Share(
                member=members[member].member,
                first=first,
                end=end,
                head=head,
                need_bytes=costs.need_bytes(first, end, head=head),
                room_bytes=members[member].capability.room_bytes,
                stage_ms=ticks / TICKS_PER_MS if timed else None,
            )
        )
        first = end
    return tuple(shares)


def list_edges(workings: Workings, ring: Sequence[int]) -> tuple[PlannedEdge, ...]:
    """The hops of a ring, from the head on."""
    members, edges = workings.question.members, workings.network.edges
    return tuple(
        PlannedEdge(
            from_member=members[one].member,
            to_member=members[other].member,
            predicted=edges[one][other].path,
            price_ms=_milliseconds(edges[one][other].price_us),
        )
        for one, other in hops(ring)
    )


def _milliseconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000


def figure(workings: Workings, ring: Sequence[int], counts: Sequence[int], *, concurrency: int) -> Figures:
    """What a division costs at a number of conversations."""
    shares = list_shares(workings, ring, counts)
    fits = all(share.room_bytes is None or share.need_bytes <= share.room_bytes for share in shares)
    if workings.costs.tier is not Tier.FULL:
        return Figures(
            bottleneck_ms=None,
            circuit_ms=None,
            tokens_per_second=None,
            utilisation=None,
            fits=fits,
        )
    stages = [
        workings.costs.stage_ticks(member, share.first, share.end, head=share.head)
        for member, share in zip(ring, shares, strict=True)
    ]
    longest = max(stages)
    circuit = sum(stages) + hop_ticks(workings.network, tuple(ring))
    token = max(circuit, concurrency * longest)
    return Figures(
        bottleneck_ms=longest / TICKS_PER_MS,
        circuit_ms=circuit / TICKS_PER_MS,
        tokens_per_second=concurrency * TICKS_PER_SECOND / token if token else None,
        utilisation=sum(stages) / (len(stages) * longest) if longest else None,
        fits=fits,
    )
