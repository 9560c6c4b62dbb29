"""Failures that a person will read: what happened, and what to do next."""

from enum import StrEnum

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A failure as it is shown: a short title and one sentence of advice.

    Both are our own words, never text that came from another computer.
    """

    title: str
    advice: str

    def sentence(self) -> str:
        """Title and advice as one line for a terminal."""
        return f"{self.title}. {self.advice}"


class Reason(StrEnum):
    """All that one computer tells another of a failure; `kafila.protocol.told` has the words."""

    HOST_ENDED = "host-ended"
    HOST_FAILED = "host-failed"
    REMOVED = "removed"
    LEFT = "left"
    AWAY = "away"
    SILENT = "silent"
    STUCK = "stuck"
    # Why a member cannot do its part.
    DISK = "disk"
    MODEL = "model"
    MACHINE = "machine"
    NUMBERS = "numbers"
    FAILED = "failed"
    # Why a question is not answered.
    TOO_LONG = "too-long"
    TOO_MANY = "too-many"
    LOST_PLACE = "lost-place"
    DIVIDED_ANEW = "divided-anew"
    NOT_A_CHAT = "not-a-chat"
    ODD_CONVERSATION = "odd-conversation"
    NOT_ANSWERED = "not-answered"


class UserError(Exception):
    """An expected failure that ends what was asked for; carries the `Problem` to show.

    `reason` is what other computers are told, where it concerns them.
    """

    def __init__(self, *, title: str, advice: str, reason: Reason = Reason.FAILED) -> None:
        super().__init__(title)
        self.problem = Problem(title=title, advice=advice)
        self.reason = reason


class PeerError(Exception):
    """Another computer broke the protocol. `fault` is our own description of how."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault
