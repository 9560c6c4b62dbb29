"""The rendezvous's memory of sessions: nameplates, seats at the relay, and exchanges.

It knows clients by their lines and nothing of connections; `rendezvous_server` stands between.
What it wants done is returned as outcomes.
"""

from collections import Counter
from collections.abc import Callable

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.rendezvous import (
    MAX_NAMEPLATE,
    Call,
    Called,
    CloseCode,
    Continuity,
    Denied,
    FromServer,
    HangUp,
    Hello,
    Incoming,
    Open,
    Opened,
    Refusal,
    Say,
)
from kafila.protocol.rendezvous_limits import Buckets, Limits
from kafila.protocol.rendezvous_parties import Client, Exchange, Guest, Host, Nobody, Session
from kafila.protocol.rendezvous_tokens import Place, TokenMint


class Tell(msgspec.Struct, frozen=True):
    """Say this on a client's line."""

    client: Client
    message: FromServer


class SeatGiven(msgspec.Struct, frozen=True, kw_only=True):
    """From now on the relay serves this slot, towards the slots of the same session."""

    slot: int
    session: int
    key: bytes


class SeatTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The relay forgets this slot."""

    slot: int


Outcome = Tell | SeatGiven | SeatTaken


class Switchboard:
    """Who is in which session, who talks to whom."""

    def __init__(self, *, secret: bytes, draw: Callable[[int], bytes], limits: Limits) -> None:
        self.waiting_bytes = 0
        """Of messages that lines have not taken, in all; kept up to date by whoever carries them."""
        self.overflows: Counter[str] = Counter()
        """Exchanges ended because one side took nothing while the other went on talking, by where it was full."""
        self.denied: Counter[str] = Counter()
        """Requests that came to nothing, by reason."""
        self._mint = TokenMint(secret)
        self._draw = draw
        self._limits = limits
        self._sessions: dict[int, Session] = {}
        self._by_nameplate: dict[int, Session] = {}
        self._nameplates_by_length: Counter[int] = Counter()
        self._by_slot: dict[int, Client] = {}
        self._exchanges = 0
        self._opens = Buckets(limits.opens)
        self._calls = Buckets(limits.calls)
        self._outcomes: list[Outcome] = []

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def has_nameplate(self, nameplate: int) -> bool:
        """Whether a call to it would reach a host."""
        return nameplate in self._by_nameplate

    def find(self, token: bytes) -> Client | None:
        """The client to which this token was given, if it is still known."""
        place = self._mint.read(token)
        return None if place is None else self._by_slot.get(place.slot)

    def handle(self, client: Client, message: Open | CloseCode | Call | Say | HangUp, now: float) -> list[Outcome]:
        """What a client's numbered message leads to. Raises PeerError where it may not say it."""
        match message:
            case Open():
                self._open(client, message, now)
            case CloseCode():
                self._close_code(client)
            case Call():
                self._call(client, message, now)
            case Say():
                self._say(client, message)
            case HangUp():
                exchange = client.exchanges.get(message.exchange)
                # The other side may have hung up in the same moment.
                if exchange is not None:
                    self._end_exchange(exchange, tell=(exchange.other(client),))
        return self._drain()

    def leave(self, client: Client) -> list[Outcome]:
        """The client is gone for good, and a host's session with it."""
        self._leave(client)
        return self._drain()

    def reseat(self, client: Client, hello: Hello, now: float) -> tuple[Continuity, int | None, list[Outcome]]:
        """Give a client back what its token says it had before this rendezvous was restarted."""
        place = self._mint.read(hello.token)
        if place is None or len(self._sessions) >= self._limits.sessions:
            return Continuity.NEW, None, []
        session = self._sessions.get(place.session)
        if session is None:
            session = Session(place.session, 0, None, now + self._limits.grace_s)
            self._sessions[place.session] = session
        if place.is_host:
            session.host, session.host_slot = client, place.slot
            client.role = Host(session)
            if hello.nameplate is not None and hello.nameplate not in self._by_nameplate:
                self._name(session, hello.nameplate)
        else:
            session.guests[place.slot] = client
            client.role = Guest(session, place.slot)
        self._give_seat(client, session, place.slot)
        nameplate = session.nameplate if place.is_host else None
        return Continuity.RESEATED, nameplate, self._drain()

    def tick(self, now: float) -> list[Outcome]:
        """Forget sessions whose host never came back, and what limits no longer need."""
        for session in [s for s in self._sessions.values() if s.host is None]:
            if now >= session.hostless_until:
                self._end_session(session)
        self._opens.forget_idle(now)
        self._calls.forget_idle(now)
        return self._drain()

    def _drain(self) -> list[Outcome]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def _tell(self, client: Client, message: FromServer) -> None:
        self._outcomes.append(Tell(client, message))

    def _deny(self, client: Client, request: int, reason: Refusal) -> None:
        self.denied[reason.label] += 1
        self._tell(client, Denied(request=request, reason=reason))

    def _open(self, client: Client, message: Open, now: float) -> None:
        if isinstance(client.role, Guest):
            fault = "a joiner that opens a session on the same line"
            raise PeerError(fault)
        denied = self._why_not_open(client, now)
        if denied is not None:
            self._deny(client, message.request, denied)
            return
        match client.role:
            case Host(session):
                pass
            case _:
                session = Session(self._draw_number(self._sessions), self._draw_slot(), client, now)
                self._sessions[session.number] = session
                client.role = Host(session)
                self._give_seat(client, session, session.host_slot)
        nameplate = message.nameplate
        if nameplate is None or nameplate in self._by_nameplate:
            nameplate = self._draw_nameplate()
        self._unname(session)
        self._name(session, nameplate)
        seat = self._mint.grant(Place(session.number, session.host_slot, is_host=True))
        self._tell(client, Opened(request=message.request, nameplate=nameplate, seat=seat))

    def _why_not_open(self, client: Client, now: float) -> Refusal | None:
        if not self._opens.take(client.source, 1, now):
            return Refusal.TOO_MANY
        if isinstance(client.role, Nobody) and len(self._sessions) >= self._limits.sessions:
            return Refusal.FULL
        return None

    def _close_code(self, client: Client) -> None:
        match client.role:
            case Host(session):
                self._unname(session)
            case _:
                fault = "a code closed by somebody who opened none"
                raise PeerError(fault)

    def _call(self, client: Client, message: Call, now: float) -> None:
        if isinstance(client.role, Host):
            fault = "a host that calls a session on the same line"
            raise PeerError(fault)
        session = self._by_nameplate.get(message.nameplate)
        if not self._calls.take(client.source, 1, now):
            self._deny(client, message.request, Refusal.TOO_MANY)
            return
        if session is None or session.host is None:
            self._deny(client, message.request, Refusal.NO_SUCH_CODE)
            return
        if self._is_full(session.host, client.source):
            self._deny(client, message.request, Refusal.FULL)
            return
        slot = self._seat_guest(client, session)
        self._exchanges += 1
        exchange = Exchange(self._exchanges, session.host, client)
        client.exchanges[exchange.number] = session.host.exchanges[exchange.number] = exchange
        seat = self._mint.grant(Place(session.number, slot, is_host=False))
        self._tell(client, Called(request=message.request, exchange=exchange.number, seat=seat))
        remote = self._mint.remote(client.source)
        self._tell(session.host, Incoming(exchange=exchange.number, remote=remote))

    def _is_full(self, host: Client, source: str) -> bool:
        if len(host.exchanges) >= self._limits.exchanges_per_session:
            return True
        alike = sum(exchange.guest.source == source for exchange in host.exchanges.values())
        return alike >= self._limits.exchanges_per_session_and_source

    def _seat_guest(self, client: Client, session: Session) -> int:
        match client.role:
            case Guest(current, slot) if current is session:
                return slot
            case Guest():
                self._leave(client)
            case _:
                pass
        slot = self._draw_slot()
        session.guests[slot] = client
        client.role = Guest(session, slot)
        self._give_seat(client, session, slot)
        return slot

    def _say(self, client: Client, message: Say) -> None:
        exchange = client.exchanges.get(message.exchange)
        if exchange is None:  # The other side hung up while this was on its way.
            return
        other = exchange.other(client)
        full = self._where_full(other)
        if full is None:
            self._tell(other, message)
        else:
            self.overflows[full] += 1
            self._end_exchange(exchange, tell=(client, other))

    def _where_full(self, client: Client) -> str | None:
        line = client.line
        if line.waiting >= self._limits.waiting_messages or line.waiting_bytes >= self._limits.waiting_bytes:
            return "line"
        return "all lines together" if self.waiting_bytes >= self._limits.waiting_bytes_in_all else None

    def _end_exchange(self, exchange: Exchange, *, tell: tuple[Client, ...]) -> None:
        del exchange.host.exchanges[exchange.number]
        del exchange.guest.exchanges[exchange.number]
        for client in tell:
            self._tell(client, HangUp(exchange=exchange.number))

    def _leave(self, client: Client) -> None:
        for exchange in list(client.exchanges.values()):
            self._end_exchange(exchange, tell=(exchange.other(client),))
        match client.role:
            case Host(session):
                self._end_session(session)
            case Guest(session, slot):
                del session.guests[slot]
                self._take_seat(slot)
            case Nobody():
                pass
        client.role = Nobody()

    def _end_session(self, session: Session) -> None:
        self._unname(session)
        del self._sessions[session.number]
        if session.host is not None:
            self._take_seat(session.host_slot)
            session.host.role = Nobody()
        for slot, guest in session.guests.items():
            self._take_seat(slot)
            guest.role = Nobody()

    def _give_seat(self, client: Client, session: Session, slot: int) -> None:
        self._by_slot[slot] = client
        key = self._mint.seat_key(session.number, slot)
        self._outcomes.append(SeatGiven(slot=slot, session=session.number, key=key))

    def _take_seat(self, slot: int) -> None:
        del self._by_slot[slot]
        self._outcomes.append(SeatTaken(slot=slot))

    def _name(self, session: Session, nameplate: int) -> None:
        session.nameplate = nameplate
        self._by_nameplate[nameplate] = session
        self._nameplates_by_length[len(str(nameplate))] += 1

    def _unname(self, session: Session) -> None:
        if session.nameplate is not None:
            del self._by_nameplate[session.nameplate]
            self._nameplates_by_length[len(str(session.nameplate))] -= 1
            session.nameplate = None

    def _draw_nameplate(self) -> int:
        # Short ones first, but never so few that callers hit each other's by a slip of the finger.
        low, length = 10, 2
        while 2 * self._nameplates_by_length[length] >= 9 * low and 10 * low < MAX_NAMEPLATE:
            low, length = 10 * low, length + 1
        while True:
            nameplate = low + int.from_bytes(self._draw(8)) % (9 * low)
            if nameplate not in self._by_nameplate:
                return nameplate

    def _draw_slot(self) -> int:
        return self._draw_number(self._by_slot)

    def _draw_number(self, taken: dict[int, Session] | dict[int, Client]) -> int:
        while (number := int.from_bytes(self._draw(8))) in taken:
            pass
        return number
