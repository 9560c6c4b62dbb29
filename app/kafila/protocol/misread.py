"""What can be wrong with a code that somebody typed, each with the words in which it is told.

The words of the code are never part of how these values show themselves: a mistyped code is
nearly the right one.
"""

from dataclasses import dataclass, field

from kafila.domain.errors import Problem

_ORDINALS = ("first", "second", "third", "fourth")
_CHECK_WITH_HOST = "Check the code with the person hosting"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotACode:
    """Nothing in the text looks like a code."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="This is not a session code",
            advice="A code is a number and four words. Ask the person hosting to copy it again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNumber:
    """Words without the number."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="The number is missing",
            advice="A code begins with a number, then come four words.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsMissing:
    """Fewer words than a code has."""

    found: int

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="The code is not complete",
            advice="A code has four words after its number.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsTooMany:
    """More words than a code has, and the first four are none."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="There are too many words",
            advice=f"A code has four words after its number. {_CHECK_WITH_HOST}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownWord:
    """A word that is not in the list."""

    position: int
    """1 for the first word after the number."""
    start: int
    end: int
    """The word is text[start:end] of what was parsed."""
    guess: str | None = field(repr=False)
    """What was probably meant."""
    fits: bool
    """With the guess the whole code is right."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title=f"The {_ORDINALS[self.position - 1]} word is not one of ours",
            advice=f"Did you mean {self.guess}?" if self.guess else f"{_CHECK_WITH_HOST}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongCheck:
    """All words are from the list, but not together."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="These words do not belong together; one of them is wrong",
            advice=f"{_CHECK_WITH_HOST}, number and words.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLink:
    """A link that was cut or changed on its way."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="This link is damaged",
            advice="Ask the person hosting to copy the invitation again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLinkVersion:
    """A link that another version of Kafila made."""

    def problem(self) -> Problem:
        """What to tell the person."""
        return Problem(
            title="This link is from another version of Kafila",
            advice="Bring both computers to the newest version, then use a new link.",
        )


Misread = NotACode | NoNumber | WordsMissing | WordsTooMany | UnknownWord | WrongCheck | BrokenLink | OtherLinkVersion
