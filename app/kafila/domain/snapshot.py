"""Everything that a person can see, as one immutable value that is sent whole on every change.

A state is a type with its own data; a `Snapshot` holds exactly one of them in `session`. No
secret is ever part of it, but for the code on the host's own screen.
"""

from enum import StrEnum

import msgspec

from kafila.domain.capability import Capability, Machine
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind, Plan, Refusal


class ThisComputer(msgspec.Struct, frozen=True, kw_only=True):
    """The computer that the engine runs on."""

    member: MemberId
    machine: Machine
    room_bytes: int | None = None
    notices: tuple[Problem, ...] = ()
    """For example: no keyring, so the device's key lies in a file."""
    rendezvous: str = ""
    """Where its sessions meet, as `MeetAt` takes it."""
    rendezvous_problem: Problem | None = None
    """What is wrong with the address that was given last."""


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be picked."""

    id: str
    """What `HostSession.model` takes."""
    name: str
    good_at: str
    tags: tuple[str, ...]
    size_bytes: int
    licence: str
    fits_here: bool
    kv_bytes_per_token: int | None = None
    """What one token of one conversation takes, on all computers together; None: not known."""
    max_context: int | None = None
    """The longest conversation that the model takes, in tokens; None: not known."""


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A computer that was let in."""

    member: MemberId
    machine: Machine
    is_host: bool
    capability: Capability | None
    """None while it is being measured."""
    path: PathKind | None
    """How this computer reaches it at present; None: itself, or not connected."""


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """A computer that proved the code and asks to be let in."""

    member: MemberId
    machine: Machine
    phrase: tuple[str, ...]
    known: bool


class Reach(StrEnum):
    """From where people can join."""

    THIS_COMPUTER = "this-computer"
    SAME_NETWORK = "same-network"
    PROBABLY_ANYWHERE = "probably-anywhere"
    """This computer has a way in from outside, and nobody has shown yet that it leads here."""
    ANYWHERE = "anywhere"
    """Somebody did come in from outside."""
    NEEDS_RENDEZVOUS = "needs-rendezvous"
    """A way in was asked for and there is none: people elsewhere need the group's rendezvous."""
    RENDEZVOUS = "rendezvous"


class NoPort(StrEnum):
    """Why the router opened no port."""

    NO_ROUTER = "no-router"
    """This computer knows of no router that it could ask."""
    REFUSED = "refused"
    """The router does not do that, or not now, or says nothing at all."""
    BEHIND_ANOTHER = "behind-another"
    """The router has no public address itself: what it opens leads nowhere."""
    NOT_REACHED = "not-reached"
    """It opened one, and yet nobody outside gets in there."""


class Idle(msgspec.Struct, frozen=True, kw_only=True, tag="idle"):
    """No session. `problem` says why the last attempt failed, if it did."""

    problem: Problem | None = None


class Preparing(msgspec.Struct, frozen=True, kw_only=True, tag="preparing"):
    """A session is being opened; `doing` is one sentence about what takes the time."""

    doing: str


class WaitingRoom(msgspec.Struct, frozen=True, kw_only=True, tag="waiting-room"):
    """The host gathers people; members that were let in see the same without the code."""

    is_host: bool
    group: str
    model: str
    blocks: int
    context: int
    concurrency: int
    code: str | None
    """The code to say or paste; None for members, and where only the link can work."""
    link: str | None
    reach: Reach
    no_port: NoPort | None = None
    """Why there is no way in, where one was asked for."""
    trust_known: bool
    members: tuple[Member, ...]
    newcomers: tuple[Newcomer, ...]
    plan: Plan | Refusal | None
    starts_at: int | None = None
    """Starts by itself once this many members are in; None: when the host says so."""
    problem: Problem | None = None


class JoinStep(StrEnum):
    """How far a joiner has come."""

    FINDING = "finding"
    SPEAKING = "speaking"
    WAITING = "waiting"
    MEASURING = "measuring"


class Joining(msgspec.Struct, frozen=True, kw_only=True, tag="joining"):
    """A joiner on its way in. Once measured it sees the `WaitingRoom`."""

    step: JoinStep
    host: Machine | None = None
    group: str = ""
    model: str = ""
    phrase: tuple[str, ...] = ()


class FormStep(StrEnum):
    """What a member is doing to become part of the ring."""

    MEASURE = "measure"
    FETCH = "fetch"
    LOAD = "load"
    CONNECT = "connect"
    FIRST_TOKEN = "first-token"  # noqa: S105  # a token of text
    READY = "ready"


class FormingMember(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the forming page."""

    member: MemberId
    machine: Machine
    step: FormStep
    done_bytes: int = 0
    total_bytes: int = 0


class RingEdge(msgspec.Struct, frozen=True, kw_only=True):
    """One hop of the ring as it is now."""

    from_member: MemberId
    to_member: MemberId
    path: PathKind | None
    """None while connecting or lost."""
    rtt_ms: float | None
    after_ms: float
    """How long after the start of forming the edge took this path; 0 where it was there before, as with the host."""
    bytes_per_s: float = 0.0


class Forming(msgspec.Struct, frozen=True, kw_only=True, tag="forming"):
    """The ring is being made."""

    is_host: bool
    group: str
    model: str
    plan: Plan
    rows: tuple[FormingMember, ...]
    edges: tuple[RingEdge, ...] = ()


class RingMember(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the ring."""

    member: MemberId
    machine: Machine
    first: int
    end: int
    head: bool
    is_host: bool
    busy: float
    """Share of the last seconds spent computing, 0 to 1."""
    stage_ms: float | None
    """Median of its recent decode steps."""
    resident_weight_bytes: int
    process_id: int
    away_s: float | None = None
    """How long it has not answered; None while it does."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a token goes, over the last seconds. None: no token yet."""

    tokens_per_second: float | None = None
    words_per_second: float | None = None
    circuit_ms_p50: float | None = None
    circuit_ms_p95: float | None = None
    compute_ms_p50: float | None = None
    in_flight_ms_p50: float | None = None
    tokens: int = 0
    """Tokens since serving began; the pulse on the ring follows it."""


class Serving(msgspec.Struct, frozen=True, kw_only=True, tag="serving"):
    """The ring answers. While a member is away `paused` says what is happening."""

    is_host: bool
    group: str
    model: str
    context: int
    ring: tuple[RingMember, ...]
    edges: tuple[RingEdge, ...]
    pace: Pace
    chatting: int
    formed_in_s: float
    paused: Problem | None = None
    grace_left_s: float | None = None
    planned: str = ""
    """What came of dividing the parts anew, where the host asked for it."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, tag="ended"):
    """The session is over. `reason` says so in words; `failed` tells an accident from a goodbye."""

    reason: Problem
    failed: bool


SessionView = Idle | Preparing | WaitingRoom | Joining | Forming | Serving | Ended


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, tag="snapshot"):
    """What a person can see now."""

    me: ThisComputer
    models: tuple[ModelCard, ...]
    session: SessionView
