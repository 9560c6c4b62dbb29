"""Which ways carry large datagrams: asked, answered, asked again, and doubted in time."""

from itertools import count

from kafila.protocol.edge_states import OverAddress, OverRelay, Route
from kafila.protocol.links import Address
from kafila.protocol.path_size import (
    ASK_EVERY_S,
    ASK_LARGE_WAY_EVERY_S,
    ASK_SMALL_WAY_EVERY_S,
    SMALL_BYTES,
    TRIES,
    AskSize,
    PathSize,
)

LARGE = 1350
DIRECT, RELAY = OverAddress(Address("192.0.2.1", 4700)), OverRelay()


class Ways:
    """A path's sizes, and the time; questions are answered on the ways that carry them."""

    def __init__(self, *carrying: Route, large_bytes: int = LARGE) -> None:
        self.now = 0.0
        self.carrying = set(carrying)
        self.asked: list[AskSize] = []
        self.size = PathSize(large_bytes, draw=count(1).__next__)

    def follow(self, *routes: Route) -> None:
        self.size.follow(routes, self.now)

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (at := self.size.next_tick()) is not None and at <= end:
            self.now = max(self.now, at)
            for ask in self.size.tick(self.now):
                self.asked.append(ask)
                if ask.route in self.carrying:
                    assert self.size.heard_pong(ask.route, ask.transaction, self.now)
        self.now = end


def test_without_an_answer_datagrams_stay_small_and_questions_become_rare() -> None:
    it = Ways()
    it.follow(DIRECT)
    it.wait(TRIES * ASK_EVERY_S)
    assert it.size.size == SMALL_BYTES
    assert [(ask.route, ask.size) for ask in it.asked] == [(DIRECT, LARGE)] * TRIES
    it.wait(ASK_SMALL_WAY_EVERY_S - 0.1)
    assert len(it.asked) == TRIES


def test_an_answer_makes_them_large_until_a_few_in_a_row_are_missing() -> None:
    it = Ways(DIRECT)
    it.follow(DIRECT)
    it.wait(0.1)
    assert it.size.size == LARGE
    it.wait(60.0)
    assert it.size.size == LARGE
    it.carrying.clear()
    it.wait(ASK_LARGE_WAY_EVERY_S + TRIES * ASK_EVERY_S)
    assert it.size.size == SMALL_BYTES
    it.carrying.add(DIRECT)
    it.wait(ASK_SMALL_WAY_EVERY_S)
    assert it.size.size == LARGE


def test_one_missing_answer_changes_nothing() -> None:
    it = Ways(DIRECT)
    it.follow(DIRECT)
    it.wait(ASK_LARGE_WAY_EVERY_S - 0.01)
    it.carrying.clear()
    it.wait(ASK_EVERY_S)
    it.carrying.add(DIRECT)
    it.wait(30.0)
    assert it.size.size == LARGE


def test_every_way_in_use_must_carry_them() -> None:
    it = Ways(DIRECT)
    it.follow(DIRECT)
    it.wait(0.1)
    it.follow(DIRECT, RELAY)
    it.wait(5.0)
    assert it.size.size == SMALL_BYTES
    it.follow(DIRECT)
    assert it.size.size == LARGE
    it.follow()
    assert it.size.size == SMALL_BYTES
    assert it.size.next_tick() is None


def test_an_answer_by_another_way_or_to_another_question_says_nothing() -> None:
    it = Ways()
    it.follow(DIRECT, RELAY)
    it.wait(0.1)
    (one, other) = it.asked
    assert not it.size.heard_pong(one.route, other.transaction, it.now)
    assert not it.size.heard_pong(one.route, 999, it.now)
    assert it.size.heard_pong(one.route, one.transaction, it.now)
    assert not it.size.heard_pong(one.route, one.transaction, it.now)


def test_where_nothing_larger_is_wanted_nothing_is_asked() -> None:
    it = Ways(DIRECT, large_bytes=SMALL_BYTES)
    it.follow(DIRECT)
    it.wait(60.0)
    assert it.asked == []
    assert it.size.size == SMALL_BYTES
