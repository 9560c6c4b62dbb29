"""Chains against every division."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafila.planner.costs import UNLIMITED, BlockKind, build_costs
from kafila.planner.partition import Division, MixedChain, UniformChain, build_chain
from kafila.planner.question import ask
from planner.chains import Case, any_case, bounds, cases, fitting, stages_of
from planner.samples import make_member, make_spec


def best_within(case: Case, bound: int) -> tuple[int, list[int], tuple[int, ...]] | None:
    """Least total; of equal ones the fewest blocks for the last, then for the one before it."""
    found = [
        (sum(stages), list(reversed(counts)), counts)
        for counts in fitting(case)
        if max(stages := stages_of(case, counts)) <= bound
    ]
    return min(found) if found else None


@given(case=any_case, bound=st.one_of(bounds, st.just(UNLIMITED)))
def test_a_chain_is_filled_with_the_least_total_within_the_bound(case: Case, bound: int) -> None:
    expected = best_within(case, bound)
    division = case.chain.fill(bound).division
    if expected is None:
        assert division is None
        return
    assert division is not None
    assert (division.total, division.counts) == (expected[0], expected[2])
    assert division.bottleneck == max(stages_of(case, division.counts)) <= bound


@given(case=any_case, bound=bounds)
def test_a_probe_knows_what_filling_would_find(case: Case, bound: int) -> None:
    assert case.chain.probe(bound).feasible is (case.chain.fill(bound).division is not None)


@settings(max_examples=60)
@given(case=any_case)
def test_from_one_bound_to_the_next_no_answer_is_missed(case: Case) -> None:
    """Every sum of neighbouring blocks is a bound at which an answer could change."""
    sums = {
        sum(row[first:end]) + (case.extra if place == 0 else 0)
        for place, row in enumerate(case.times)
        for first in range(len(row))
        for end in range(first + 1, len(row) + 1)
    }
    filled, probed = case.chain.fill(0), case.chain.probe(0)
    for bound in sorted(sums):
        while filled.next_bound <= bound:
            filled = case.chain.fill(filled.next_bound)
        while probed.next_bound <= bound:
            probed = case.chain.probe(probed.next_bound)
        assert case.chain.fill(bound).division == filled.division
        assert case.chain.probe(bound).feasible is probed.feasible


@given(case=any_case, bound=st.one_of(bounds, st.just(UNLIMITED)))
def test_an_underestimate_is_never_above(case: Case, bound: int) -> None:
    division = case.chain.fill(bound).division
    assert case.chain.underestimate(bound) <= (UNLIMITED if division is None else division.total)


@given(case=any_case)
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
