"""What an edge can be, the ways its datagrams take, and what its machine asks for: see `kafila.protocol.edge`."""

import msgspec

from kafila.domain.plan import PathKind
from kafila.protocol.links import Address


class OverRelay(msgspec.Struct, frozen=True):
    """By way of the rendezvous's relay."""


class OverAddress(msgspec.Struct, frozen=True):
    """Straight to an address."""

    address: Address


Route = OverRelay | OverAddress


class Resting(msgspec.Struct, frozen=True):
    """Nobody has asked for this edge yet."""


class Punching(msgspec.Struct, frozen=True, kw_only=True):
    """All candidates are asked in quick succession; datagrams take the relay if there is one."""

    since: float
    """When that begins, which may be a little later."""
    gap_s: float


class Relayed(msgspec.Struct, frozen=True):
    """No candidate answered. They are asked again from time to time."""


class Direct(msgspec.Struct, frozen=True, kw_only=True):
    """An address answers."""

    address: Address
    rtt_s: float
    asked_at: float | None
    """When the question was asked that waits for its answer longest."""


class Doubtful(msgspec.Struct, frozen=True, kw_only=True):
    """The address that answered is late: datagrams take both ways."""

    address: Address
    rtt_s: float
    asked_at: float


class Lost(msgspec.Struct, frozen=True):
    """No relay, and no candidate answers. They are asked again from time to time."""


EdgeState = Resting | Punching | Relayed | Direct | Doubtful | Lost


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: send a ping."""

    route: Route
    transaction: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: send a pong back the way the ping came."""

    route: Route
    transaction: int


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: tell that the path is another one now, or was measured anew."""

    path: PathKind
    rtt_s: float | None


class TellWhere(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: tell the peer, over the relay, where this member may be reached now."""

    transaction: int


Effect = Ask | Answer | Moved | TellWhere
