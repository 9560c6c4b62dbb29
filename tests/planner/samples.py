"""Small models and members with figures that can be followed in the head."""

from collections.abc import Sequence

from kafila.domain.capability import Capability, Filtering, Mapping, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.planner.question import Candidate, ask
from kafila.planner.ring_order import Network, build_network

OPEN = Reachability(mapping=Mapping.ENDPOINT_INDEPENDENT, filtering=Filtering.ENDPOINT_INDEPENDENT)


def make_spec(
    sizes: Sequence[int] = (1,), *, kv: Sequence[int] | int = 0, head_bytes: int = 0, head_resident: int = 0
) -> ModelSpec:
    """A model whose blocks need no arithmetic worth naming."""
    return ModelSpec(
        name="Toy",
        family="toy",
        fingerprint="f" * 64,
        hidden_size=8,
        block_bytes=tuple(sizes),
        block_flops=(0,) * len(sizes),
        kv_bytes_per_token=(kv,) * len(sizes) if isinstance(kv, int) else tuple(kv),
        head_bytes=head_bytes,
        head_flops=0,
        head_resident_bytes=head_resident,
        max_context=4096,
    )


def make_member(
    name: str,
    *,
    bandwidth: float | None = 1000.0,
    flops: float | None = 1000.0,
    room: int | None = 10**6,
    reach: Reachability | None = None,
) -> Candidate:
    """A member at the rendezvous's own door, unless `reach` says otherwise."""
    return Candidate(
        member=MemberId(name.lower()),
        name=name,
        capability=Capability(
            room_bytes=room,
            bandwidth_bytes_s=bandwidth,
            flops_s=flops,
            reachability=Reachability(rendezvous_rtt_ms=0.0) if reach is None else reach,
        ),
    )


def make_network(*reaches: Reachability, pair_rtts: dict[frozenset[MemberId], float] | None = None) -> Network:
    members = [
        Candidate(member=MemberId(f"m{place}"), name="", capability=Capability(room_bytes=1, reachability=reach))
        for place, reach in enumerate(reaches)
    ]
    return build_network(ask(make_spec(), members, context=1, concurrency=1, pair_rtts=pair_rtts or {}))


def at(rtt_ms: float | None, like: Reachability = OPEN) -> Reachability:
    return Reachability(mapping=like.mapping, filtering=like.filtering, lan=like.lan, rendezvous_rtt_ms=rtt_ms)
