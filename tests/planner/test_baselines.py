"""What others would do."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.plan import Plan
from kafila.planner.baselines import divide_by_memory, divide_evenly
from kafila.planner.plan import make_plan
from planner.samples import make_member, make_spec


def test_the_remainder_is_the_first_members() -> None:
    assert divide_evenly(11, 4) == (3, 3, 3, 2)


def test_memory_shares_are_rounded_by_largest_remainder() -> None:
    # Quotas 1.75, 2.8 and 5.45.
    assert divide_by_memory(10, [35, 56, 109]) == (2, 3, 5)


def test_the_smallest_holds_one_block_all_the_same() -> None:
    # Quotas 0.02, 4.99 and 4.99.
    assert divide_by_memory(10, [1, 250, 250]) == (1, 5, 4)


def test_where_nobody_has_room_shares_are_even() -> None:
    assert divide_by_memory(5, [0, 0]) == (3, 2)


@given(blocks=st.integers(1, 40), rooms=st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_shares_are_whole_and_within_one_of_their_quota_unless_lifted_to_one(blocks: int, rooms: list[int]) -> None:
    blocks = max(blocks, len(rooms))
    counts = divide_by_memory(blocks, rooms)
    assert sum(counts) == blocks
    assert min(counts) >= 1
    quotas = [Fraction(blocks * room, sum(rooms)) for room in rooms] if any(rooms) else []
    if all(quota >= 1 for quota in quotas):
        assert all(abs(count - quota) < 1 for count, quota in zip(counts, quotas, strict=False))


def test_baselines_stand_in_the_plans_ring_with_the_host_leading() -> None:
    members = [
        make_member("A", bandwidth=100.0, flops=1e9, room=400),
        make_member("B", bandwidth=400.0, flops=1e9, room=1300),
    ]
    spec = make_spec([100] * 5, head_bytes=100)
    plan = make_plan(spec, members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.head == "b"
    assert plan.uniform is not None
    assert plan.memory_proportional is not None
    # Three blocks and the head at 1 s each, then two at 0.25 s.
    assert plan.uniform.bottleneck_ms == 4000.0
    assert plan.uniform.circuit_ms == 4500.0
    assert plan.uniform.tokens_per_second == 1 / 4.5
    assert plan.uniform.utilisation == 4.5 / 8
    assert plan.uniform.fits
    # One block and the head, then four.
    assert plan.memory_proportional.bottleneck_ms == 2000.0


def test_a_baseline_that_does_not_fit_is_said_not_to() -> None:
    members = [make_member("A", room=100), make_member("B", room=900)]
    plan = make_plan(make_spec([100] * 10), members, context=1, concurrency=1)
    assert isinstance(plan, Plan)
    assert plan.uniform is not None
    assert plan.memory_proportional is not None
    assert not plan.uniform.fits
    assert plan.memory_proportional.fits
