"""What an engine might show: one snapshot for each kind of session, with the same five computers."""

from dataclasses import dataclass, field

from kafila.domain.capability import Capability, Machine, MachineKind, Mapping, Reachability
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId
from kafila.domain.plan import Figures, Objective, PathKind, Plan, PlannedEdge, Refusal, Share, Tier
from kafila.domain.snapshot import (
    Ended,
    Forming,
    FormingMember,
    FormStep,
    Idle,
    Joining,
    JoinStep,
    Member,
    ModelCard,
    Newcomer,
    Pace,
    Preparing,
    Reach,
    RingEdge,
    RingMember,
    Serving,
    SessionView,
    Snapshot,
    ThisComputer,
    WaitingRoom,
)

GB = 1_000_000_000
CODE = "47-abacus-ability-aboard-about"


@dataclass(frozen=True, slots=True, kw_only=True)
class Computer:
    """One of the group's computers."""

    member: MemberId
    machine: Machine
    room_gb: float
    bandwidth: float
    lan: str | None = "home"
    strict: bool = False
    path: PathKind | None = PathKind.DIRECT
    capability: Capability = field(init=False)

    def __post_init__(self) -> None:
        mapping = Mapping.ENDPOINT_DEPENDENT if self.strict else Mapping.ENDPOINT_INDEPENDENT
        reach = Reachability(mapping=mapping, lan=self.lan)
        capability = Capability(
            room_bytes=round(self.room_gb * GB), bandwidth_bytes_s=self.bandwidth, reachability=reach
        )
        object.__setattr__(self, "capability", capability)


def _machine(name: str, owner: str, kind: MachineKind) -> Machine:
    return Machine(name=name, owner=owner, kind=kind, system="Linux, 8 cores")


STUDIO = Computer(
    member=MemberId("a1" * 8), machine=_machine("Studio laptop", "Maya", MachineKind.LAPTOP),
    room_gb=10.4, bandwidth=100e9, path=None,
)  # fmt: skip
LIVING = Computer(
    member=MemberId("b2" * 8), machine=_machine("Living-room PC", "Jo", MachineKind.DESKTOP),
    room_gb=11.0, bandwidth=400e9,
)  # fmt: skip
OFFICE = Computer(
    member=MemberId("c3" * 8), machine=_machine("Office desktop", "Noor", MachineKind.DESKTOP),
    room_gb=8.2, bandwidth=60e9, lan="office",
)  # fmt: skip
ATTIC = Computer(
    member=MemberId("d4" * 8), machine=_machine("Attic mini", "Kit", MachineKind.SERVER),
    room_gb=6.4, bandwidth=60e9, lan=None, strict=True, path=PathKind.RELAYED,
)  # fmt: skip
KITCHEN = Computer(
    member=MemberId("e5" * 8), machine=_machine("Kitchen laptop", "Sam", MachineKind.LAPTOP),
    room_gb=3.6, bandwidth=40e9,
)  # fmt: skip
GROUP = (STUDIO, LIVING, OFFICE, ATTIC)

MODELS = (
    ModelCard(
        id="qwen3-32b", name="Qwen3 32B", good_at="Writing, reasoning, many languages",
        tags=("Chat", "Reasoning", "119 languages"), size_bytes=18_400_000_000, licence="Apache 2.0",
        fits_here=False, kv_bytes_per_token=262_144, max_context=40_960,
    ),
    ModelCard(
        id="gemma-27b", name="Gemma 3 27B", good_at="Everyday help, looking at pictures",
        tags=("Chat", "Pictures"), size_bytes=15_600_000_000, licence="Gemma terms", fits_here=False,
    ),
    ModelCard(
        id="llama-70b", name="Llama 3.3 70B", good_at="Careful long answers, broad knowledge",
        tags=("Chat", "Knowledge"), size_bytes=39_700_000_000, licence="Llama licence", fits_here=False,
    ),
    ModelCard(
        id="demo", name="SmolLM2 135M", good_at="Trying things out; small and quick",
        tags=("Chat", "Light"), size_bytes=270_000_000, licence="Apache 2.0", fits_here=True,
        kv_bytes_per_token=23_040, max_context=8192,
    ),
)  # fmt: skip


def snapshot(session: SessionView, *, models: tuple[ModelCard, ...] = MODELS, me: Computer = STUDIO) -> Snapshot:
    """A snapshot around a session."""
    this = ThisComputer(member=me.member, machine=me.machine, room_bytes=me.capability.room_bytes)
    return Snapshot(me=this, models=models, session=session)


def idle(title: str = "", advice: str = "Try again.") -> Snapshot:
    """No session; with a title, the last attempt failed."""
    return snapshot(Idle(problem=Problem(title=title, advice=advice) if title else None))


def preparing() -> Snapshot:
    """A session is being opened."""
    return snapshot(Preparing(doing="Getting SmolLM2 135M ready."))


def plan(computers: tuple[Computer, ...] = GROUP, parts: tuple[int, ...] = (19, 21, 13, 11)) -> Plan:
    """An admitted plan."""
    shares: list[Share] = []
    first = 0
    for computer, count in zip(computers, parts, strict=True):
        shares.append(
            Share(
                member=computer.member, first=first, end=first + count, head=first == 0,
                need_bytes=round(count * 0.42 * GB), room_bytes=computer.capability.room_bytes, stage_ms=24.0,
            )
        )  # fmt: skip
        first += count
    edges = tuple(
        PlannedEdge(
            from_member=here.member, to_member=there.member,
            predicted=PathKind.RELAYED if ATTIC in {here, there} else PathKind.DIRECT, price_ms=12.0,
        )
        for here, there in zip(computers, (*computers[1:], computers[0]), strict=True)
    )  # fmt: skip
    figures = Figures(bottleneck_ms=28, circuit_ms=180, tokens_per_second=15.5, utilisation=0.6, fits=True)
    slower = Figures(bottleneck_ms=40, circuit_ms=240, tokens_per_second=9.0, utilisation=0.4, fits=True)
    return Plan(
        objective=Objective.FASTEST, tier=Tier.FULL, tier_reason="All computers were measured.",
        shares=tuple(shares), edges=edges, figures=figures, tokens_per_second_alone=5.33, search="exact",
        uniform=slower, memory_proportional=slower,
        advice=("Without Attic mini each word comes 80 ms sooner and the model still fits.",),
    )  # fmt: skip


def refusal() -> Refusal:
    """Attic mini is too small."""
    return Refusal(
        member=ATTIC.member,
        sentence="Three very long conversations with Qwen3 32B need 44.2 GB.",
        needs_bytes=round(11.5 * GB),
        has_bytes=round(6.4 * GB),
        help=("Choose shorter conversations.", "Let in one more computer with 6 GB of room."),
    )


def member(computer: Computer, *, measured: bool = True) -> Member:
    """A computer that is in."""
    return Member(
        member=computer.member, machine=computer.machine, is_host=computer is STUDIO,
        capability=computer.capability if measured else None, path=computer.path,
    )  # fmt: skip


def waiting_room(**changes: object) -> Snapshot:
    """The host's waiting room: four are in, one asks."""
    values: dict[str, object] = {
        "is_host": True, "group": "Sunday group", "model": "Qwen3 32B", "blocks": 64, "context": 8192,
        "concurrency": 4, "code": CODE, "link": f"kafila://join/{CODE}?v=1&at=192.168.1.20:4433",
        "reach": Reach.SAME_NETWORK, "trust_known": True, "members": tuple(member(one) for one in GROUP),
        "newcomers": (
            Newcomer(
                member=KITCHEN.member, machine=KITCHEN.machine, phrase=("amber", "heron", "cloud"), known=False
            ),
        ),
        "plan": plan(),
    }  # fmt: skip
    return snapshot(WaitingRoom(**(values | changes)))  # pyright: ignore[reportArgumentType]


def joining(step: JoinStep = JoinStep.WAITING) -> Snapshot:
    """A joiner on its way in."""
    known = step in {JoinStep.WAITING, JoinStep.MEASURING}
    session = Joining(
        step=step, host=LIVING.machine if known else None, group="Sunday group" if known else "",
        model="Qwen3 32B" if known else "", phrase=("amber", "heron", "cloud") if known else (),
    )  # fmt: skip
    return snapshot(session)


def forming() -> Snapshot:
    """The ring is being made; everyone is at another step."""
    steps = (FormStep.READY, FormStep.CONNECT, FormStep.LOAD, FormStep.FETCH)
    done = (round(7.9 * GB), round(8.8 * GB), round(3.5 * GB), round(1.2 * GB))
    total = (round(7.9 * GB), round(8.8 * GB), round(5.4 * GB), round(2.8 * GB))
    rows = tuple(
        FormingMember(member=one.member, machine=one.machine, step=step, done_bytes=done_bytes, total_bytes=total_bytes)
        for one, step, done_bytes, total_bytes in zip(GROUP, steps, done, total, strict=True)
    )
    return snapshot(Forming(is_host=True, group="Sunday group", model="Qwen3 32B", plan=plan(), rows=rows))


def serving() -> Snapshot:
    """The ring answers."""
    shares = plan().shares
    ring = tuple(
        RingMember(
            member=one.member, machine=one.machine, first=share.first, end=share.end, head=share.head,
            is_host=one is STUDIO, busy=0.4, stage_ms=24.0, resident_weight_bytes=4 * GB, process_id=100,
        )
        for one, share in zip(GROUP, shares, strict=True)
    )  # fmt: skip
    edges = tuple(
        RingEdge(from_member=edge.from_member, to_member=edge.to_member, path=edge.predicted, rtt_ms=12.0, after_ms=900)
        for edge in plan().edges
    )
    pace = Pace(
        tokens_per_second=15.9, words_per_second=11.9, circuit_ms_p50=182, circuit_ms_p95=240,
        compute_ms_p50=120, in_flight_ms_p50=62, tokens=42,
    )  # fmt: skip
    session = Serving(
        is_host=True, group="Sunday group", model="Qwen3 32B", context=8192, ring=ring, edges=edges,
        pace=pace, chatting=3, formed_in_s=12.0,
    )  # fmt: skip
    return snapshot(session)


def ended(*, failed: bool = True) -> Snapshot:
    """The session is over."""
    reason = Problem(
        title="The host ended the session" if not failed else "Attic mini stopped answering",
        advice="Your conversations stay on this computer.",
    )
    return snapshot(Ended(reason=reason, failed=failed))
