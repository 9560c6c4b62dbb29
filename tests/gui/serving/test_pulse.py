from hypothesis import given
from hypothesis import strategies as st

from kafila.gui.serving.pulse import MOST_LIGHTS, Pulses, count, in_use, phases, rest


def test_nothing_moves_before_the_counter_does() -> None:
    pulses = count(Pulses(), tokens=400, tokens_per_second=5, circuit_ms=180, now_s=10.0)
    assert phases(pulses, 10.0) == ()
    assert not in_use(pulses, 10.0)


def test_one_token_is_one_light_at_the_pace_of_the_circuit() -> None:
    pulses = count(Pulses(tokens=0), tokens=1, tokens_per_second=0.4, circuit_ms=2000, now_s=10.0)
    assert phases(pulses, 10.0) == (0.0,)
    assert phases(pulses, 11.0) == (0.5,)
    assert phases(pulses, 12.1) == ()


def test_a_fast_ring_is_shown_no_faster_than_the_eye_follows() -> None:
    pulses = count(Pulses(tokens=0), tokens=1, tokens_per_second=2, circuit_ms=20, now_s=0.0)
    assert phases(pulses, 0.4) == (0.5,)


def test_many_tokens_glow_and_the_glow_ends_with_them() -> None:
    pulses = count(Pulses(tokens=0), tokens=9, tokens_per_second=30, circuit_ms=40, now_s=0.0)
    assert pulses.glowing
    assert rest(pulses, 1.0).glowing
    assert not rest(pulses, 3.0).glowing


def test_a_session_that_begins_anew_does_not_send_lights_backwards() -> None:
    pulses = count(Pulses(tokens=500), tokens=0, tokens_per_second=None, circuit_ms=None, now_s=0.0)
    assert phases(pulses, 0.0) == ()
    assert pulses.tokens == 0


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 2), st.none() | st.floats(0.1, 50)), max_size=30))
def test_never_more_than_three_lights(steps: list[tuple[int, float, float | None]]) -> None:
    pulses = Pulses(tokens=0)
    now = 0.0
    tokens = 0
    for more, wait, rate in steps:
        tokens += more
        now += wait
        pulses = count(pulses, tokens=tokens, tokens_per_second=rate, circuit_ms=300, now_s=now)
        assert len(pulses.leaving_s) <= MOST_LIGHTS
        assert all(0 <= phase < 1 for phase in phases(pulses, now))
