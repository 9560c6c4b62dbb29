import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.joining import WORDS
from kafila.protocol.words import LIST_LENGTH, WordList, count_slips


def test_the_list_is_short_words_that_four_letters_tell_apart() -> None:
    assert len(set(WORDS.words)) == LIST_LENGTH == 2048
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS.words)
    assert all(3 <= len(word) <= 8 for word in WORDS.words)
    assert len({word[:4] for word in WORDS.words}) == LIST_LENGTH


SOUND_ALIKE = """
bear/bare berry/bury blue/blew board/bored brake/break capital/capitol cell/sell cent/scent
cereal/serial chord/cord coarse/course dear/deer desert/dessert dual/duel eight/ate fair/fare
flea/flee flour/flower hair/hare hall/haul heal/heel hole/whole hour/our key/quay knight/night
knot/not lead/led made/maid mail/male main/mane maze/maize meat/meet medal/metal
morning/mourning muscle/mussel none/nun one/won pail/pale pain/pane pair/pear peace/piece
peak/peek plain/plane pole/poll rain/reign right/write ring/wring road/rode role/roll
root/route sail/sale scene/seen sea/see sew/sow some/sum son/sun stair/stare stake/steak
steal/steel tail/tale their/there tide/tied toe/tow vain/vein wade/weighed waist/waste
wait/weight way/weigh weak/week wear/where weather/whether which/witch wood/would
"""


def test_no_two_words_of_the_list_sound_alike() -> None:
    pairs = [pair.split("/") for pair in SOUND_ALIKE.split()]
    assert [pair for pair in pairs if all(WORDS.place(word) is not None for word in pair)] == []


@pytest.mark.parametrize(
    "text",
    ["", "one\ntwo\n", "\n".join(WORDS.words[:-1]), "\n".join(reversed(WORDS.words)), "\n".join((*WORDS.words, "zzz"))],
)
def test_a_list_of_another_length_or_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2048 words"):
        WordList.from_text(text)


@pytest.mark.parametrize(("first", "fault"), [("abacuss", "share"), ("aa", "not a word"), ("Abac", "not a word")])
def test_a_list_with_an_unfit_word_is_refused(first: str, fault: str) -> None:
    words = sorted((first, *WORDS.words[:1], *WORDS.words[2:]))
    with pytest.raises(ValueError, match=fault):
        WordList.from_text("\n".join(words))


@given(st.integers(0, (1 << 33) - 1))
def test_a_number_is_spelled_in_words_that_give_it_back(number: int) -> None:
    places = [WORDS.place(word) or 0 for word in WORDS.spell(number, 3)]
    assert (places[0] << 22) + (places[1] << 11) + places[2] == number


def test_four_letters_complete_to_one_word() -> None:
    assert WORDS.complete("VELV") == ("velvet",)
    assert all(word in WORDS.complete(word[:4], limit=99) for word in WORDS.words[::50])
    assert len(WORDS.complete("s", limit=5)) == 5
    assert WORDS.complete("qqq") == ()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("velvit", "velvet"),
        ("harbour", "harbor"),
        ("OTER", "otter"),
        ("mapel", "maple"),
        ("clould", "cloud"),
        ("herron", "heron"),
        ("xqzzyw", None),
        ("", None),
        ("v" * 5000, None),
    ],
)
def test_the_nearest_word_is_what_was_meant(typed: str, meant: str | None) -> None:
    assert WORDS.nearest(typed) == meant


@given(st.text("abcd", max_size=6), st.text("abcd", max_size=6))
def test_slips_are_a_distance(one: str, other: str) -> None:
    slips = count_slips(one, other)
    assert slips == count_slips(other, one)
    assert (slips == 0) == (one == other)
    assert abs(len(one) - len(other)) <= slips <= max(len(one), len(other))


def test_swapped_neighbours_are_one_slip() -> None:
    assert count_slips("maple", "mapel") == 1
    assert count_slips("maple", "aplem") == 2
