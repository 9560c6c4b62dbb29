"""A model's text taken apart: prose, code, and thinking aloud. Pure, no Qt.

What a model writes is not ours: only web and mail addresses may become links, whatever the text
calls them. Pictures and HTML are dealt with where prose is rendered.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

OPENS_THOUGHT = "<think>"
ENDS_THOUGHT = "</think>"

CHAPTER = 1200
"""Prose longer than this, in characters, is cut at the next paragraph."""

_PARAGRAPH = re.compile(r"(?![-*+] |\d+[.)] |[ \t>|])\S")
"""A line that continues no list, table or quotation."""
_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$")
_LANGUAGE = re.compile(r"[\w+#.\-]{1,24}")
_UNSAFE = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """Markdown without fenced code."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A fenced piece of code; not `closed` while it is being written."""

    language: str
    text: str
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """What the model wrote to itself before it answered."""

    text: str
    closed: bool


Segment = Prose | Code | Thought


def split(text: str) -> tuple[Segment, ...]:
    """The segments of a text, whole or still being written, in order."""
    segments: list[Segment] = []
    opened = text.lstrip()
    if opened.startswith(OPENS_THOUGHT):
        thought, closing, text = opened[len(OPENS_THOUGHT) :].partition(ENDS_THOUGHT)
        if thought.strip() or not closing:
            segments.append(Thought(text=thought.strip(), closed=bool(closing)))
    return (*segments, *_split_code(text))


def spoken(text: str) -> str:
    """The text without the thinking."""
    return "\n\n".join(
        f"```{part.language}\n{part.text}\n```" if isinstance(part, Code) else part.text
        for part in split(text)
        if not isinstance(part, Thought)
    )


def link_allowed(address: str) -> bool:
    """Whether a link may be followed: web and mail addresses, nothing on this computer."""
    if _UNSAFE.search(address):
        return False
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(parts.hostname)
    return parts.scheme == "mailto" and "@" in parts.path and not parts.query


def _split_code(text: str) -> list[Segment]:
    segments: list[Segment] = []
    prose: list[str] = []
    code: list[str] = []
    opening: re.Match[str] | None = None
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if opening is None:
            if found is None or (found["fence"][0] == "`" and "`" in found["info"]):
                prose.append(line)
                continue
            _end_prose(segments, prose)
            opening = found
        elif found is not None and _closes(opening, found):
            segments.append(_code(opening, code, closed=True))
            code = []
            opening = None
        else:
            code.append(line)
    if opening is not None:
        segments.append(_code(opening, code, closed=False))
    _end_prose(segments, prose)
    return segments


def _closes(opening: re.Match[str], found: re.Match[str]) -> bool:
    same = found["fence"][0] == opening["fence"][0]
    return same and len(found["fence"]) >= len(opening["fence"]) and not found["info"].strip()


def _end_prose(segments: list[Segment], prose: list[str]) -> None:
    for lines in _chapters(prose):
        text = "\n".join(lines).strip("\n")
        if text.strip():
            segments.append(Prose(text=text))
    prose.clear()


def _chapters(prose: list[str]) -> list[list[str]]:
    """Long prose cut between paragraphs, so that only its end is rendered while it is written.

    A cut depends only on what is before it: later words never move it.
    """
    chapters: list[list[str]] = [[]]
    length = 0
    for at, line in enumerate(prose):
        begins = at > 0 and not prose[at - 1].strip() and _PARAGRAPH.match(line)
        if begins and length >= CHAPTER:
            chapters.append([])
            length = 0
        chapters[-1].append(line)
        length += len(line) + 1
    return chapters


def _code(opening: re.Match[str], lines: list[str], *, closed: bool) -> Code:
    indent = opening["indent"]
    language = _LANGUAGE.match(opening["info"].strip())
    return Code(
        language=language[0] if language else "",
        text="\n".join(line.removeprefix(indent) for line in lines),
        closed=closed,
    )
