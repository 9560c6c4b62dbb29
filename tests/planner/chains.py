"""Chains that hypothesis makes up, and the same in plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from kafila.planner.costs import build_costs
from kafila.planner.partition import Chain, build_chain
from kafila.planner.question import ask
from planner.brute_force import all_counts, spans
from planner.samples import make_member, make_spec


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A chain and the same in plain numbers."""

    chain: Chain
    times: Sequence[Sequence[int]]
    extra: int
    sizes: Sequence[int]
    rooms: Sequence[int]


@st.composite
def cases(draw: st.DrawFn, *, uniform: bool) -> Case:
    members = draw(st.integers(1, 5))
    blocks = draw(st.integers(members, 9))
    kind = st.integers(1, 5)
    sizes = [draw(kind)] * blocks if uniform else draw(st.lists(kind, min_size=blocks, max_size=blocks))
    speeds = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=members, max_size=members))
    rooms = draw(st.lists(st.integers(1, sum(sizes) + 2), min_size=members, max_size=members))
    head_bytes, head_resident = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    spec = make_spec(sizes, head_bytes=head_bytes, head_resident=head_resident)
    fleet = [
        make_member(f"M{place}", bandwidth=12.0 / speed, flops=1e9, room=room)
        for place, (speed, room) in enumerate(zip(speeds, rooms, strict=True))
    ]
    costs = build_costs(ask(spec, fleet, context=1, concurrency=1))
    times = [[round(size * speed * 10**21 / 12) for size in sizes] for speed in speeds]
    extra = round(head_bytes * speeds[0] * 10**21 / 12)
    rooms[0] -= head_resident
    ring = tuple(range(members))
    return Case(chain=build_chain(costs, ring), times=times, extra=extra, sizes=sizes, rooms=rooms)


def stages_of(case: Case, counts: Sequence[int]) -> list[int]:
    return [
        sum(case.times[place][block] for block in held) + (case.extra if place == 0 else 0)
        for place, held in enumerate(spans(counts))
    ]


def fitting(case: Case) -> list[tuple[int, ...]]:
    """Every division that memory allows."""
    return [
        counts
        for counts in all_counts(len(case.sizes), len(case.rooms))
        if all(
            sum(case.sizes[block] for block in held) <= room
            for held, room in zip(spans(counts), case.rooms, strict=True)
        )
    ]


any_case = st.one_of(cases(uniform=True), cases(uniform=False))
bounds = st.integers(1, 60).map(lambda twelfths: round(twelfths * 10**21 / 12) + 10**9)
