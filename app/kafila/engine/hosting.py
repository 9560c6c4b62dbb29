"""What the host knows of its session, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafila.domain.capability import Capability, Machine
from kafila.domain.commands import (
    Admission,
)
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId, SessionId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Objective, PathKind, Plan, Refusal
from kafila.domain.snapshot import FormStep, NoPort, Pace, Reach
from kafila.engine.events import (
    Effect,
    Guest,
    Invitation,
    Opened,
)
from kafila.protocol.control import (
    EdgeReport,
    Loaded,
    StageReport,
)
from kafila.protocol.links import (
    Candidates,
)

HOP_PATIENCE_S = 1.0
"""How long two neighbours may not hear each other before the ring counts as waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A member that was let in; the host itself is the first."""

    member: MemberId
    machine: Machine
    spki_sha256: bytes
    candidates: Candidates
    capability: Capability | None = None
    path: PathKind | None = None
    rtt_ms: float | None = None
    linked: bool = False
    """Whether the link has come about since it was let in."""
    silent_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How far one member has come with forming, and how its stage does."""

    step: FormStep = FormStep.FETCH
    done_bytes: int = 0
    total_bytes: int = 0
    loaded: Loaded | None = None
    edge: EdgeReport | None = None
    unheard_since: float | None = None
    """Since when it does not hear from the next member."""
    report: StageReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """People arrive; the plan follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormingRing:
    """Members load their blocks and connect."""

    plan: Plan
    rows: Mapping[MemberId, Row]
    since: float
    moved_at: float
    first_token_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRing:
    """The ring answers."""

    plan: Plan
    rows: Mapping[MemberId, Row]
    formed_in_s: float
    pace: Pace = field(default_factory=Pace)
    word: str = ""
    """What came of dividing anew."""
    chatting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """The session has ended."""

    reason: Problem
    failed: bool


Stage = Gathering | FormingRing | ServingRing | Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """What the host knows of its session."""

    group: str
    model: str
    opened: Opened
    context: int
    concurrency: int
    objective: Objective
    admission: Admission
    start_at: int | None
    companions: int
    seats: tuple[Seat, ...]
    trust_known: bool = True
    invitation: Invitation | None = None
    reach: Reach = Reach.THIS_COMPUTER
    no_port: NoPort | None = None
    guests: tuple[Guest, ...] = ()
    by_hand: tuple[tuple[MemberId, int], ...] = ()
    """How a person divided the blocks, in ring order from the head on; empty: the planner does."""
    plan: Plan | Refusal | None = None
    problem: Problem | None = None
    epoch: int = 0
    stage: Stage = field(default_factory=Gathering)

    @property
    def me(self) -> MemberId:
        """The host's own member id."""
        return self.seats[0].member

    @property
    def session(self) -> SessionId:
        """The session's id."""
        return self.opened.session

    @property
    def spec(self) -> ModelSpec:
        """The model's costs."""
        return self.opened.spec

    def seat(self, member: MemberId) -> Seat | None:
        """The member's seat, if it has one."""
        return next((seat for seat in self.seats if seat.member == member), None)

    def silences(self, now: float) -> dict[MemberId, float]:
        """For how long the members have been silent that the ring waits for, in seconds.

        A member counts also where the host hears it, and the one before it in the ring does not.
        """
        silent = {seat.member: now - seat.silent_since for seat in self.seats if seat.silent_since is not None}
        if not isinstance(self.stage, ServingRing):
            return silent
        order = [share.member for share in self.stage.plan.shares]
        for member, successor in zip(order, [*order[1:], *order[:1]], strict=True):
            since = self.stage.rows[member].unheard_since
            # Of a computer that was away, and is back, it is the neighbour's older news.
            if since is not None and now - since > HOP_PATIENCE_S and not {member, successor} & silent.keys():
                silent[successor] = now - since
        return silent


Stepped = tuple[Hosting, list[Effect]]
