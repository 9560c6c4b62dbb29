"""Who takes part at a rendezvous: clients, the sessions they are in, and the exchanges they have."""

from dataclasses import dataclass, field

from kafila.protocol.rendezvous_line import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """The client's line has a connection."""

    connection: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """The client's connection was lost; its line is kept until then."""

    until: float


@dataclass(frozen=True, slots=True)
class Nobody:
    """The client has opened or called no session."""


@dataclass(frozen=True, slots=True)
class Host:
    """The client opened this session."""

    session: "Session"


@dataclass(frozen=True, slots=True)
class Guest:
    """The client called this session, and sits in this slot."""

    session: "Session"
    slot: int


@dataclass(slots=True, eq=False)
class Client:
    """Whoever is at the other end of a line."""

    source: str
    place: Attached | Away
    line: Line = field(default_factory=Line)
    role: Nobody | Host | Guest = field(default_factory=Nobody)
    exchanges: "dict[int, Exchange]" = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Session:
    """A host, those who called it, and the slots in which they sit."""

    number: int
    host_slot: int
    host: Client | None
    """None after a restart of the rendezvous, until the host has come back."""
    hostless_until: float
    nameplate: int | None = None
    guests: dict[int, Client] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """A joiner's conversation with a host."""

    number: int
    host: Client
    guest: Client

    def other(self, client: Client) -> Client:
        """The side that `client` is not."""
        return self.guest if client is self.host else self.host
