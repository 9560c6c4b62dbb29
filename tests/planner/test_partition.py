"""Chains against every division."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kafila.planner.costs import UNLIMITED, BlockKind, build_costs
from kafila.planner.partition import Chain, Division, MixedChain, UniformChain, build_chain
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


def best_within(case: Case, bound: int) -> tuple[int, list[int], tuple[int, ...]] | None:
    """Least total; of equal ones the fewest blocks for the last, then for the one before it."""
    found = [
        (sum(stages), list(reversed(counts)), counts)
        for counts in all_counts(len(case.sizes), len(case.rooms))
        if max(stages := stages_of(case, counts)) <= bound
        and all(
            sum(case.sizes[block] for block in held) <= room
            for held, room in zip(spans(counts), case.rooms, strict=True)
        )
    ]
    return min(found) if found else None


either = st.one_of(cases(uniform=True), cases(uniform=False))
bounds = st.integers(1, 60).map(lambda twelfths: round(twelfths * 10**21 / 12) + 10**9)


@given(case=either, bound=st.one_of(bounds, st.just(UNLIMITED)))
def test_a_chain_is_filled_with_the_least_total_within_the_bound(case: Case, bound: int) -> None:
    expected = best_within(case, bound)
    division = case.chain.fill(bound).division
    if expected is None:
        assert division is None
        return
    assert division is not None
    assert (division.total, division.counts) == (expected[0], expected[2])
    assert division.bottleneck == max(stages_of(case, division.counts)) <= bound


@given(case=either, bound=bounds)
def test_a_probe_knows_what_filling_would_find(case: Case, bound: int) -> None:
    assert case.chain.probe(bound).feasible is (case.chain.fill(bound).division is not None)


@given(case=either, bound=bounds, part=st.floats(0, 1))
def test_nothing_changes_below_the_next_bound(case: Case, bound: int, part: float) -> None:
    def between(next_bound: int) -> int:
        assert next_bound > bound
        return bound + int(max(0, min(next_bound, case.chain.longest) - 1 - bound) * part)

    filling, probe = case.chain.fill(bound), case.chain.probe(bound)
    assert case.chain.fill(between(filling.next_bound)).division == filling.division
    assert case.chain.probe(between(probe.next_bound)).feasible is probe.feasible


@given(case=either)
def test_no_stage_is_longer_than_the_longest(case: Case) -> None:
    assert case.chain.fill(case.chain.longest).division == case.chain.fill(UNLIMITED).division


@given(case=cases(uniform=True), bound=st.one_of(bounds, st.just(UNLIMITED)))
def test_both_kinds_of_chain_agree_on_equal_blocks(case: Case, bound: int) -> None:
    """To the very division: ties are broken alike."""
    blocks = len(case.sizes)
    ends = sum(1 << end for end in range(1, blocks + 1))
    mixed = MixedChain(
        ticks=[[row[0] * end for end in range(blocks + 1)] for row in case.times],
        extras=[case.extra, *(0 for _ in case.rooms[1:])],
        needs=[case.sizes[0] * end for end in range(blocks + 1)],
        rooms=case.rooms,
        kinds=[[BlockKind(ticks=row[0], need=case.sizes[0], ends=ends)] for row in case.times],
    )
    assert isinstance(case.chain, UniformChain)
    assert mixed.fill(bound).division == case.chain.fill(bound).division
    assert mixed.probe(bound).feasible is case.chain.probe(bound).feasible


def test_a_pass_from_left_to_right_would_be_wrong_here() -> None:
    """Blocks 1, 1, 5, 1 under limits 2, 1, 6: the first has to leave a block to the second."""
    members = [make_member("A", room=2), make_member("B", room=1), make_member("C", room=6)]
    costs = build_costs(ask(make_spec([1, 1, 5, 1]), members, context=1, concurrency=1))
    chain = build_chain(costs, (0, 1, 2))
    assert isinstance(chain, MixedChain)
    division = chain.fill(UNLIMITED).division
    assert isinstance(division, Division)
    assert division.counts == (1, 1, 2)
