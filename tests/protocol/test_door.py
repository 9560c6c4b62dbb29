import pytest

from helpers.joining import OFFER, WORDS, code, entropy, joiner, person, reply
from kafila.protocol.attempts import CONFIRM_WITHIN_S, MAX_FAILURES
from kafila.protocol.door import MAX_CALLERS, Closed, Door
from kafila.protocol.invitation import Code
from kafila.protocol.join_messages import Kind, frame
from kafila.protocol.pairing import (
    OtherVersion,
    PairedHost,
    PairedJoiner,
    TurnedAway,
    TurnedAwayReason,
    WrongCode,
)
from kafila.protocol.pake import JoinerExchange, turn_away

ENDED = turn_away(TurnedAwayReason.CODE_ENDED)


def door() -> Door:
    drawn = 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return entropy(("door", drawn), size)

    return Door(me=person("Kitchen laptop"), offer=OFFER, words=WORDS, entropy=draw)


def prove(at: Door, joining: JoinerExchange, exchange: int, now_s: float = 0.0) -> bytes:
    """Knock, say hello, and have the proof ready to send."""
    at.knock(exchange, f"remote {exchange}")
    return reply(joining.receive(reply(at.receive(exchange, joining.hello, now_s))))


def guess(at: Door, exchange: int, now_s: float = 0.0) -> None:
    joining = joiner(code("wrong"), exchange)
    answer = at.receive(exchange, prove(at, joining, exchange, now_s), now_s)
    assert answer == Closed(reply=turn_away(TurnedAwayReason.WRONG_CODE))


def enter(at: Door, with_code: Code, exchange: int, now_s: float = 0.0) -> PairedHost:
    joining = joiner(with_code, exchange)
    answer = at.receive(exchange, prove(at, joining, exchange, now_s), now_s)
    assert isinstance(answer, PairedJoiner)
    paired = joining.receive(answer.reply)
    assert isinstance(paired, PairedHost)
    assert paired.phrase == answer.phrase
    return paired


def test_friends_come_in_at_the_same_time() -> None:
    at = door()
    opened = at.open(47)
    joining = [joiner(opened, number) for number in range(3)]
    proofs = [prove(at, each, number) for number, each in enumerate(joining)]
    for number in (2, 0, 1):
        assert isinstance(at.receive(number, proofs[number], 1.0), PairedJoiner)
    assert at.next_deadline_s is None
    assert not at.burned


def test_wrong_guesses_end_the_code_and_a_new_one_works() -> None:
    at = door()
    opened = at.open(47)
    for number in range(MAX_FAILURES):
        assert not at.burned
        guess(at, number)
    assert at.burned
    at.knock(50, "friend")
    refused = at.receive(50, joiner(opened).hello, 1.0)
    assert refused == Closed(reply=ENDED)
    assert isinstance(joiner(opened).receive(ENDED), TurnedAway)
    renewed = at.open(48)
    assert renewed.words != opened.words
    assert not at.burned
    enter(at, renewed, 51)


def test_a_proof_is_not_looked_at_once_the_code_has_ended() -> None:
    """Guessers who begin together still have five guesses in all, and a right one comes too late."""
    at = door()
    opened = at.open(47)
    late = joiner(opened, "late")
    proof = prove(at, late, 99)
    for number in range(MAX_FAILURES):
        guess(at, number)
    assert at.receive(99, proof, 0.0) == Closed(reply=ENDED)


def test_an_exchange_that_is_left_unconfirmed_is_a_failed_guess() -> None:
    at = door()
    opened = at.open(47)
    proofs = {number: prove(at, joiner(opened, number), number) for number in range(MAX_FAILURES)}
    assert at.next_deadline_s == CONFIRM_WITHIN_S
    assert at.expire(CONFIRM_WITHIN_S) == tuple(range(MAX_FAILURES))
    assert at.burned
    assert at.receive(0, proofs[0], CONFIRM_WITHIN_S) == Closed()


def test_a_proof_that_comes_too_late_is_not_looked_at() -> None:
    at = door()
    proof = prove(at, joiner(at.open(47)), 1)
    assert at.receive(1, proof, CONFIRM_WITHIN_S) == Closed()


def test_going_away_in_the_middle_is_a_failed_guess() -> None:
    at = door()
    opened = at.open(47)
    for number in range(MAX_FAILURES):
        prove(at, joiner(opened, number), number)
        at.hang_up(number)
    assert at.burned


def test_knocking_and_going_away_is_no_guess() -> None:
    at = door()
    opened = at.open(47)
    for number in range(20):
        at.knock(number, "remote")
        at.hang_up(number)
    enter(at, opened, 99)
    assert not at.burned


@pytest.mark.parametrize("data", [b"", b"garbage", frame(Kind.JOINER_HELLO, b""), frame(Kind.JOINER_PROOF, bytes(80))])
def test_breaking_the_protocol_is_a_failed_guess_without_an_answer(data: bytes) -> None:
    at = door()
    at.open(47)
    for number in range(MAX_FAILURES):
        at.knock(number, f"remote {number}")
        broken = at.receive(number, data, 0.0)
        assert broken == Closed()
        assert isinstance(broken, Closed)
        assert broken.fault
        again = at.receive(number, data, 0.0)
        assert again == Closed()
    assert at.burned


def test_another_version_is_told_and_is_no_guess() -> None:
    at = door()
    opened = at.open(47)
    for number in range(MAX_FAILURES + 1):
        at.knock(number, f"remote {number}")
        hello = joiner(opened).hello
        answer = at.receive(number, hello.replace(b"kafila\x01", b"kafila\x02"), 0.0)
        assert isinstance(answer, Closed)
        assert answer.reply is not None
        told = joiner(opened).receive(answer.reply.replace(b"kafila\x01", b"kafila\x00"))
        assert isinstance(told, OtherVersion)
    assert not at.burned


def test_one_remote_cannot_begin_many() -> None:
    at = door()
    opened = at.open(47)
    for number in range(4):
        at.knock(number, "one house")
    answers = [at.receive(number, joiner(opened, number).hello, 0.0) for number in range(4)]
    assert answers[3] == Closed(reply=turn_away(TurnedAwayReason.BUSY))
    assert not any(isinstance(answer, Closed) for answer in answers[:3])


def test_who_never_knocked_is_not_answered() -> None:
    at = door()
    opened = at.open(47)
    assert at.receive(1, joiner(opened).hello, 0.0) == Closed()
    for number in range(MAX_CALLERS + 1):
        at.knock(number, "remote")
    assert at.receive(MAX_CALLERS, joiner(opened).hello, 0.0) == Closed()


def test_a_closed_door_takes_nobody_in() -> None:
    at = door()
    at.knock(1, "early")
    assert at.receive(1, joiner(code()).hello, 0.0) == Closed(reply=ENDED)
    opened = at.open(47)
    proof = prove(at, joiner(opened, 2), 2)
    at.close()
    at.knock(3, "late")
    assert at.receive(2, proof, 0.0) == Closed(reply=ENDED)
    assert at.receive(3, joiner(opened).hello, 0.0) == Closed(reply=ENDED)


def test_a_new_code_ends_what_was_begun_with_the_old_one() -> None:
    at = door()
    old = at.open(47)
    proof = prove(at, joiner(old, 1), 1)
    new = at.open(47)
    assert at.receive(1, proof, 0.0) == Closed(reply=ENDED)
    joining = joiner(old, 2)
    refused = at.receive(2, prove(at, joining, 2), 0.0)
    assert isinstance(refused, Closed)
    assert refused.reply is not None
    assert joining.receive(refused.reply) == WrongCode()
    enter(at, new, 3)


def test_after_being_paired_the_door_has_nothing_to_say() -> None:
    at = door()
    opened = at.open(47)
    enter(at, opened, 1)
    assert at.receive(1, b"sealed for the channel", 0.0) == Closed()
    assert not at.burned


def test_the_door_shows_no_code() -> None:
    at = door()
    opened = at.open(47)
    assert not any(word in repr(at) for word in opened.words)
