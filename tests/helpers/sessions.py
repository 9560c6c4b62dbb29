"""Sessions to play with: a host's engine state, and members that come and go, all without a socket."""

from dataclasses import dataclass, field

from kafila.domain.capability import Capability, Filtering, Machine, Mapping, Reachability
from kafila.domain.commands import Admission, Command, HostSession
from kafila.domain.ids import MemberId, SessionId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import Reach, Snapshot, ThisComputer
from kafila.engine.events import (
    Effect,
    Event,
    Given,
    Guest,
    GuestCame,
    Heard,
    Invitation,
    InvitationChanged,
    LinkChanged,
    MeasuredHere,
    Opened,
    Send,
)
from kafila.engine.state import State, snapshot, step
from kafila.protocol.control import Measured, Message
from kafila.protocol.links import Candidates, LinkEvent, LinkUp, PathChanged
from kafila.protocol.roster import Roster

HOST = MemberId("0" * 16)
NOWHERE = Candidates(relay_slot=None, addresses=())
FAST = Capability(
    room_bytes=8 << 30,
    bandwidth_bytes_s=10e9,
    flops_s=1e12,
    reachability=Reachability(
        mapping=Mapping.ENDPOINT_INDEPENDENT,
        filtering=Filtering.ENDPOINT_INDEPENDENT,
        lan="home",
        rendezvous_rtt_ms=1.0,
    ),
)


def member_id(number: int) -> MemberId:
    return MemberId(f"{number:016x}")


def model_spec(blocks: int = 12) -> ModelSpec:
    return ModelSpec(
        name="A small model",
        family="llama",
        fingerprint="ab" * 32,
        hidden_size=64,
        block_bytes=(10_000_000,) * blocks,
        block_flops=(20_000_000,) * blocks,
        kv_bytes_per_token=(1024,) * blocks,
        head_bytes=5_000_000,
        head_flops=10_000_000,
        head_resident_bytes=5_000_000,
        max_context=8192,
    )


def guest(number: int, *, known: bool = False) -> Guest:
    return Guest(
        member=member_id(number),
        machine=Machine(name=f"Computer {number}", owner=f"Owner {number}"),
        spki_sha256=bytes([number]) * 32,
        candidates=NOWHERE,
        phrase=("amber", "heron", "cloud"),
        known=known,
    )


def sign(roster: Roster) -> bytes:
    """Stands in for the device's key: what was signed can be read again."""
    return f"{roster.session} {roster.epoch} {[e.member for e in roster.entries]}".encode()


@dataclass
class Play:
    """A state, and everything that it has asked for so far."""

    state: State = field(default_factory=lambda: State(me=ThisComputer(member=HOST, machine=Machine(name="Desk"))))
    now: float = 100.0
    effects: list[Effect] = field(default_factory=list[Effect])

    def __call__(self, event: Event) -> list[Effect]:
        """Let something happen; what it led to, with messages to oneself already delivered."""
        self.state, effects = step(self.state, event, self.now)
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Send) and effect.to == HOST:
                effects = effects + self(Heard(sender=HOST, message=effect.message))
        return effects

    def give(self, command: Command) -> list[Effect]:
        return self(Given(command=command))

    def hear(self, number: int, message: Message) -> list[Effect]:
        return self(Heard(sender=member_id(number), message=message))

    def link(self, event: LinkEvent) -> list[Effect]:
        return self(LinkChanged(event=event))

    def see(self) -> Snapshot:
        return snapshot(self.state, self.now)

    def open(self, *, admission: Admission = Admission.ASK, start_at: int | None = None) -> None:
        """A session of the host alone, measured, with a code."""
        self.open_by(HostSession(model="demo", group="Friends", admission=admission, start_at=start_at))

    def open_by(self, command: Command) -> None:
        """The session that a command opens."""
        self.give(command)
        self(
            Opened(
                session=SessionId("5e" * 16),
                spec=model_spec(),
                secret=bytes(32),
                spki_sha256=bytes(32),
                candidates=NOWHERE,
                sign=sign,
            )
        )
        self(
            InvitationChanged(
                invitation=Invitation(code="47-a-b-c-d", link="kafila://join/47", reach=Reach.SAME_NETWORK)
            )
        )
        self(MeasuredHere(capability=FAST))

    def arrive(self, number: int, capability: Capability = FAST) -> list[Effect]:
        """A guest that is (or was) let in connects and is measured."""
        member = member_id(number)
        effects = self(GuestCame(guest=guest(number)))
        effects += self.link(LinkUp(peer=member))
        effects += self.link(PathChanged(peer=member, path=PathKind.RELAYED, rtt_ms=2.0))
        return effects + self.hear(number, Measured(capability=capability))
