"""From where people can join, in words."""

import itertools

from kafila.domain.reach import reach_in_words
from kafila.domain.snapshot import NoPort, Reach

EVERY_CASE = list(itertools.product(Reach, (None, *NoPort)))


def test_every_case_has_words_that_take_nothing_for_granted() -> None:
    for reach, no_port in EVERY_CASE:
        told = reach_in_words(reach, no_port)
        if reach is Reach.THIS_COMPUTER and no_port is None:
            assert told is None
            continue
        assert told is not None
        assert told.advice.endswith(".")
        assert ("probably" in told.title) is (reach is Reach.PROBABLY_ANYWHERE)
        for jargon in ("NAT", "port ", "IPv", "TCP", "gateway"):
            assert jargon not in told.sentence()


def test_each_reason_is_another_sentence() -> None:
    told = {reach_in_words(Reach.NEEDS_RENDEZVOUS, no_port) for no_port in (None, *NoPort)}
    assert len(told) == len(NoPort) + 1
