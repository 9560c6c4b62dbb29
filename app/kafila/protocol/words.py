"""The words that codes and verification phrases are spoken in, and what to do about a mistyped one.

A list has 2048 words, so a word says 11 bits. Up to their first four letters no two are alike:
four letters, and Tab, are enough to type one.
"""

from dataclasses import dataclass, field

LIST_LENGTH = 2048
WORD_BITS = 11
WORD_MASK = LIST_LENGTH - 1
MAX_WORD_LETTERS = 8
_MIN_WORD_LETTERS = 3
_TELLING_LETTERS = 4


@dataclass(frozen=True, slots=True)
class WordList:
    """2048 words and their places in the list. Made with `from_text`."""

    words: tuple[str, ...] = field(repr=False)
    _places: dict[str, int] = field(repr=False, compare=False)

    @classmethod
    def from_text(cls, text: str) -> "WordList":
        """Read a list of one word a line. Raises ValueError for one that is not fit for use."""
        words = tuple(text.split())
        if len(words) != LIST_LENGTH or list(words) != sorted(words):
            message = f"a word list has {LIST_LENGTH} words in alphabetical order"
            raise ValueError(message)
        for word in words:
            plain = word.isascii() and word.isalpha() and word.islower()
            if not (plain and _MIN_WORD_LETTERS <= len(word) <= MAX_WORD_LETTERS):
                message = f"not a word for a code: {word!r}"
                raise ValueError(message)
        if len({word[:_TELLING_LETTERS] for word in words}) != LIST_LENGTH:
            message = f"two words of the list share their first {_TELLING_LETTERS} letters"
            raise ValueError(message)
        return cls(words, {word: place for place, word in enumerate(words)})

    def place(self, word: str) -> int | None:
        """Where the word stands in the list; None: it is not in it."""
        return self._places.get(word)

    def spell(self, number: int, count: int) -> tuple[str, ...]:
        """A number of `count` times 11 bits as that many words, the highest bits first."""
        shifts = range(WORD_BITS * (count - 1), -1, -WORD_BITS)
        return tuple(self.words[number >> shift & WORD_MASK] for shift in shifts)

    def complete(self, beginning: str, limit: int = 8) -> tuple[str, ...]:
        """The first words that begin so, for Tab and for a list to choose from."""
        beginning = beginning.casefold()
        return tuple(word for word in self.words if word.startswith(beginning))[:limit]

    def nearest(self, typed: str) -> str | None:
        """The word that was most likely meant; None where nothing in the list is like it."""
        typed = typed.casefold()[: 2 * MAX_WORD_LETTERS]
        allowed = tolerated_slips(typed)
        near = [
            (slips, -_common_letters(word, typed), word)
            for word in self.words
            if abs(len(word) - len(typed)) <= allowed and (slips := count_slips(word, typed)) <= allowed
        ]
        return min(near)[2] if near else None


def tolerated_slips(typed: str) -> int:
    """How many slips of the finger a word of this length may have and still be recognised."""
    return 1 if len(typed) <= _TELLING_LETTERS else 2


def count_slips(meant: str, typed: str) -> int:
    """How many letters were missed, added, mistaken, or swapped with their neighbours."""
    before_last: list[int] = []
    last = list(range(len(typed) + 1))
    for row, letter in enumerate(meant):
        current = [row + 1]
        for column, other in enumerate(typed):
            slips = min(last[column] + (letter != other), last[column + 1] + 1, current[column] + 1)
            if row and column and letter == typed[column - 1] and meant[row - 1] == other:
                slips = min(slips, before_last[column - 1] + 1)
            current.append(slips)
        before_last, last = last, current
    return last[-1]


def _common_letters(word: str, typed: str) -> int:
    """How many letters the two begin with alike: people seldom miss the first ones."""
    common = 0
    for letter, other in zip(word, typed, strict=False):
        if letter != other:
            break
        common += 1
    return common
