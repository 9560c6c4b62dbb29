"""Sizes, rates and times as people read them."""

import pytest

from kafila.gui import numbers
from kafila.gui.language import english
from kafila.gui.pages.draft import LENGTHS, ModelChoice, computers_needed, conversation_bytes, length_of
from kafila.gui.rates import Rate
from kafila.gui.theme import Theme

pytestmark = pytest.mark.usefixtures("theme")


def test_sizes() -> None:
    assert numbers.size(10_400_000_000) == "10.4 GB"
    assert numbers.size(269_400_000) == "270 MB"
    assert numbers.size(0) == "0 MB"
    assert numbers.size(5_100_000_000, up=True) == "5.1 GB"
    assert numbers.size(5_110_000_000, up=True) == "5.2 GB"
    assert numbers.size_of(8_700_000_000, 10_400_000_000) == "8.7 of 10.4 GB"
    assert numbers.size_of(80_000_000, 115_000_000) == "80 of 115 MB"


def test_times_and_rates() -> None:
    assert numbers.duration(0.2) == "1 s"
    assert numbers.duration(9) == "9 s"
    assert numbers.duration(250) == "4 min"
    assert numbers.milliseconds(83.6) == "84 ms"
    assert numbers.words_a_second(5.33) == "4.0"
    assert numbers.whole(24000) == "24,000"
    assert numbers.words_at_most(2815) == "2,100"
    assert numbers.words_at_most(10) == "7"


def test_plural_forms(theme: Theme) -> None:
    assert english("%n computer(s)", 1) == "%n computer"
    assert english("%n [person|people] at once", 3) == "%n people at once"
    assert theme.tr("%n computer(s)", "", 2) == "2 computers"
    assert theme.tr("Host a session") == "Host a session"


def test_a_conversation_costs_what_its_tokens_cost() -> None:
    model = ModelChoice(id="x", name="x", kv_bytes_per_token=1000)
    assert conversation_bytes(model, LENGTHS[0]) == 2_048_000
    assert conversation_bytes(ModelChoice(id="x", name="x"), LENGTHS[0]) is None


def test_lengths_are_named_by_their_tokens() -> None:
    assert [length_of(tokens).key for tokens in (512, 2048, 4096, 8192, 99_999)] == [
        "short", "short", "long", "long", "very-long",
    ]  # fmt: skip


def test_a_model_that_does_not_fit_needs_at_least_two() -> None:
    assert computers_needed(18_400_000_000, 10_400_000_000) == 2
    assert computers_needed(39_700_000_000, 10_400_000_000) == 5
    assert computers_needed(1, None) is None


def test_a_rate_needs_time_and_forgets_what_was_before_a_new_beginning() -> None:
    rate = Rate()
    assert rate.per_second() is None
    rate.add(0, 0)
    rate.add(0.5, 100)
    assert rate.per_second() is None
    rate.add(2, 400)
    assert rate.per_second() == 200
    rate.add(3, 0)
    assert rate.per_second() is None


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rate = Rate()
    for second in range(20):
        rate.add(second, 10 * second if second < 10 else 100 + 50 * (second - 10))
    assert rate.per_second() == 50
