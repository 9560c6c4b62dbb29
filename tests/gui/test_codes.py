"""A code is read with patience while it is typed, and exactly once it is whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.gui.codes import Nothing, Right, Typing, Wrong, code_words, read_code, repaired, words_like
from kafila.protocol.invitation import Invitation, make_code
from kafila.protocol.links import Address
from kafila.protocol.misread import NotACode, UnknownWord, WrongCheck

WORDS = code_words()
CODE = make_code(47, b"\x01\x82\x63\x34\x95", WORDS)
SPOKEN = CODE.spoken()


def test_nothing_is_nothing() -> None:
    assert read_code("  ", WORDS) == Nothing()


@pytest.mark.parametrize("text", [SPOKEN, SPOKEN.upper(), SPOKEN.replace("-", " "), f"  {SPOKEN} ", f"Code: {SPOKEN}!"])
def test_a_whole_code_is_right_however_it_is_written(text: str) -> None:
    reading = read_code(text, WORDS)
    assert isinstance(reading, Right)
    assert reading.text() == SPOKEN


def test_a_link_stays_a_link() -> None:
    link = Invitation(code=CODE, at=(Address("192.168.1.20", 4433),)).link()
    reading = read_code(f"Come in: {link}", WORDS)
    assert isinstance(reading, Right)
    assert reading.is_link
    assert reading.text() == link


@given(st.integers(min_value=1, max_value=len(SPOKEN) - 1))
def test_no_beginning_of_a_right_code_is_called_wrong(length: int) -> None:
    assert isinstance(read_code(SPOKEN[:length], WORDS), Typing)


def test_the_rest_of_a_word_is_offered() -> None:
    number, first, *_ = SPOKEN.split("-")
    assert read_code(f"{number}-{first[:4]}", WORDS) == Typing(rest=first[4:])


def test_the_rest_is_not_guessed_from_one_letter() -> None:
    assert read_code("47-a", WORDS) == Typing(rest="")


def test_a_word_from_nowhere_is_wrong_with_its_place_and_a_guess() -> None:
    parts = SPOKEN.split("-")
    text = "-".join((parts[0], parts[1], parts[2] + "x", *parts[3:]))
    reading = read_code(text, WORDS)
    assert isinstance(reading, Wrong)
    assert isinstance(reading.misread, UnknownWord)
    assert text[reading.misread.start : reading.misread.end] == parts[2] + "x"
    assert repaired(text, reading.misread) == SPOKEN


def test_swapped_words_do_not_belong_together() -> None:
    parts = SPOKEN.split("-")
    text = "-".join((parts[0], parts[2], parts[1], *parts[3:]))
    reading = read_code(text, WORDS)
    assert isinstance(reading, Wrong)
    assert isinstance(reading.misread, WrongCheck)


def test_something_else_is_no_code() -> None:
    reading = read_code("buy milk and bread ", WORDS)
    assert isinstance(reading, Wrong)
    assert isinstance(reading.misread, NotACode)


def test_words_that_begin_alike_are_found() -> None:
    found = words_like("abx", WORDS)
    assert found
    assert all(word.startswith("ab") for word in found)


def test_a_code_never_shows_itself_in_a_log() -> None:
    secret = SPOKEN.split("-")[1]
    readings = [
        read_code(SPOKEN, WORDS),
        read_code(SPOKEN[: SPOKEN.index("-") + 5], WORDS),
        read_code(f"{SPOKEN}x", WORDS),
    ]
    assert not any(secret in repr(reading) for reading in readings)
    assert secret[4:] == "" or secret[4:] not in repr(readings[1])
