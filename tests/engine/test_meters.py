"""Figures over the last seconds: busy, stage times, circuits, pace."""

import pytest

from kafila.engine.meters import LEAST_TIMED, WINDOW_S, Circuits, HeadMeter, Rate, StageMeter


def test_a_stage_is_as_busy_as_it_computed_of_late() -> None:
    meter = StageMeter()
    meter.add(1_500_000, rows=8, now=10.0)
    assert meter.busy(10.0) == pytest.approx(1.5 / WINDOW_S)
    assert meter.busy(10.0 + WINDOW_S + 1) == 0.0


def test_a_stage_is_timed_by_decode_steps_once_there_are_a_few() -> None:
    meter = StageMeter()
    meter.add(900_000, rows=64, now=0.0)
    for step in range(LEAST_TIMED):
        assert meter.stage_ms() is None
        meter.add(2_000 + step, rows=1, now=1.0)
    assert meter.stage_ms() == pytest.approx(2.0, rel=0.01)


def test_what_the_head_does_after_the_circuit_is_part_of_its_step() -> None:
    meter = StageMeter()
    for _ in range(LEAST_TIMED):
        meter.add(2_000, rows=1, now=1.0)
        meter.also(1_000, now=1.0)
    assert meter.stage_ms() == pytest.approx(3.0)


def test_a_rate_is_what_a_counter_grew_by() -> None:
    rate = Rate()
    assert rate.of(1000, 1.0) == 0.0
    assert rate.of(3000, 2.0) == pytest.approx(2000.0)
    assert rate.of(10, 3.0) == 0.0  # another link began to count


def test_what_is_not_computed_was_in_flight() -> None:
    circuits = Circuits()
    assert circuits.circuit_p50() is None
    for circuit_ms in range(1, 101):
        circuits.add(circuit_ms=float(circuit_ms), compute_ms=float(circuit_ms) / 2)
    kept = range(37, 101)  # the newest 64
    assert circuits.circuit_p50() == pytest.approx(sum(kept) / len(kept))
    assert circuits.circuit_p95() == 97.0
    assert (circuits.in_flight_p50() or 0.0) + (circuits.compute_p50() or 0.0) == pytest.approx(sum(kept) / len(kept))


def test_computing_is_never_longer_than_the_circuit() -> None:
    circuits = Circuits()
    circuits.add(circuit_ms=5.0, compute_ms=9.0)
    assert circuits.compute_p50() == 5.0
    assert circuits.in_flight_p50() == 0.0


def test_the_pace_counts_words_as_they_are_read() -> None:
    meter = HeadMeter()
    assert meter.pace(0.0).words_per_second is None
    for at in range(4):
        meter.said("word " if at % 2 else "wo", at / 4)
    pace = meter.pace(1.0)
    assert pace.tokens_per_second == pytest.approx(4.0)
    assert pace.words_per_second == pytest.approx(2.0)
    assert pace.tokens == 4
    assert meter.pace(100.0).tokens_per_second is None
