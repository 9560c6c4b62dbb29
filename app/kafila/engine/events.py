"""What can happen to a session (events), and what it may want done about it (effects).

`kafila.engine.state.step` turns a state and an event into a state and effects; only
`kafila.engine.engine` performs effects, and everything that it learns comes back as an event.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kafila.domain.capability import Capability, Machine
from kafila.domain.chat import ChatEvent
from kafila.domain.commands import Ask, Command, HostSession, JoinSession, StopAnswer
from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import MemberId, SessionId
from kafila.domain.model import ModelSpec
from kafila.domain.snapshot import FormStep, JoinStep, NoPort, Pace, Reach
from kafila.protocol.control import AnswerEvent, Declined, Form, Message, Welcome
from kafila.protocol.links import Candidates, LinkEvent, Peer
from kafila.protocol.roster import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """How people can join at present."""

    code: str | None
    link: str
    reach: Reach
    no_port: NoPort | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A computer that proved the code, as the door learned of it."""

    member: MemberId
    machine: Machine
    spki_sha256: bytes
    candidates: Candidates
    phrase: tuple[str, ...]
    known: bool


# Events ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A person asked for something."""

    command: Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A session is open here: the socket listens and the model's costs are known."""

    session: SessionId
    spec: ModelSpec
    secret: bytes
    """32 bytes from which the pairs' probe keys are derived."""
    spki_sha256: bytes
    candidates: Candidates
    sign: Callable[[Roster], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broke:
    """What was asked for cannot be done, or has ended; a person reads why."""

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationChanged:
    """There is a new code; None: there is none."""

    invitation: Invitation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RendezvousMet:
    """A configured rendezvous on another computer was reached, and its certificate counts from now on."""

    address: str
    certificate: str
    """What settings keep of it."""
    unverified: bool
    """Nobody vouched for it, and it was never seen before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCame:
    """Somebody proved the code and asks to be let in."""

    guest: Guest


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestGone:
    """A guest left before it was let in."""

    member: MemberId


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorStep:
    """A joiner has come one step further."""

    step: JoinStep
    host: Machine | None = None
    group: str = ""
    model: str = ""
    phrase: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcomed:
    """The host let this computer in, with a roster that was checked."""

    welcome: Welcome
    host: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkChanged:
    """Something about a connection to another member."""

    event: LinkEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A control message, from another member or from this computer's own other role."""

    sender: MemberId
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredHere:
    """This computer was measured for the session's model."""

    capability: Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgressed:
    """Fetching or loading this computer's blocks goes on."""

    epoch: int
    step: FormStep
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLoaded:
    """This computer's blocks are in memory and its stage runs."""

    epoch: int
    resident_weight_bytes: int
    process_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageFailed:
    """This computer cannot hold or run its blocks."""

    epoch: int
    reason: Reason
    """What the others are told."""
    problem: Problem | None = None
    """What the person here reads of it, where there is more to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTokenBack:
    """As the head: a token has gone round the ring."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSampled:
    """Half a second of this computer's stage."""

    epoch: int
    busy: float
    stage_ms: float | None
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSampled:
    """Half a second of the ring, as the head sees it."""

    epoch: int
    pace: Pace
    chatting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """As the head: more of an answer that `asker` waits for."""

    asker: MemberId
    event: AnswerEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionEnded:
    """One of the demo's other engines on this computer stopped by itself."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """Half a second went by."""


Event = (
    Given
    | Opened
    | Broke
    | InvitationChanged
    | RendezvousMet
    | GuestCame
    | GuestGone
    | DoorStep
    | Welcomed
    | LinkChanged
    | Heard
    | MeasuredHere
    | StageProgressed
    | StageLoaded
    | StageFailed
    | FirstTokenBack
    | StageSampled
    | HeadSampled
    | Answered
    | CompanionEnded
    | Ticked
)

# Effects -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """Prepare the model, listen, and open the door. Comes back as Opened, or Broke."""

    command: HostSession
    loopback_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDoor:
    """Find the session, prove the code, ask to be let in: DoorSteps, then Welcomed or Broke."""

    command: JoinSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewInvitation:
    """End the present code and make another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseInvitation:
    """Nobody can join with the present code any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGuest:
    """Tell a guest over its sealed channel that it is let in, or not."""

    guest: Guest
    answer: Welcome | Declined


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPeers:
    """From now on exactly these members may have a link with this one, and are linked with."""

    peers: tuple[Peer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Say something to a member; to oneself, it comes back as Heard."""

    to: MemberId
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Time one block of the model here. Comes back as MeasuredHere, or Broke."""

    spec: ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStage:
    """Fetch what is missing, load this computer's blocks, run them as a stage of the ring."""

    form: Form
    spec: ModelSpec
    host: MemberId
    context: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOnce:
    """As the head: send one token round the ring."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAnswer:
    """As the head: answer a member's question."""

    asker: MemberId
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAnswer:
    """As the head: stop an answer."""

    asker: MemberId
    stop: StopAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Show a chat event to the person here."""

    event: ChatEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCompanions:
    """Start more engines on this computer that join with the link."""

    link: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    """Let go of everything that belongs to the session, after what was said has been sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepName:
    """Remember what this computer and its owner are called."""

    machine: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRendezvous:
    """Remember which certificate a rendezvous showed."""

    address: str
    certificate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepMeetingPlace:
    """Remember where sessions meet; None: at the host's."""

    rendezvous: str | None


Effect = (
    OpenSession
    | OpenDoor
    | RenewInvitation
    | CloseInvitation
    | AnswerGuest
    | SetPeers
    | Send
    | Measure
    | LoadStage
    | TurnOnce
    | StartAnswer
    | CancelAnswer
    | Tell
    | StartCompanions
    | CloseSession
    | KeepName
    | KeepMeetingPlace
    | KeepRendezvous
)
