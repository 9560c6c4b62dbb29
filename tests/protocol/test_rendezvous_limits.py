"""Token buckets."""

from hypothesis import given
from hypothesis import strategies as st

from kafila.protocol.rendezvous_limits import Bucket, Buckets, Rate


def test_a_burst_then_the_rate() -> None:
    bucket = Bucket(Rate(3, 0.5), 10.0)
    assert [bucket.take(1, 10.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(1, 11.0)
    assert bucket.take(1, 12.0)
    assert not bucket.is_full(12.0)
    assert bucket.is_full(18.0)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 4)), max_size=60))
def test_no_more_than_burst_and_rate_is_ever_allowed(steps: list[tuple[float, float]]) -> None:
    bucket = Bucket(Rate(10, 2), 0.0)
    now = used = 0.0
    for wait, amount in steps:
        now += wait
        if bucket.take(amount, now):
            used += amount
        assert used <= 10 + 2 * now + 1e-6


def test_keys_do_not_share_until_there_are_too_many() -> None:
    buckets = Buckets(Rate(1, 1), max_keys=2)
    assert buckets.take("a", 1, 0.0)
    assert buckets.take("b", 1, 0.0)
    assert not buckets.take("a", 1, 0.0)
    assert buckets.take("c", 1, 0.0)
    assert not buckets.take("d", 1, 0.0)
    assert len(buckets) == 2
    buckets.forget_idle(0.5)
    assert len(buckets) == 2
    buckets.forget_idle(1.0)
    assert len(buckets) == 0
