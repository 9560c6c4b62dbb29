"""Reading a code while it is typed: what is right so far, what is wrong, how a word goes on. No Qt.

What a finished code means is decided by `kafila.protocol.invitation`; here is only patience with
somebody who is still typing.
"""

import re
from dataclasses import dataclass, field
from functools import cache

from kafila.assets import asset
from kafila.protocol.invitation import Invitation, parse_invitation
from kafila.protocol.misread import BrokenLink, Misread, OtherLinkVersion, UnknownWord, WordsMissing
from kafila.protocol.words import WordList

_BEGUN = re.compile(r"(?<![^\W_])[a-z]+\Z", re.IGNORECASE)
_TELLING_LETTERS = 3
"""From so many letters on the first word that fits is offered."""


@cache
def code_words() -> WordList:
    """The words that codes are made of."""
    return WordList.from_text(asset("words.txt").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing was typed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typing:
    """Right so far. `rest` is the end of the word at the end, where it can be guessed."""

    rest: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """It cannot become a code as it is."""

    misread: Misread


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A whole code, or a link."""

    invitation: Invitation
    is_link: bool

    def text(self) -> str:
        """What is sent to the engine, and stands in the field."""
        return self.invitation.link() if self.is_link else self.invitation.code.spoken()


Reading = Nothing | Typing | Wrong | Right


def read_code(text: str, words: WordList) -> Reading:
    """What a typed or pasted text is."""
    if not text.strip():
        return Nothing()
    parsed = parse_invitation(text, words)
    if isinstance(parsed, Invitation):
        return Right(invitation=parsed, is_link=bool(parsed.at) or "kafila:" in text.lower())
    if isinstance(parsed, WordsMissing):
        return Typing(rest=_rest(text, words))
    begun = _BEGUN.search(text)
    if begun is not None and _may_go_on(text[: begun.start()], begun[0], parsed, words):
        return Typing(rest=_rest(text, words))
    return Wrong(misread=parsed)


def repaired(text: str, wrong: UnknownWord) -> str:
    """The text with the guess in place of the wrong word."""
    return f"{text[: wrong.start]}{wrong.guess}{text[wrong.end :]}"


def words_like(word: str, words: WordList) -> tuple[str, ...]:
    """Words of the list that begin like this one."""
    for length in range(len(word), 0, -1):
        if begun := words.complete(word[:length]):
            return begun
    return ()


def _may_go_on(before: str, begun: str, misread: Misread, words: WordList) -> bool:
    """Whether the word at the end may still become a right one."""
    if not before.strip():
        # The number is still missing; it is early to complain.
        return True
    longer = [word for word in words.complete(begun, limit=2) if word != begun.casefold()]
    if not longer or isinstance(misread, BrokenLink | OtherLinkVersion):
        return False
    return isinstance(parse_invitation(before, words), WordsMissing)


def _rest(text: str, words: WordList) -> str:
    begun = _BEGUN.search(text)
    if begun is None or not text[: begun.start()].strip():
        return ""
    known = words.complete(begun[0], limit=2)
    clear = len(known) == 1 or len(begun[0]) >= _TELLING_LETTERS
    return known[0][len(begun[0]) :] if known and clear else ""
