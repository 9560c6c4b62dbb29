"""How fast a text came, in what people count: words, or characters where no spaces are written."""

from dataclasses import dataclass
from enum import StrEnum
from unicodedata import name

LEAST_TIMED_S = 0.25
"""A rate over less time than this says nothing."""

_ENOUGH = 500
"""So many characters tell how a language is written."""

_WITHOUT_SPACES = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")


class Unit(StrEnum):
    """What was counted."""

    WORDS = "words"
    CHARACTERS = "characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """So many words, or characters."""

    count: int
    unit: Unit


def amount(text: str) -> Amount:
    """How much a text says."""
    letters = [letter for letter in text[:_ENOUGH] if letter.isalpha()]
    spaceless = sum(1 for letter in letters if name(letter, "").startswith(_WITHOUT_SPACES))
    if spaceless * 2 > len(letters):
        return Amount(count=sum(1 for letter in text if not letter.isspace()), unit=Unit.CHARACTERS)
    return Amount(count=len(text.split()), unit=Unit.WORDS)


def rate(text: str, seconds: float) -> float | None:
    """Words or characters a second; None where the time is too short to say."""
    if seconds < LEAST_TIMED_S:
        return None
    counted = amount(text).count
    # The first word is there when the clock starts.
    return (counted - 1) / seconds if counted > 1 else None
