"""Holding a seat at the relay, told as what is sent when."""

from itertools import count

from helpers.tls import TRUST
from kafila.network.endpoint_seat import GONE_AFTER, KEEP_EVERY_S, Asking, Seated, SeatHolder
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import KeepAliveFrame, RelayedFrame, SeatedFrame, decode_to_relay, is_authentic

SEAT = RelaySeat(relay=Address("192.0.2.1", 4701), slot=77, key=bytes(range(32)), trust=TRUST)
OBSERVED = Address("198.51.100.9", 40000)


class Clocked:
    """A seat holder with the time it has been told last."""

    def __init__(self) -> None:
        self.now = 100.0
        self.holder = SeatHolder(SEAT, count=count(1).__next__, now=self.now)
        self.asked = 0

    def wait(self, seconds: float) -> int:
        """Let time pass; returns how many keep-alives went out."""
        end, sent = self.now + seconds, 0
        while self.holder.next_tick() <= end:
            self.now = max(self.now, self.holder.next_tick())
            frame = self.holder.tick(self.now)
            assert frame is not None
            assert is_authentic(frame, SEAT.key)
            asked = decode_to_relay(frame)
            assert isinstance(asked, KeepAliveFrame)
            assert asked.counter > self.asked
            self.asked, sent = asked.counter, sent + 1
        self.now = end
        return sent

    def answer(self, counter: int, slot: int = SEAT.slot) -> None:
        self.holder.heard(SeatedFrame(slot=slot, counter=counter, observed=OBSERVED), self.now)


def test_it_asks_again_and_again_until_the_relay_answers() -> None:
    it = Clocked()
    assert it.wait(0.0) == 1
    assert it.wait(5.0) >= 3
    assert isinstance(it.holder.state, Asking)
    it.answer(it.asked)
    assert it.holder.state == Seated(observed=OBSERVED, unanswered=0)
    assert it.wait(KEEP_EVERY_S - 0.1) == 0
    assert it.wait(0.2) == 1


def test_only_the_answer_to_the_last_question_for_this_seat_counts() -> None:
    it = Clocked()
    it.wait(0.0)
    it.answer(it.asked, slot=78)
    it.answer(it.asked + 1)
    it.answer(0)
    assert isinstance(it.holder.state, Asking)
    it.answer(it.asked)
    assert isinstance(it.holder.state, Seated)


def test_a_relay_that_falls_silent_is_gone_after_a_few_questions_and_asked_on() -> None:
    it = Clocked()
    it.wait(0.0)
    it.answer(it.asked)
    assert it.wait(KEEP_EVERY_S + 0.1) == 1
    it.wait(GONE_AFTER * 1.0 - 1.5)
    assert isinstance(it.holder.state, Seated)
    it.wait(2.0)
    assert isinstance(it.holder.state, Asking)
    assert it.wait(10.0) >= 4
    it.answer(it.asked)
    assert isinstance(it.holder.state, Seated)


def test_one_lost_answer_changes_nothing() -> None:
    it = Clocked()
    it.wait(0.0)
    it.answer(it.asked)
    it.wait(KEEP_EVERY_S + 1.2)
    it.answer(it.asked)
    assert it.holder.state == Seated(observed=OBSERVED, unanswered=0)


def test_every_frame_has_a_counter_of_its_own() -> None:
    it = Clocked()
    it.wait(0.0)
    frame = it.holder.relayed(5, b"payload")
    assert is_authentic(frame, SEAT.key)
    assert decode_to_relay(frame) == RelayedFrame(source=77, counter=it.asked + 1, destination=5, payload=b"payload")
