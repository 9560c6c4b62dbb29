"""What a person can ask of the engine. The window and the terminal send the same commands."""

from enum import StrEnum

import msgspec

from kafila.domain.ids import ConversationId, MemberId
from kafila.domain.plan import Objective


class Admission(StrEnum):
    """Who decides over newcomers."""

    ASK = "ask"
    ALL = "all"


class HostSession(msgspec.Struct, frozen=True, kw_only=True, tag="host"):
    """Open a session and get a code."""

    model: str
    """"demo", or a folder."""
    group: str = ""
    context: int = 4096
    concurrency: int = 1
    objective: Objective = Objective.FASTEST
    admission: Admission = Admission.ASK
    start_at: int | None = None
    """Start by itself once this many members (the host counted) are in and measured."""
    rendezvous: str | None = None
    """HOST:PORT of a rendezvous service; None: the settings', or the one inside this app."""
    listen: str | None = None
    """HOST:PORT on which this computer listens; None: chosen."""
    open_port: bool = False
    """Whether the router may be asked to open a port for the rendezvous inside this app."""


class JoinSession(msgspec.Struct, frozen=True, kw_only=True, tag="join"):
    """Join with a code or an invitation link."""

    code: str
    rendezvous: str | None = None
    listen: str | None = None


class TryDemo(msgspec.Struct, frozen=True, kw_only=True, tag="demo"):
    """A real session whose other members are engines on this same computer."""

    members: int = 3


class Admit(msgspec.Struct, frozen=True, kw_only=True, tag="admit"):
    """Let a newcomer in."""

    member: MemberId


class Decline(msgspec.Struct, frozen=True, kw_only=True, tag="decline"):
    """Do not let a newcomer in."""

    member: MemberId


class Remove(msgspec.Struct, frozen=True, kw_only=True, tag="remove"):
    """Take a member out of the waiting room."""

    member: MemberId


class NewCode(msgspec.Struct, frozen=True, kw_only=True, tag="new-code"):
    """End the present code and make another."""


class TrustKnown(msgspec.Struct, frozen=True, kw_only=True, tag="trust-known"):
    """Whether computers that were let in before are let in without asking."""

    on: bool


class StartRing(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """Form the ring with the members that are in."""


class DivideByHand(msgspec.Struct, frozen=True, kw_only=True, tag="divide"):
    """In the waiting room: divide the blocks so. Empty: as the planner would."""

    blocks: tuple[tuple[MemberId, int], ...]
    """Every member with its number of blocks, in ring order from the head on."""


class PlanAnew(msgspec.Struct, frozen=True, kw_only=True, tag="plan-anew"):
    """While serving: divide the blocks again by what the stages really take."""


class LeaveSession(msgspec.Struct, frozen=True, kw_only=True, tag="leave"):
    """Leave; a host ends the session for everyone."""


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    """"user", "assistant" or "system"."""
    text: str


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """Generate the next turn of a conversation, which is sent whole every time."""

    conversation: ConversationId
    answer: int
    """Chosen by the asker, unique within its conversation; chat events carry it."""
    messages: tuple[ChatMessage, ...]
    max_tokens: int = 512
    temperature: float | None = None
    """None: as the model's makers advise, in its folder's generation_config.json."""
    top_p: float | None = None


class StopAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop generating; what was said stays."""

    conversation: ConversationId
    answer: int


class Rename(msgspec.Struct, frozen=True, kw_only=True, tag="rename"):
    """What this computer and its owner are called from now on."""

    machine: str
    owner: str


class MeetAt(msgspec.Struct, frozen=True, kw_only=True, tag="meet-at"):
    """Where this computer's sessions meet from now on, where nothing else is said."""

    rendezvous: str
    """HOST:PORT or HOST:PORT#FINGERPRINT of a rendezvous service; "": the one inside the host's app."""


Command = (
    HostSession
    | JoinSession
    | TryDemo
    | Admit
    | Decline
    | Remove
    | NewCode
    | TrustKnown
    | StartRing
    | DivideByHand
    | PlanAnew
    | LeaveSession
    | Ask
    | StopAnswer
    | Rename
    | MeetAt
)
