import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.joining import WORDS, code
from kafila.protocol.invitation import Code, Invitation, make_code, parse_invitation
from kafila.protocol.links import Address
from kafila.protocol.misread import (
    BrokenLink,
    Misread,
    NoNumber,
    NotACode,
    OtherLinkVersion,
    UnknownWord,
    WordsMissing,
    WordsTooMany,
    WrongCheck,
)
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import Authority, Pinned

CODE = code("a code")
SPOKEN = CODE.spoken()
PARTS = SPOKEN.split("-")
AT = (Address("192.168.1.20", 4433), Address("fd00::7", 443), Address("meet.example.org", 8443))
PIN = bytes(range(0xA0, 0xB0))
LINK = Invitation(code=CODE, at=AT, pin=PIN).link()


@st.composite
def any_code(draw: st.DrawFn) -> Code:
    return make_code(draw(st.integers(1, 999_999_999)), draw(st.binary(min_size=5, max_size=5)), WORDS)


codes = any_code()
indices = st.integers(0, 3)
places = st.integers(0, 2047)


def misread(text: str) -> Misread:
    found = parse_invitation(text, WORDS)
    assert not isinstance(found, Invitation)
    return found


@given(codes)
def test_a_code_is_read_as_it_was_made(made: Code) -> None:
    assert parse_invitation(made.spoken(), WORDS) == Invitation(code=made)


def test_a_code_has_thirty_three_secret_bits() -> None:
    assert make_code(47, bytes(5), WORDS).words == WORDS.words[:1] * 3
    assert make_code(47, b"\xff" * 5, WORDS).words == WORDS.words[-1:] * 3
    assert len({make_code(47, (1 << bit).to_bytes(5, "big"), WORDS).words for bit in range(33)}) == 33


@pytest.mark.parametrize(
    "text",
    [
        SPOKEN.upper(),
        SPOKEN.title(),
        SPOKEN.replace("-", " "),
        SPOKEN.replace("-", " - "),
        SPOKEN.replace("-", ", "),
        SPOKEN.replace("-", "\u2013"),
        SPOKEN.replace("-", "\n"),
        SPOKEN.replace("-", "", 1),
        f"  {SPOKEN}\r\n",
        f"Join us tonight at 8, the code is {SPOKEN}. See you there at 9!",
        f"{SPOKEN} and bring cake",
        SPOKEN.replace("47", "\u0664\u0667"),
        SPOKEN.replace("47", "047"),
    ],
)
def test_capitals_spaces_hyphens_and_what_stands_around_do_not_matter(text: str) -> None:
    assert parse_invitation(text, WORDS) == Invitation(code=CODE)


@pytest.mark.parametrize(
    "text",
    [
        LINK,
        LINK.upper()
        .replace("V=1", "v=1")
        .replace("AT=", "at=")
        .replace("PIN", "pin")
        .replace("MEET.EXAMPLE.ORG", "meet.example.org"),
        f"Run a model with us: {LINK}. It takes a minute.",
        f"<{LINK}>",
        f'"{LINK}"',
        LINK.replace("&", "&amp;"),
        LINK.replace(":", "%3A").replace("kafila%3A", "kafila:"),
        LINK.replace(SPOKEN, quote(SPOKEN.replace("-", " "))),
        LINK + "&later=addition",
        LINK + "#fragment",
    ],
)
def test_a_link_is_found_and_read_with_its_addresses(text: str) -> None:
    found = parse_invitation(text, WORDS)
    assert isinstance(found, Invitation)
    assert found.code == CODE
    assert [str(address).casefold() for address in found.at] == [str(address) for address in AT]
    assert found.pin == PIN


def test_a_link_without_addresses_or_version_is_enough() -> None:
    assert parse_invitation(Invitation(code=CODE).link(), WORDS) == Invitation(code=CODE)
    assert parse_invitation(f"kafila://join/{SPOKEN}", WORDS) == Invitation(code=CODE)


def test_every_way_of_a_link_is_pinned_or_vouched_for() -> None:
    pinned = Invitation(code=CODE, at=AT, pin=PIN + bytes(16))
    read = parse_invitation(pinned.link(), WORDS)
    assert isinstance(read, Invitation)
    assert read.ways() == tuple(RendezvousAt(address, Pinned(PIN)) for address in AT)
    vouched = Invitation(code=CODE, at=AT)
    assert vouched.ways() == tuple(RendezvousAt(address, Authority(address.host)) for address in AT)


def test_a_link_stays_short() -> None:
    assert len(Invitation(code=CODE, at=AT[:1], pin=PIN).link()) < 128


# What is wrong, and what is said about it --------------------------------------------------------


@pytest.mark.parametrize("text", ["", "hello", "-", "call me at 5 or so", "0-" + "-".join(PARTS[1:])])
def test_what_is_no_code_is_called_none(text: str) -> None:
    assert misread(text) == NotACode()


def test_a_missing_number_is_named() -> None:
    assert misread("-".join(PARTS[1:])) == NoNumber()


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_missing_words_are_named(count: int) -> None:
    assert misread("-".join(PARTS[: 1 + count])) == WordsMissing(found=count)


def test_too_many_words_are_named() -> None:
    assert misread("-".join((PARTS[0], "cloud", *PARTS[1:]))) == WordsTooMany()


def test_a_word_that_is_not_ours_is_named_by_its_place_with_a_guess() -> None:
    text = " 47-harbor-otter-velvit-maple"
    found = misread(text)
    assert isinstance(found, UnknownWord)
    assert (found.position, text[found.start : found.end], found.guess) == (3, "velvit", "velvet")
    problem = found.problem()
    assert problem.sentence() == "The third word is not one of ours. Did you mean velvet?"


@given(codes, indices, st.data())
def test_the_check_word_knows_which_word_was_mistyped(made: Code, index: int, data: st.DataObject) -> None:
    parts = made.spoken().split("-")
    meant = parts[index + 1]
    letter = data.draw(st.integers(0, len(meant) - 1))
    typed = meant[:letter] + "q" + meant[letter + 1 :]
    if WORDS.place(typed) is not None:
        return
    parts[index + 1] = typed
    found = misread("-".join(parts))
    assert isinstance(found, UnknownWord)
    assert (found.position, found.guess, found.fits) == (index + 1, meant, True)


def test_a_guess_that_does_not_fit_is_still_a_guess() -> None:
    found = misread("47-velvit-velvet-velvet-maple")
    assert isinstance(found, UnknownWord)
    assert (found.guess, found.fits) == ("velvet", False)


def test_a_word_like_none_of_ours_gets_no_guess() -> None:
    found = misread(f"47-{PARTS[1]}-xqzzyw-{PARTS[3]}-{PARTS[4]}")
    assert isinstance(found, UnknownWord)
    assert (found.position, found.guess) == (2, None)
    assert "Did you mean" not in found.problem().sentence()


@given(codes, indices, places)
def test_every_wrong_word_is_noticed(made: Code, index: int, place: int) -> None:
    parts = made.spoken().split("-")
    if parts[index + 1] == WORDS.words[place]:
        return
    parts[index + 1] = WORDS.words[place]
    assert misread("-".join(parts)) == WrongCheck()


@given(codes, indices, indices)
def test_every_two_words_swapped_are_noticed(made: Code, one: int, other: int) -> None:
    parts = made.spoken().split("-")
    if parts[one + 1] == parts[other + 1]:
        return
    parts[one + 1], parts[other + 1] = parts[other + 1], parts[one + 1]
    assert misread("-".join(parts)) == WrongCheck()


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (1, 2)])
def test_even_the_words_that_differ_in_every_bit_are_noticed_when_swapped(one: int, other: int) -> None:
    places = [5, 5, 5]
    places[one], places[other] = 0, 2047
    number = (places[0] << 22) + (places[1] << 11) + places[2]
    parts = make_code(47, number.to_bytes(5, "big"), WORDS).spoken().split("-")
    parts[one + 1], parts[other + 1] = parts[other + 1], parts[one + 1]
    assert misread("-".join(parts)) == WrongCheck()


@given(st.integers(1, 999_999_999), st.integers(0, 8), st.integers(1, 9), st.binary(min_size=5, max_size=5))
def test_every_wrong_digit_of_a_small_number_is_noticed(
    nameplate: int, digit: int, change: int, entropy: bytes
) -> None:
    nameplate %= 2048
    digits = f"{nameplate:04}"
    digit %= len(digits)
    wrong = digits[:digit] + str((int(digits[digit]) + change) % 10) + digits[digit + 1 :]
    if nameplate == 0 or not 0 < int(wrong) < 2048:
        return
    words = make_code(nameplate, entropy, WORDS).spoken().split("-")[1:]
    assert misread("-".join((wrong, *words))) == WrongCheck()


def test_the_sentence_for_words_that_do_not_belong_together() -> None:
    title = WrongCheck().problem().title
    assert title == "These words do not belong together; one of them is wrong"


@pytest.mark.parametrize("version", ["2", "0", "1.1", "x"])
def test_a_link_of_another_version_says_so(version: str) -> None:
    assert misread(LINK.replace("v=1", f"v={version}")) == OtherLinkVersion()


@pytest.mark.parametrize(
    "text",
    [
        LINK.replace(PARTS[2], ""),
        LINK.replace(PARTS[2], "velvit"),
        f"kafila://join/{SPOKEN}?at=nowhere",
        f"kafila://join/{SPOKEN}?at=host:0",
        f"kafila://join/{SPOKEN}?at=host:70000",
        f"kafila://join/{SPOKEN}?at=a%00b:1",
        f"kafila://join/{SPOKEN}?at={'a' * 254}:1",
        f"kafila://join/{SPOKEN}?at=a/b:1",
        f"kafila://join/{SPOKEN}?" + "&".join(["at=host:1"] * 9),
        f"kafila://join/{SPOKEN}?at=host:1&pin=5a",
        f"kafila://join/{SPOKEN}?at=host:1&pin={'5g' * 16}",
        f"kafila://join/{SPOKEN}?at=host:1&pin={'5a' * 33}",
        f"kafila://join/{SPOKEN}?at=host:1&pin={'5a' * 16}&pin={'5a' * 16}",
        f"kafila://join/{SPOKEN}?" + "&".join(["x=1"] * 99),
        "kafila://join/",
    ],
)
def test_a_damaged_link_is_not_believed(text: str) -> None:
    assert misread(text) == BrokenLink()


def test_every_misreading_has_words_of_its_own() -> None:
    problems = {
        found.problem()
        for found in (
            NotACode(),
            NoNumber(),
            WordsMissing(found=2),
            WordsTooMany(),
            WrongCheck(),
            BrokenLink(),
            OtherLinkVersion(),
        )
    }
    assert len(problems) == 7
    assert all(problem.title and problem.advice for problem in problems)


# Robustness --------------------------------------------------------------------------------------


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    parse_invitation(text, WORDS)


@given(st.lists(st.sampled_from([*PARTS, "47", "8", " ", "-", "kafila://join/", "?v=1", "&at=[::", "%", "%2D", "\n"])))
def test_any_pieces_of_invitations_are_read_or_refused(pieces: list[str]) -> None:
    found = parse_invitation("".join(pieces), WORDS)
    if not isinstance(found, Invitation):
        assert found.problem().title


def test_a_very_long_text_costs_one_guess_at_most() -> None:
    assert misread("1 velvit velvet velvet maple " * 100_000)
    assert misread("9" * 1_000_000) == NotACode()


def test_nothing_of_a_code_shows_by_itself() -> None:
    shown = [repr(CODE), str(CODE), f"{CODE}", repr(Invitation(code=CODE, at=AT))]
    for index in range(1, 5):
        parts = [*PARTS]
        parts[index] = parts[index][:-1] + "qq"
        shown.append(repr(misread("-".join(parts))))
    secrets = re.compile("|".join(PARTS[1:]))
    assert [text for text in shown if secrets.search(text)] == []
