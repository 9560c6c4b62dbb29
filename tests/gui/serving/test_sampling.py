import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.serving.scenes import member_id, paused, serving
from kafila.gui.serving.sampling import (
    History,
    Sample,
    average,
    decimals,
    round_top,
    sample,
    thin,
    ticks,
)


def at(seconds: float, words: float | None = None) -> Sample:
    return Sample(at_s=seconds, busy={member_id(0): seconds / 1000}, words_per_second=words)


def test_a_sample_leaves_out_who_is_away() -> None:
    assert len(sample(serving(), 1.0).busy) == 5
    assert member_id(3) not in sample(paused(), 1.0).busy


def test_samples_that_come_too_soon_are_not_kept() -> None:
    history = History()
    assert history.offer(at(0.0))
    assert not history.offer(at(0.2))
    assert history.offer(at(0.5))
    assert len(history.last(60, now_s=1.0, points=120)) == 2


def test_only_a_ring_that_said_something_has_begun() -> None:
    history = History()
    history.offer(at(0.0))
    assert not history.begun
    history.offer(at(1.0, words=3.0))
    assert history.begun


def test_the_last_minute_and_the_whole_session() -> None:
    history = History()
    for step in range(4000):
        history.offer(at(step * 0.5, words=1.0))
    now = 2000.0
    minute = history.last(60, now_s=now, points=120)
    assert len(minute) == 120
    assert minute[0].at_s >= now - 60
    whole = history.last(history.length_s(now), now_s=now, points=120)
    assert 60 <= len(whole) <= 130
    assert whole[0].at_s < 20
    assert whole[-1].at_s > 1950
    ten = history.last(600, now_s=now, points=120)
    assert 110 <= len(ten) <= 130


@given(st.lists(st.floats(0, 500), min_size=1, max_size=200), st.floats(1, 60))
def test_thinning_keeps_order_and_range(times: list[float], every_s: float) -> None:
    samples = [at(seconds) for seconds in sorted(times)]
    thinned = thin(samples, every_s=every_s)
    assert [one.at_s for one in thinned] == sorted(one.at_s for one in thinned)
    assert min(times) - 1e-6 <= thinned[0].at_s
    assert thinned[-1].at_s <= max(times) + 1e-6


def test_what_is_missing_stays_missing() -> None:
    mean = average([at(0.0), at(1.0, words=4.0), at(2.0, words=6.0)])
    assert mean.words_per_second == 5.0
    assert mean.compute_ms is None
    assert average([at(0.0), at(1.0)]).words_per_second is None


@given(st.floats(0.001, 1e6))
def test_axes_end_just_above_the_data(value: float) -> None:
    top = round_top(value)
    assert value <= top * (1 + 1e-6)
    assert top <= value * 2.6


def test_round_numbers_on_axes() -> None:
    assert round_top(14.2) == 16
    assert round_top(182) == 240
    assert round_top(0) == 1
    assert ticks(240, 3) == (0, 80, 160, 240)
    assert decimals(16) == 0
    assert decimals(1) == 1
    assert decimals(0.24) == pytest.approx(2)
