"""Which token is drawn, against sorting and adding up everything."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafila.compute.sampling import Logits, choose

logits_of = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=40).map(
    lambda values: np.array(values, np.float32)
)
temperatures = st.sampled_from([0.1, 0.7, 1.0, 2.0])
parts = st.sampled_from([0.05, 0.5, 0.95, 1.0])


def right_chances(logits: Logits, temperature: float, top_p: float) -> np.ndarray:
    """How likely each token is to be drawn, in float64."""
    exact = logits.astype(np.float64)
    probabilities = np.exp(exact - exact.max())
    probabilities /= probabilities.sum()
    order = sorted(range(len(exact)), key=lambda token: (-probabilities[token], token))
    mass = probabilities[order].cumsum()
    # Where a sum is a hair's breadth from top_p, one more or less is right too.
    assume(np.abs(mass[:-1] - top_p).min(initial=1) > 1e-5)
    kept = order[: int((mass < top_p).sum()) + 1]
    chances = np.zeros(len(exact))
    chances[kept] = np.exp((exact[kept] - exact.max()) / temperature)
    return chances / chances.sum()


@given(logits=logits_of, chance=st.floats(0, 1, exclude_max=True))
def test_at_temperature_0_it_is_the_likeliest(logits: Logits, chance: float) -> None:
    assert choose(logits, temperature=0, top_p=0.9, chance=chance) == int(logits.argmax())


@given(logits=logits_of, temperature=temperatures, top_p=parts)
def test_each_is_drawn_as_often_as_it_should(logits: Logits, temperature: float, top_p: float) -> None:
    draws = 200
    drawn = [choose(logits, temperature=temperature, top_p=top_p, chance=draw / draws) for draw in range(draws)]
    found = np.bincount(drawn, minlength=len(logits)) / draws
    right = right_chances(logits, temperature, top_p)
    assert np.abs(found - right).max() < 2.5 / draws


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_breaks_nothing(broken: float) -> None:
    for logits in ([broken] * 5, [1, broken, 2], [broken, 1]):
        assert 0 <= choose(np.array(logits, np.float32), temperature=0.7, top_p=0.9, chance=0.99) < len(logits)


def test_a_certain_token_is_drawn_whatever_the_chance() -> None:
    logits = np.full(150_000, -30, np.float32)
    logits[77] = 10
    assert {choose(logits, temperature=0.7, top_p=0.95, chance=number / 10) for number in range(10)} == {77}
