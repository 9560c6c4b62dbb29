"""One peer of an endpoint: the way to it, and the connections with it."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafila.domain.ids import MemberId
from kafila.network.link import Link, LinkClosed
from kafila.network.link_session import CloseCode, Ended, Ending, Session, Shaking, Up
from kafila.network.paths import PeerPath
from kafila.network.quic import CoreMaker, QuicCore
from kafila.protocol.links import LinkEvent, LinkLost, LinkUp, Peer

if TYPE_CHECKING:
    from kafila.protocol.edge_states import Route

DIAL_EVERY_S = 1.0
"""At most so often, where a handshake fails at once."""
DIAL_ANEW_AFTER_S = 0.5
"""An unfinished handshake of the peer's gives way to a newer one only after this long."""

_RETRIED = (Ending.NO_HANDSHAKE, Ending.REPLACED)
"""Endings of a handshake after which dialling again may help."""

log = logging.getLogger(__name__)


class KnownPeer:
    """A peer that may connect. The member with the lower id dials, the other accepts."""

    def __init__(
        self,
        peer: Peer,
        path: PeerPath,
        *,
        own: MemberId,
        maker: CoreMaker,
        on_event: Callable[[LinkEvent], None],
        on_wake: Callable[["KnownPeer"], None],
    ) -> None:
        self.peer = peer
        self.path = path
        self.sessions: list[Session] = []
        """All that are not finished: shaking, up, or ended a moment ago."""
        self.filed_ids: frozenset[bytes] = frozenset()
        """The connection ids under which the endpoint finds them."""
        self._dials = own < peer.member
        self._maker = maker
        self._on_event = on_event
        self._on_wake = on_wake
        self._wanted = False
        self._next_dial_at = 0.0
        self._routes: tuple[Route, ...] = ()
        self._ways: tuple[Route, ...] = ()
        self._datagram_bytes = path.datagram_bytes
        self._ended: set[Session] = set()
        self._waiters: list[asyncio.Future[Link]] = []

    # What the endpoint is asked for

    def open(self, now: float) -> None:
        """Bring a link about, or keep the one there is."""
        self._wanted = True
        self._next_dial_at = now
        self.path.edge.begin(now)

    def link(self) -> Link | None:
        """The link, while it is up."""
        return next((s.link for s in self.sessions if isinstance(s.state, Up)), None)

    async def connected(self) -> Link:
        """The link, once it is up. Raises LinkClosed where it cannot come about."""
        if (link := self.link()) is not None:
            return link
        waiter: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return await waiter

    def close(self, code: CloseCode, reason: Ending) -> None:
        """End whatever there is with this peer, and try no more."""
        self._wanted = False
        for session in self.sessions:
            session.end(code, reason)
        self._fail_waiters(reason)

    # What happens

    def accept(self, first_destination: bytes, now: float) -> Session | None:
        """The peer opens a connection; None where that is not its part, or one is under way."""
        if self._dials:
            return None
        for session in self.sessions:
            if isinstance(session.state, Shaking):
                if now < session.state.since + DIAL_ANEW_AFTER_S:
                    return None
                session.end(CloseCode.REPLACED, Ending.REPLACED)
        return self._add(self._maker.accept(self.peer.member, first_destination), now)

    def forget(self, session: Session) -> None:
        """The session never came to life."""
        self.sessions.remove(session)

    def tick(self, now: float) -> None:
        """Do what is due. Read what has arrived first."""
        self.path.tick(now)
        for session in self.sessions:
            session.tick(now)

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        due = [session.next_tick() for session in self.sessions]
        if (path_due := self.path.next_tick()) is not None:
            due.append(path_due)
        if self._should_dial():
            due.append(self._next_dial_at)
        return min(due, default=None)

    def settle(self, now: float) -> None:
        """Let everything take effect that has happened, and send what is to be sent."""
        for path_changed in self.path.act():
            self._on_event(path_changed)
        self._follow_routes(now)
        self._follow_size(now)
        for session in list(self.sessions):
            self._pump(session, now)
        # Only now, when all that has ended is known to have ended, and why.
        if self._should_dial() and now >= self._next_dial_at:
            self._next_dial_at = now + DIAL_EVERY_S
            self._pump(self._add(self._maker.dial(self.peer.member, now), now), now)
        self._ended.intersection_update(self.sessions)

    def say_farewell(self) -> None:
        """Tell the peer once more of what has ended."""
        for session in self.sessions:
            for datagram in session.farewell():
                self.path.send(datagram)

    # How it goes on

    def _pump(self, session: Session, now: float) -> None:
        for datagram in session.pump(now, self._datagram_bytes):
            self.path.send(datagram)
        self._hear_of(session)

    def _add(self, core: QuicCore, now: float) -> Session:
        session = Session(
            core,
            peer=self.peer.member,
            spki_sha256=self.peer.spki_sha256,
            edge=self.path.edge,
            now=now,
            wake=lambda: self._on_wake(self),
        )
        self.sessions.append(session)
        return session

    def _should_dial(self) -> bool:
        return (
            self._wanted
            and self._dials
            and bool(self._routes)
            and all(isinstance(session.state, Ended) for session in self.sessions)
        )

    def _follow_routes(self, now: float) -> None:
        routes = self.path.edge.routes()
        if routes != self._routes:
            # A second way that is only taken beside the first makes it no other.
            moved = routes[:1] != self._routes[:1]
            self._routes = routes
            for session in self.sessions:
                session.nudge(now, moved=moved)

    def _follow_size(self, now: float) -> None:
        ways = () if self.link() is None else self._routes
        if ways != self._ways:
            self._ways = ways
            self.path.follow(ways, now)
        shrunk = self.path.datagram_bytes < self._datagram_bytes
        self._datagram_bytes = self.path.datagram_bytes
        if shrunk:
            # What was too large has been lost for a while, and is being repeated ever more seldom.
            for session in self.sessions:
                session.nudge(now, moved=True)

    def _hear_of(self, session: Session) -> None:
        for event in session.news():
            self._on_event(event)
            match event:
                case LinkUp():
                    self._came_up(session)
                case LinkLost():
                    self._wanted = False
                    self._ended.add(session)
                case _:
                    pass
        match session.state:
            case Ended(reason=reason) if session not in self._ended:
                self._ended.add(session)
                self._did_not_come_up(reason)
            case _:
                pass
        if session.finished:
            self.sessions.remove(session)

    def _came_up(self, new: Session) -> None:
        for session in self.sessions:
            if session is not new:
                session.end(CloseCode.REPLACED, Ending.REPLACED)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(new.link)

    def _did_not_come_up(self, reason: Ending) -> None:
        log.info("link with %s did not come up: %s", self.peer.member, reason)
        if self._dials and self._wanted and reason not in _RETRIED:
            self._wanted = False
            self._on_event(LinkLost(peer=self.peer.member, reason=reason))
            self._fail_waiters(reason)

    def _fail_waiters(self, reason: Ending) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(LinkClosed(reason))
