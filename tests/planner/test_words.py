"""Figures in words."""

import pytest

from kafila.planner.words import say_bytes, say_count, say_ms_per_word, say_words


@pytest.mark.parametrize(
    ("amount", "nearest", "at_least"),
    [
        (5_140_000_000, "5.1 GB", "5.2 GB"),
        (5_100_000_000, "5.1 GB", "5.1 GB"),
        (999_000_000, "1.0 GB", "1.0 GB"),
        (302_000_000, "302.0 MB", "302.0 MB"),
        (1_200_000_000_000, "1,200.0 GB", "1,200.0 GB"),
        (17, "17 bytes", "17 bytes"),
        (1, "one byte", "one byte"),
        (0, "0 bytes", "0 bytes"),
    ],
)
def test_bytes(amount: int, nearest: str, at_least: str) -> None:
    assert say_bytes(amount) == nearest
    assert say_bytes(amount, up=True) == at_least


def test_counts_lengths_and_times() -> None:
    assert (say_count(1, "part"), say_count(1200, "part")) == ("one part", "1,200 parts")
    assert (say_words(4096), say_words(256)) == ("3,000 words", "190 words")
    assert (say_ms_per_word(60.0), say_ms_per_word(3.0)) == ("80 ms", "4.0 ms")
