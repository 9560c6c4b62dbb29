"""What goes into joining and what comes out of it, for `kafila.protocol.pake`."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import msgspec

from kafila.domain.capability import Machine
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId, SessionId
from kafila.protocol.join_messages import JOIN_VERSION
from kafila.protocol.roster import Fingerprint
from kafila.protocol.sealed import SealedChannel


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    """How this computer introduces itself."""

    spki_sha256: Fingerprint
    machine: Machine


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a host says of its session to whoever has the code."""

    session: SessionId
    group: str
    model: str


class TurnedAwayReason(IntEnum):
    """Why a host does not go on with an exchange."""

    WRONG_CODE = 1
    BUSY = 2
    CODE_ENDED = 3
    OWN_KEY = 4
    """The joiner has the host's own device key: it is the same Kafila, or a copy of its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """Nothing is decided yet."""

    reply: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedJoiner:
    """For the host: this computer has the code. `reply` is to be sent; then the channel is open."""

    reply: bytes = field(repr=False)
    member: MemberId
    spki_sha256: bytes
    machine: Machine
    phrase: tuple[str, ...] = field(repr=False)
    """To be compared by the two people."""
    channel: SealedChannel = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedHost:
    """For the joiner: this host has the code."""

    session: SessionId
    member: MemberId
    spki_sha256: bytes
    machine: Machine
    group: str
    model: str
    phrase: tuple[str, ...] = field(repr=False)
    """To be compared by the two people."""
    channel: SealedChannel = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongCode:
    """The two codes are not the same."""

    reply: bytes | None = field(default=None, repr=False)

    def problem(self) -> Problem:
        """What to tell the joiner."""
        return Problem(
            title="This code does not open the session",
            advice="It may have ended, or belong to another group. Ask the person hosting for a new one.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersion:
    """The other computer speaks another version of this protocol."""

    theirs: int
    reply: bytes | None = field(default=None, repr=False)

    def problem(self) -> Problem:
        """What to tell the person at this computer."""
        older = "this" if self.theirs > JOIN_VERSION else "the other"
        return Problem(
            title="The two computers have different versions of Kafila",
            advice=f"Update Kafila on {older} computer, then use the code again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKey:
    """For the host: somebody with the code has this computer's own device key."""

    reply: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """For the joiner: the host takes no more guesses, for now or at all, or it is this computer itself."""

    reason: Literal[TurnedAwayReason.BUSY, TurnedAwayReason.CODE_ENDED, TurnedAwayReason.OWN_KEY]

    def problem(self) -> Problem:
        """What to tell the joiner."""
        if self.reason is TurnedAwayReason.CODE_ENDED:
            return Problem(title="This code has ended", advice="Ask the person hosting for a new one.")
        if self.reason is TurnedAwayReason.OWN_KEY:
            return Problem(
                title="This computer hosts that session itself",
                advice="Send the code to the others. A second Kafila on one computer is started with “--profile NAME”.",
            )
        return Problem(title="Others are joining right now", advice="Try again in a moment.")


HostOutcome = GoOn | PairedJoiner | WrongCode | OtherVersion | OwnKey
JoinerOutcome = GoOn | PairedHost | WrongCode | OtherVersion | TurnedAway
