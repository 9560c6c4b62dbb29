"""The words in which members' connections are spoken of: addresses, peers, events.

A *link* is one mutually authenticated QUIC connection between two members, with a few ordered
channels. The *path* below it (relayed or direct) changes without the link noticing.
"""

from enum import IntEnum

import msgspec

from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.protocol.trust import Certain


class Address(msgspec.Struct, frozen=True):
    """An IP address (or, before it is resolved, a host name) with a port."""

    host: str
    port: int

    def __str__(self) -> str:
        """HOST:PORT, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read HOST:PORT or [IPV6]:PORT. Raises ValueError for anything else."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
            message = f"not HOST:PORT: {text!r}"
            raise ValueError(message)
        return cls(host, int(port))


class RelaySeat(msgspec.Struct, frozen=True, kw_only=True):
    """This member's own place at a rendezvous's relay. The key never leaves the two of them."""

    relay: Address
    slot: int
    """64 bits, drawn by the rendezvous; says nothing of who sits there."""
    key: bytes
    """32 bytes, under which every relayed frame is authenticated to the relay."""
    trust: Certain
    """The certificate that counts where the relay is spoken to over TCP."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Where a member may be reached: its slot at the relay, and addresses to try directly."""

    relay_slot: int | None
    addresses: tuple[Address, ...]


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Another member, as the roster and the host have told us of it."""

    member: MemberId
    spki_sha256: bytes
    """32 bytes: the only public key that the other side of the link may show."""
    probe_key: bytes
    """32 bytes known to this pair (and the host that dealt them): authenticates path probes."""
    candidates: Candidates


class Channel(IntEnum):
    """The ordered channels of a link. Channels do not wait for one another."""

    CONTROL = 0
    DECODE = 1
    PREFILL = 2
    WEIGHTS = 3


MAX_MESSAGE_BYTES = 64 << 20
"""The largest message on any channel of a link."""


class LinkUp(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides have checked each other's certificate."""

    peer: MemberId


class PathChanged(msgspec.Struct, frozen=True, kw_only=True):
    """The link runs over another path now, or its round trip was measured anew."""

    peer: MemberId
    path: PathKind
    rtt_ms: float | None


class LinkQuiet(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing was heard for `QUIET_AFTER_S`, though we asked."""

    peer: MemberId


class LinkHeard(msgspec.Struct, frozen=True, kw_only=True):
    """A quiet peer is heard again; nothing sent over the link was lost."""

    peer: MemberId


class LinkLost(msgspec.Struct, frozen=True, kw_only=True):
    """The connection is over. `reason` is ours, never the peer's text."""

    peer: MemberId
    reason: str


LinkEvent = LinkUp | PathChanged | LinkQuiet | LinkHeard | LinkLost


class LinkClosed(Exception):  # noqa: N818  # it is told like any other news, not as a mistake
    """The link is over; what was not yet sent or received will not be. `reason` is our own."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


QUIET_AFTER_S = 4.0
"""Silence after which a peer counts as away."""

LINK_IDLE_TIMEOUT_S = 90.0
"""Silence after which the connection itself is given up; longer than any grace period."""
