"""One QUIC connection from its first datagram to its last: whose key it is, and what it carries.

    Shaking ──certificate right, hello both ways──▶ Up ──▶ Ended
       └──────── wrong or no certificate, ─────────────────▲
                 too slow, closed by the peer

A client's TLS is done before the server has looked at the client's certificate, so a link counts as
up only once each side's hello, sent after its own check, has arrived at the other.
"""

from collections.abc import Callable
from enum import IntEnum, StrEnum

import msgspec

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.network.link import Link
from kafila.network.link_channels import (
    CHUNK_BYTES,
    HIGH_WATER_BYTES,
    LOW_WATER_BYTES,
    RECORD_STREAM,
    Grant,
    Hello,
    Record,
    RecordReader,
    channel_stream,
    encode_record,
    stream_channel,
)
from kafila.network.quic import QuicCore
from kafila.network.quic_events import (
    ClosedByPeer,
    CoreEvent,
    Finished,
    IdIssued,
    IdRetired,
    Shaken,
    StreamBytes,
    StreamMisused,
)
from kafila.protocol.edge import Edge
from kafila.protocol.links import (
    QUIET_AFTER_S,
    Channel,
    LinkEvent,
    LinkHeard,
    LinkLost,
    LinkQuiet,
    LinkUp,
)
from kafila.protocol.path_size import SMALL_BYTES

PING_EVERY_S = 1.0
SHAKE_WITHIN_S = 10.0
"""A handshake that takes longer is begun anew by the side that dials."""
MAX_FAREWELLS = 8


class CloseCode(IntEnum):
    """Why a side ended the connection, as the other is told."""

    LEFT = 0x10
    NOT_A_PEER = 0x11
    WRONG_KEY = 0x12
    BROKEN_PROTOCOL = 0x13
    REPLACED = 0x14
    TOO_SLOW = 0x15


class Ending(StrEnum):
    """Why a link is over, in our own words."""

    WE_LEFT = "this computer left"
    THEY_LEFT = "the other computer left"
    REMOVED = "the other computer is no longer in the group"
    REMOVED_US = "the other computer does not count this one to the group"
    WRONG_KEY = "the other computer is not the one that the group knows by this name"
    WRONG_KEY_OURS = "the other computer did not recognise this one"
    BROKEN = "the other computer sent what no version of Kafila sends"
    BROKEN_OURS = "the other computer could not understand this one"
    NO_HANDSHAKE = "no encrypted connection came about"
    REPLACED = "the other computer connected anew"
    SILENT = "nothing was heard from the other computer for too long"


_TOLD = {
    CloseCode.LEFT: Ending.THEY_LEFT,
    CloseCode.NOT_A_PEER: Ending.REMOVED_US,
    CloseCode.WRONG_KEY: Ending.WRONG_KEY_OURS,
    CloseCode.BROKEN_PROTOCOL: Ending.BROKEN_OURS,
    CloseCode.REPLACED: Ending.REPLACED,
    CloseCode.TOO_SLOW: Ending.NO_HANDSHAKE,
}


class Shaking(msgspec.Struct, frozen=True, kw_only=True):
    """The two are finding out who the other is."""

    since: float
    peer_is_right: bool


class Up(msgspec.Struct, frozen=True, kw_only=True):
    """Messages flow. `quiet` while the peer has not been heard for a while."""

    quiet: bool


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """No more messages; for a moment late datagrams are answered with the farewell."""

    reason: Ending


SessionState = Shaking | Up | Ended


class Session:
    """A connection with one peer, on top of a QUIC core. Also the driver of its `link`."""

    def __init__(
        self,
        core: QuicCore,
        *,
        peer: MemberId,
        spki_sha256: bytes,
        edge: Edge,
        now: float,
        wake: Callable[[], None],
    ) -> None:
        self.link = Link(peer, self)
        self.state: SessionState = Shaking(since=now, peer_is_right=False)
        self.connection_ids = {core.own_id}
        self.finished = False
        """Whether it can be forgotten altogether."""
        self._core = core
        self._spki_sha256 = spki_sha256
        self._edge = edge
        self._wake = wake
        self._records = RecordReader()
        self._next_ping_at = now + PING_EVERY_S
        self._news: list[LinkEvent] = []
        self._farewell: list[bytes] = []
        self._farewells_left = MAX_FAREWELLS
        self._farewell_is_due = False

    # For the link

    def wake(self) -> None:
        """See `LinkDriver`."""
        self._wake()

    def leave(self) -> None:
        """See `LinkDriver`."""
        self.end(CloseCode.LEFT, Ending.WE_LEFT)

    def path(self) -> PathKind:
        """See `LinkDriver`."""
        return self._edge.path or PathKind.RELAYED

    def rtt_ms(self) -> float | None:
        """See `LinkDriver`."""
        rtt_s = self._edge.rtt_s
        return None if rtt_s is None else rtt_s * 1000

    # For whoever owns the session

    def receive(self, datagram: bytes, now: float) -> None:
        """A datagram that is addressed to this connection."""
        if isinstance(self.state, Ended):
            self._farewell_is_due = True
        try:
            self._core.receive(datagram, now)
        except PeerError:
            self.end(CloseCode.BROKEN_PROTOCOL, Ending.BROKEN)

    def pump(self, now: float, datagram_bytes: int = SMALL_BYTES) -> list[bytes]:
        """Let everything take effect that has happened; returns the datagrams to send, at most so large."""
        for event in self._core.events():
            try:
                self._on_event(event)
            except PeerError:
                self.end(CloseCode.BROKEN_PROTOCOL, Ending.BROKEN)
        self._hear(now)
        if not isinstance(self.state, Ended):
            self._grant()
            self._fill()
        datagrams = self._core.datagrams(now, datagram_bytes if isinstance(self.state, Up) else SMALL_BYTES)
        if isinstance(self.state, Ended):
            self._farewell = self._farewell or datagrams
            if self._farewell_is_due and not datagrams:
                datagrams = self.farewell()
            self._farewell_is_due = False
        return datagrams

    def farewell(self) -> list[bytes]:
        """The datagrams that tell the peer of the end, to be sent again: a few times, no more."""
        if self._farewells_left == 0:
            return []
        self._farewells_left -= 1
        return self._farewell

    def news(self) -> list[LinkEvent]:
        """What there is to tell of the link since this was last asked, once it was up."""
        news, self._news = self._news, []
        return news

    def tick(self, now: float) -> None:
        """Do what is due. Read what has arrived first: silence is judged here."""
        if (due := self._core.deadline()) is not None and now >= due:
            self._core.expire(now)
        if now >= self._next_ping_at:
            self._next_ping_at = now + PING_EVERY_S
            self._keep_alive(now)
        match self.state:
            case Up(quiet=False) if now >= self._core.heard_at + QUIET_AFTER_S:
                self.state = Up(quiet=True)
                self._news.append(LinkQuiet(peer=self.link.peer))
            case Shaking(since=since) if now >= since + SHAKE_WITHIN_S:
                self.end(CloseCode.TOO_SLOW, Ending.NO_HANDSHAKE)
            case _:
                pass

    def next_tick(self) -> float:
        """When `tick` is due next."""
        due = [self._next_ping_at]
        if (deadline := self._core.deadline()) is not None:
            due.append(deadline)
        match self.state:
            case Up(quiet=False):
                due.append(self._core.heard_at + QUIET_AFTER_S)
            case Shaking(since=since):
                due.append(since + SHAKE_WITHIN_S)
            case _:
                pass
        return min(due)

    def is_alive(self) -> bool:
        """Whether anything that the peer sent could be decrypted."""
        return self._core.heard_at > 0

    def nudge(self, now: float, *, moved: bool) -> None:
        """The path below `moved`, or has got another beside it: what was lost on it goes out again."""
        if not isinstance(self.state, Ended):
            self._core.nudge(now, moved=moved)

    def end(self, code: CloseCode, reason: Ending) -> None:
        """Close, and tell the peer with the next `pump`."""
        if not isinstance(self.state, Ended):
            self._core.close(code)
            self._become_ended(reason)
            self._wake()

    # How it goes on

    def _on_event(self, event: CoreEvent) -> None:
        match event:
            case StreamBytes(stream=stream, data=data):
                self._on_bytes(stream, data)
            case Shaken(spki_sha256=spki_sha256):
                self._on_shaken(spki_sha256)
            case IdIssued(connection_id=connection_id):
                self.connection_ids.add(connection_id)
            case IdRetired(connection_id=connection_id):
                self.connection_ids.discard(connection_id)
            case StreamMisused():
                self.end(CloseCode.BROKEN_PROTOCOL, Ending.BROKEN)
            case ClosedByPeer(code=code, ours=ours):
                self._on_closed(code if ours else None)
            case Finished():
                self.finished = True
                shaking = isinstance(self.state, Shaking)
                self._become_ended(Ending.NO_HANDSHAKE if shaking else Ending.SILENT)

    def _on_shaken(self, spki_sha256: bytes | None) -> None:
        if not isinstance(self.state, Shaking):
            return
        if spki_sha256 != self._spki_sha256:
            self.end(CloseCode.WRONG_KEY, Ending.WRONG_KEY)
            return
        self.state = msgspec.structs.replace(self.state, peer_is_right=True)
        self._core.open_streams(1 + len(Channel))
        self._core.write(RECORD_STREAM, encode_record(Hello()))

    def _on_bytes(self, stream: int, data: bytes) -> None:
        match self.state:
            case Shaking(peer_is_right=False) | Ended():
                return
            case _:
                pass
        if stream == RECORD_STREAM:
            for record in self._records.feed(data):
                self._on_record(record)
            return
        # The hello may have been overtaken by what was sent after it.
        self._become_up()
        channel = stream_channel(stream)
        self.link.inboxes[channel].feed(data)
        self.link.tell_arrived(channel)

    def _on_record(self, record: Record) -> None:
        match record:
            case Hello():
                self._become_up()
            case Grant(channel=channel, total=total):
                self.link.outboxes[channel].allow(total)

    def _on_closed(self, code: int | None) -> None:
        try:
            reason = _TOLD[CloseCode(code)] if code is not None else Ending.NO_HANDSHAKE
        except ValueError:
            reason = Ending.BROKEN
        self._become_ended(reason)

    def _become_up(self) -> None:
        if isinstance(self.state, Shaking):
            self.state = Up(quiet=False)
            self._news.append(LinkUp(peer=self.link.peer))

    def _become_ended(self, reason: Ending) -> None:
        if not isinstance(self.state, Ended):
            if isinstance(self.state, Up):
                self._news.append(LinkLost(peer=self.link.peer, reason=reason))
            self.state = Ended(reason=reason)
            self.link.end(reason)

    def _keep_alive(self, now: float) -> None:
        match self.state:
            case Up():
                self._core.ping()
            case Shaking():
                # The first flight may have come before the other side was ready for it.
                self._core.nudge(now, moved=False)
            case Ended():
                pass

    def _hear(self, now: float) -> None:
        match self.state:
            case Up(quiet=True) if now < self._core.heard_at + QUIET_AFTER_S:
                self.state = Up(quiet=False)
                self._news.append(LinkHeard(peer=self.link.peer))
                self._core.nudge(now, moved=True)
            case _:
                pass

    def _grant(self) -> None:
        for channel, inbox in zip(Channel, self.link.inboxes, strict=True):
            if (total := inbox.grant()) is not None:
                grant = Grant(channel=channel, total=total)
                self._core.write(RECORD_STREAM, encode_record(grant))

    def _fill(self) -> None:
        """Move messages into the core, as far as its buffers and the peer's credit go."""
        if not isinstance(self.state, Up):
            return
        for channel in Channel:
            outbox, stream = self.link.outboxes[channel], channel_stream(channel)
            while outbox.waiting_bytes and self._core.backlog_bytes(stream) < HIGH_WATER_BYTES:
                data = outbox.take(CHUNK_BYTES)
                if not data:
                    break
                self._core.write(stream, data)
            if outbox.waiting_bytes <= LOW_WATER_BYTES:
                self.link.tell_room(channel)
            if not outbox.waiting_bytes and not self._core.backlog_bytes(stream):
                self.link.tell_delivered(channel)
