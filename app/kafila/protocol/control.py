"""What members say to one another over the control channel of a link, and while being let in.

The host decides and tells; members report. Every message is one msgpack value whose type is
checked on arrival.
"""

import msgspec

from kafila.domain.capability import Capability
from kafila.domain.chat import AnswerDone, AnswerQueued, AnswerText
from kafila.domain.commands import Ask, StopAnswer
from kafila.domain.errors import PeerError, Reason
from kafila.domain.ids import ConversationId, SessionId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import PathKind, Plan
from kafila.domain.snapshot import Forming, FormStep, Pace, Serving, WaitingRoom
from kafila.protocol.links import Candidates, Peer
from kafila.protocol.told import Told

MAX_CONTROL_BYTES = 4 << 20


class Here(msgspec.Struct, frozen=True, kw_only=True, tag="here"):
    """Joiner to host, sealed: where it may be reached."""

    candidates: Candidates


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome"):
    """Host to joiner, sealed: it is let in. The host is the only peer so far."""

    session: SessionId
    roster: bytes
    """Signed by the host."""
    host: Peer
    model: ModelSpec
    context: int
    concurrency: int


class Declined(msgspec.Struct, frozen=True, kw_only=True, tag="declined"):
    """Host to joiner, sealed: not let in."""


class Measured(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """Member to host: what this computer can do for the session's model."""

    capability: Capability


class View(msgspec.Struct, frozen=True, kw_only=True, tag="view"):
    """Host to members: what there is to see. The host's own secrets are not in it."""

    view: WaitingRoom | Forming | Serving


class Form(msgspec.Struct, frozen=True, kw_only=True, tag="form"):
    """Host to members: load your blocks and connect."""

    epoch: int
    tiling: bytes
    """8 bytes over the division and the epoch."""
    roster: bytes
    plan: Plan
    peers: tuple[Peer, ...]
    """Those that this member links with, with the probe keys of its own pairs only."""


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """Member to host: how far forming has come here."""

    epoch: int
    step: FormStep
    done_bytes: int = 0
    total_bytes: int = 0


class Loaded(msgspec.Struct, frozen=True, kw_only=True, tag="loaded"):
    """Member to host: the blocks are in memory and the stage runs."""

    epoch: int
    resident_weight_bytes: int
    process_id: int


class EdgeReport(msgspec.Struct, frozen=True, kw_only=True, tag="edge"):
    """Member to host: how its hop to the next member runs now."""

    epoch: int
    path: PathKind | None
    rtt_ms: float | None
    after_ms: float


class GiveFirstToken(msgspec.Struct, frozen=True, kw_only=True, tag="give-first-token"):
    """Host to head: the ring is whole; send one token round it."""

    epoch: int


class FirstToken(msgspec.Struct, frozen=True, kw_only=True, tag="first-token"):
    """Head to host: a token came back."""

    epoch: int


class StageReport(msgspec.Struct, frozen=True, kw_only=True, tag="stage"):
    """Member to host, twice a second: how its stage is doing."""

    epoch: int
    busy: float
    stage_ms: float | None
    bytes_per_s: float


class HeadReport(msgspec.Struct, frozen=True, kw_only=True, tag="head"):
    """Head to host, twice a second: where the time of a token goes."""

    epoch: int
    pace: Pace
    chatting: int


class Question(msgspec.Struct, frozen=True, kw_only=True, tag="question"):
    """Any member to the head."""

    ask: Ask


class StopQuestion(msgspec.Struct, frozen=True, kw_only=True, tag="stop-question"):
    """Any member to the head: enough of this answer."""

    stop: StopAnswer


class AnswerBroke(msgspec.Struct, frozen=True, kw_only=True, tag="broke"):
    """No more of this answer will come; what was said stays."""

    conversation: ConversationId
    answer: int
    reason: Reason


AnswerEvent = AnswerQueued | AnswerText | AnswerDone | AnswerBroke


class AnswerPart(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """Head to the member that asked."""

    event: AnswerEvent


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """Member to host: this computer cannot do its part."""

    reason: Reason


class Leaving(msgspec.Struct, frozen=True, kw_only=True, tag="leaving"):
    """Member to host: goodbye, on purpose."""


class End(msgspec.Struct, frozen=True, kw_only=True, tag="end"):
    """Host to members: the session is over."""

    told: Told
    failed: bool


Message = (
    View
    | Form
    | GiveFirstToken
    | End
    | Measured
    | Progress
    | Loaded
    | EdgeReport
    | FirstToken
    | StageReport
    | HeadReport
    | Failed
    | Leaving
    | Question
    | StopQuestion
    | AnswerPart
)
SealedMessage = Here | Welcome | Declined

_encoder = msgspec.msgpack.Encoder()
_messages = msgspec.msgpack.Decoder(Message)
_sealed = msgspec.msgpack.Decoder(SealedMessage)


def encode_message(message: Message | SealedMessage) -> bytes:
    """A control message as bytes."""
    return _encoder.encode(message)


def decode_message(data: bytes) -> Message:
    """A control message from a member. Raises PeerError for anything else."""
    if len(data) > MAX_CONTROL_BYTES:
        fault = "a control message that is too long"
        raise PeerError(fault)
    try:
        return _messages.decode(data)
    except msgspec.DecodeError as error:
        fault = "a control message that is not understood"
        raise PeerError(fault) from error


def decode_sealed(data: bytes) -> SealedMessage:
    """A message of the sealed channel of joining. Raises PeerError for anything else."""
    if len(data) > MAX_CONTROL_BYTES:
        fault = "a sealed message that is too long"
        raise PeerError(fault)
    try:
        return _sealed.decode(data)
    except msgspec.DecodeError as error:
        fault = "a sealed message that is not understood"
        raise PeerError(fault) from error
