"""What a host hands to people: a code to say, or a link to paste. And how what they type is read.

A code is a number and four words, "47-harbor-velvet-otter-maple". The number (nameplate) finds the
session at the rendezvous and is public. Three words are the secret, 33 bits. The last one is a
check over all that comes before it: the wrong code is noticed before anyone is asked.

The check treats words as elements of GF(2^11) and is their sum, each weighted with another power
of two. So every single wrong word and every two swapped ones are noticed, and where one word is
not readable, the others say which it was.
"""

import re
from dataclasses import dataclass, field
from itertools import takewhile
from urllib.parse import parse_qsl, quote, unquote

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
from kafila.protocol.trust import PIN_BYTES, Authority, Pinned, parse_pin
from kafila.protocol.words import MAX_WORD_LETTERS, WORD_BITS, WORD_MASK, WordList, count_slips, tolerated_slips

LINK_VERSION = 1
SECRET_WORDS = 3
CODE_WORDS = SECRET_WORDS + 1
CODE_ENTROPY_BYTES = 5
MAX_NAMEPLATE = 999_999_999
MAX_ADDRESSES = 8
MAX_TEXT = 4096
"""Characters of what was pasted that are looked at; an invitation has a few hundred."""

_MAX_HOST = 253
_MAX_LINK_FIELDS = 32
_HOST = re.compile(r"[0-9A-Za-z.:_-]+")
_LINK = re.compile(r"kafila:(?://)?join/?(?P<code>[^\s?#<>\"']*)(?:\?(?P<query>[^\s#<>\"']*))?", re.IGNORECASE)
_PIECES = re.compile(r"(?P<number>\d+)|(?P<word>[^\W\d_]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A session's code. `words` are its three secret ones; it never shows them by itself."""

    nameplate: int
    words: tuple[str, ...] = field(repr=False)
    check: str = field(repr=False)

    def spoken(self) -> str:
        """The whole code as it is said and typed."""
        return "-".join((str(self.nameplate), *self.words, self.check))

    def secret(self) -> bytes:
        """The secret words as the password of the key exchange."""
        return "-".join(self.words).encode()


def make_code(nameplate: int, entropy: bytes, words: WordList) -> Code:
    """A code with new secret words, out of `CODE_ENTROPY_BYTES` random bytes."""
    if not 0 < nameplate <= MAX_NAMEPLATE or len(entropy) != CODE_ENTROPY_BYTES:
        message = "a code is made of a nameplate and five random bytes"
        raise ValueError(message)
    secret = words.spell(int.from_bytes(entropy, "big"), SECRET_WORDS)
    places = [place for word in secret if (place := words.place(word)) is not None]
    return Code(nameplate=nameplate, words=secret, check=words.words[_check(nameplate, places)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A code, and the addresses of its rendezvous where they are known."""

    code: Code
    at: tuple[Address, ...] = ()
    pin: bytes | None = None
    """How the SHA-256 of the rendezvous's certificate begins; None: an authority vouches for it."""

    def link(self) -> str:
        """The invitation as one `kafila://join/…` link."""
        at = "".join(f"&at={quote(str(address), safe=':')}" for address in self.at)
        pin = f"&pin={self.pin[:PIN_BYTES].hex()}" if self.pin else ""
        return f"kafila://join/{self.code.spoken()}?v={LINK_VERSION}{at}{pin}"

    def ways(self) -> tuple[RendezvousAt, ...]:
        """The addresses, each with what has to be shown there."""
        return tuple(
            RendezvousAt(address, Authority(address.host) if self.pin is None else Pinned(self.pin))
            for address in self.at
        )


def parse_invitation(text: str, words: WordList) -> Invitation | Misread:
    """Read a code or a link, alone or inside a message, as people type and paste them."""
    text = text[:MAX_TEXT]
    if link := _LINK.search(text):
        return _read_link(link, words)
    code = _read_code(text, words)
    return Invitation(code=code) if isinstance(code, Code) else code


# Links ---------------------------------------------------------------------------------------


def _read_link(link: re.Match[str], words: WordList) -> Invitation | Misread:
    query = (link["query"] or "").replace("&amp;", "&").rstrip(".,;!)")
    try:
        fields = parse_qsl(query, max_num_fields=_MAX_LINK_FIELDS)
    except ValueError:
        return BrokenLink()
    if any(value != str(LINK_VERSION) for name, value in fields if name == "v"):
        return OtherLinkVersion()
    at = [_read_address(value) for name, value in fields if name == "at"]
    known = tuple(address for address in at if address is not None)
    pins = [_read_pin(value) for name, value in fields if name == "pin"]
    code = _read_code(unquote(link["code"]), words)
    if not isinstance(code, Code):
        # Nobody types a link: where its words are wrong, it was damaged on its way.
        return BrokenLink()
    if len(known) != len(at) or len(at) > MAX_ADDRESSES or None in pins or len(pins) > 1:
        return BrokenLink()
    return Invitation(code=code, at=known, pin=pins[0] if pins else None)


def _read_address(text: str) -> Address | None:
    try:
        address = Address.parse(text)
    except ValueError:
        return None
    fits = len(address.host) <= _MAX_HOST and _HOST.fullmatch(address.host) and address.port > 0
    return address if fits else None


def _read_pin(text: str) -> bytes | None:
    try:
        return parse_pin(text)
    except ValueError:
        return None


# Codes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A number in the text and the words that follow it, as far as they can be one code."""

    nameplate: int
    said: list[re.Match[str]] = field(repr=False)
    places: list[int | None] = field(repr=False)
    """Of the first four words, their places in the list."""

    @property
    def known(self) -> list[int]:
        return [place for place in self.places if place is not None]

    @property
    def complete(self) -> bool:
        return len(self.known) == CODE_WORDS


def _read_code(text: str, words: WordList) -> Code | Misread:
    """Read the code that begins with any of the numbers in the text."""
    pieces = list(_PIECES.finditer(text))
    candidates = [
        _candidate(piece, pieces[place + 1 :], words) for place, piece in enumerate(pieces) if piece["number"]
    ]
    if not candidates:
        known = sum(words.place(piece[0].casefold()) is not None for piece in pieces)
        return NoNumber() if known >= SECRET_WORDS else NotACode()
    for candidate in candidates:
        if candidate.nameplate and candidate.complete:
            *secret, check = candidate.known
            if _check(candidate.nameplate, secret) == check:
                spelled = tuple(words.words[place] for place in secret)
                return Code(nameplate=candidate.nameplate, words=spelled, check=words.words[check])
    return _explain(max(candidates, key=lambda candidate: len(candidate.known)), words)


def _candidate(number: re.Match[str], following: list[re.Match[str]], words: WordList) -> _Candidate:
    said = list(takewhile(lambda piece: piece["word"], following[: CODE_WORDS + 1]))
    fits = len(number[0]) <= len(str(MAX_NAMEPLATE))
    return _Candidate(
        nameplate=int(number[0]) if fits else 0,
        said=said,
        places=[words.place(piece[0].casefold()) for piece in said[:CODE_WORDS]],
    )


def _explain(candidate: _Candidate, words: WordList) -> Misread:
    """Why this is not a code."""
    unknown = candidate.places.count(None)
    if not candidate.nameplate or unknown > len(candidate.known):
        return NotACode()
    if unknown:
        return _unknown_word(candidate, words)
    if not candidate.complete:
        return WordsMissing(found=len(candidate.known))
    if len(candidate.said) > CODE_WORDS:
        return WordsTooMany()
    return WrongCheck()


def _unknown_word(candidate: _Candidate, words: WordList) -> UnknownWord:
    index = candidate.places.index(None)
    piece = candidate.said[index]
    typed = piece[0].casefold()
    guess, fits = words.nearest(typed), False
    if len(candidate.known) == SECRET_WORDS:
        solved = words.words[_solve(candidate.nameplate, candidate.places)]
        # One slip more than for a bare guess: that the code checks out speaks for it.
        if count_slips(solved, typed[: 2 * MAX_WORD_LETTERS]) <= tolerated_slips(typed) + 1:
            guess, fits = solved, True
    return UnknownWord(position=index + 1, start=piece.start(), end=piece.end(), guess=guess, fits=fits)


# The check word: arithmetic in GF(2^11) ------------------------------------------------------

_MODULUS = 1 << 11 | 1 << 2 | 1
"""x^11 + x^2 + 1, which is primitive: powers of x meet only after 2047 steps."""


def _times_x(value: int, steps: int) -> int:
    """The value times x^steps."""
    for _ in range(steps):
        value <<= 1
        if value >> WORD_BITS:
            value ^= _MODULUS
    return value


def _over_x(value: int, steps: int) -> int:
    """The value divided by x^steps."""
    for _ in range(steps):
        if value & 1:
            value ^= _MODULUS
        value >>= 1
    return value


def _check(nameplate: int, secret: list[int]) -> int:
    """The place of the check word."""
    total = 0
    for weight, place in enumerate(secret, start=1):
        total ^= _times_x(place, weight)
    for weight in range(len(secret) + 1, len(secret) + 4):
        total ^= _times_x(nameplate & WORD_MASK, weight)
        nameplate >>= WORD_BITS
    return total


def _solve(nameplate: int, places: list[int | None]) -> int:
    """The one place that is None, so that the check holds."""
    missing = places.index(None)
    known = [place or 0 for place in places]
    difference = _check(nameplate, known[:SECRET_WORDS]) ^ known[SECRET_WORDS]
    return difference if missing == SECRET_WORDS else _over_x(difference, missing + 1)
