"""Fleets that hypothesis makes up: small numbers, so that ties, tight rooms and refusals are common."""

from hypothesis import strategies as st

from kafila.domain.capability import Capability, Filtering, Mapping, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.planner.question import Candidate
from planner.brute_force import Fleet

reachabilities = st.builds(
    Reachability,
    mapping=st.sampled_from(Mapping),
    filtering=st.sampled_from(Filtering),
    lan=st.sampled_from([None, None, None, "home", "office"]),
    ipv6=st.sampled_from([False, False, False, True]),
    port_mapping=st.sampled_from([False, False, False, True]),
    rendezvous_rtt_ms=st.sampled_from([0.0, 1.0, 2.5, 10.0, 10.0004, 40.0, 150.0]),
)


@st.composite
def specs(draw: st.DrawFn, *, blocks: st.SearchStrategy[int], uniform: bool) -> ModelSpec:
    count = draw(blocks)

    def each(low: int, high: int) -> tuple[int, ...]:
        values = st.integers(low, high)
        if uniform:
            return (draw(values),) * count
        return tuple(draw(st.lists(values, min_size=count, max_size=count)))

    return ModelSpec(
        name="Toy",
        family="toy",
        fingerprint="0" * 64,
        hidden_size=8,
        block_bytes=each(1, 6),
        block_flops=each(1, 6),
        kv_bytes_per_token=each(0, 2),
        head_bytes=draw(st.integers(0, 6)),
        head_flops=draw(st.integers(0, 6)),
        head_resident_bytes=draw(st.integers(0, 8)),
        max_context=64,
    )


@st.composite
def fleets(draw: st.DrawFn, *, uniform: bool, most_members: int = 5, most_blocks: int = 8) -> Fleet:
    members = draw(st.integers(1, most_members))
    spec = draw(specs(blocks=st.integers(members, most_blocks), uniform=uniform))
    context, concurrency = draw(st.integers(1, 2)), draw(st.integers(1, 4))
    worst = sum(spec.block_bytes) + sum(spec.kv_bytes_per_token) * context * concurrency + spec.head_resident_bytes
    # From hopeless over tight to roomy.
    rooms = st.integers(1, max(2, draw(st.sampled_from([worst // members + 4, worst, 2 * worst]))))
    ids = draw(st.permutations([f"{letter}" * 16 for letter in "abcdef"[:members]]))
    candidates = tuple(
        Candidate(
            member=MemberId(name),
            name=name[0].upper(),
            capability=Capability(
                room_bytes=draw(rooms),
                bandwidth_bytes_s=draw(st.sampled_from([100.0, 200.0, 300.0, 1000.0])),
                flops_s=draw(st.sampled_from([50.0, 200.0, 2000.0])),
                reachability=draw(reachabilities),
            ),
        )
        for name in ids
    )
    pairs = {
        frozenset((one.member, other.member)): draw(st.sampled_from([0.5, 3.0, 60.0]))
        for index, one in enumerate(candidates)
        for other in candidates[:index]
        if draw(st.sampled_from([False, False, True]))
    }
    return Fleet(spec=spec, members=candidates, context=context, concurrency=concurrency, pair_rtts=pairs)
