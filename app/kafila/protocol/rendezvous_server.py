"""The rendezvous's side of signalling, sans-io: connections in, what to send and to drop out.

A connection is a number that the caller gives to a WebSocket. Connections come and go; the lines
of `Client`s stay for a while, and are taken up again by token.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.rendezvous import (
    RENDEZVOUS_VERSION,
    SILENCE_S,
    Ack,
    Bye,
    Continuity,
    FromClient,
    FromServer,
    Hello,
    Ping,
    Pong,
    Refusal,
    Refused,
    Welcome,
    decode_from_client,
    encode_signal,
)
from kafila.protocol.rendezvous_limits import Bucket, Buckets, Limits
from kafila.protocol.rendezvous_parties import Attached, Away, Client, Host, Nobody
from kafila.protocol.rendezvous_switchboard import (
    Outcome,
    SeatGiven,
    SeatTaken,
    Switchboard,
    Tell,
)


class Transmit(msgspec.Struct, frozen=True, kw_only=True):
    """Send this on a connection."""

    connection: int
    data: bytes


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """Close a connection, after what was sent on it. `reason` is our own, for the log."""

    connection: int
    reason: str


Effect = Transmit | Drop | SeatGiven | SeatTaken

_TOO_MUCH = "more messages than one connection may send"
_TAKES_NOTHING = "a line that takes nothing"


class SignallingCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How much is going on, and how much was turned away. Names nobody."""

    connections: int
    clients: int
    sessions: int
    waiting_bytes: int
    """Of messages that lines have not taken; brought up to date with every tick."""
    silent: int
    """Connections given up because nothing came."""
    refused: dict[str, int]
    """Requests turned away, by reason."""
    faults: dict[str, int]
    """Clients let go for breaking the protocol, by what they did."""
    overflows: dict[str, int]
    """Exchanges that ended because too much waited, by where."""


@dataclass(slots=True, eq=False)
class _Connection:
    source: str
    udp_port: int
    heard_at: float
    messages: Bucket
    message_bytes: Bucket
    client: Client | None = None


class RendezvousMachine:
    """All of signalling. Every method returns what is to be done, in order."""

    def __init__(
        self,
        *,
        secret: bytes,
        draw: Callable[[int], bytes],
        limits: Limits,
    ) -> None:
        """`secret` is at least 16 bytes; `draw(n)` gives n unpredictable bytes."""
        self._limits = limits
        self._switchboard = Switchboard(secret=secret, draw=draw, limits=limits)
        self._connections: dict[int, _Connection] = {}
        self._by_source: Counter[str] = Counter()
        self._clients: set[Client] = set()
        self._connects = Buckets(limits.connects)
        self._lookups = Buckets(limits.lookups)
        self._silent = 0
        self._faults: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._effects: list[Effect] = []

    def counts(self) -> SignallingCounts:
        """The present numbers."""
        return SignallingCounts(
            connections=len(self._connections),
            clients=len(self._clients),
            sessions=self._switchboard.sessions,
            waiting_bytes=self._switchboard.waiting_bytes,
            silent=self._silent,
            refused=dict(self._refused + self._switchboard.denied),
            faults=dict(self._faults),
            overflows=dict(self._switchboard.overflows),
        )

    def look_up(self, nameplate: int, source: str, now: float) -> bool | Refusal:
        """Whether a session with this nameplate is here, for somebody who only asks."""
        if not self._lookups.take(source, 1, now):
            self._refused["too many questions"] += 1
            return Refusal.TOO_MANY
        return self._switchboard.has_nameplate(nameplate)

    def connect(self, connection: int, source: str, udp_port: int, now: float) -> list[Effect]:
        """A connection was accepted from this source; `udp_port` is what the relay has there."""
        refusal = self._why_not_connect(source, now)
        if refusal is not None:
            self._refuse(connection, refusal)
        else:
            self._by_source[source] += 1
            self._connections[connection] = _Connection(
                source,
                udp_port,
                now,
                Bucket(self._limits.messages, now),
                Bucket(self._limits.message_bytes, now),
            )
        return self._drain()

    def receive(self, connection: int, data: bytes, now: float) -> list[Effect]:
        """A message came on a connection."""
        state = self._connections.get(connection)
        if state is None:  # Dropped a moment ago; this was still on its way.
            return []
        try:
            self._handle(connection, state, data, now)
        except PeerError as error:
            self._fault(connection, error.fault, now)
        return self._drain()

    def count(self, connection: int, now: float) -> list[Effect]:
        """Something came on a connection that says nothing, and counts as a message."""
        state = self._connections.get(connection)
        if state is not None and not state.messages.take(1, now):
            self._fault(connection, _TOO_MUCH, now)
        return self._drain()

    def disconnect(self, connection: int, now: float) -> list[Effect]:
        """A connection is gone."""
        self._detach(connection, now)
        return self._drain()

    def tick(self, now: float) -> list[Effect]:
        """Call about once a second: what has been silent or away too long is given up."""
        for number, connection in list(self._connections.items()):
            is_greeted = connection.client is not None
            patience = SILENCE_S if is_greeted else self._limits.hello_within_s
            if now - connection.heard_at >= patience:
                self._silent += 1
                self._drop(number, "silent for too long", now)
        for client in list(self._clients):
            match client.place:
                case Away(until=until) if now >= until:
                    self._end(client, now)
                case _:
                    pass
        # Between ticks it only grows: what is acknowledged meanwhile is noticed here.
        self._switchboard.waiting_bytes = sum(client.line.waiting_bytes for client in self._clients)
        self._apply(self._switchboard.tick(now), now)
        self._connects.forget_idle(now)
        self._lookups.forget_idle(now)
        return self._drain()

    def _drain(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def _why_not_connect(self, source: str, now: float) -> Refusal | None:
        if len(self._connections) >= self._limits.connections:
            return Refusal.FULL
        alike = self._by_source[source]
        if alike >= self._limits.connections_per_source or not self._connects.take(source, 1, now):
            return Refusal.TOO_MANY
        return None

    def _refuse(self, connection: int, reason: Refusal) -> None:
        self._refused[reason.label] += 1
        self._transmit(connection, Refused(reason=reason))
        self._effects.append(Drop(connection=connection, reason=f"refused: {reason.name}"))

    def _handle(self, number: int, connection: _Connection, data: bytes, now: float) -> None:
        enough = connection.messages.take(1, now)
        if not (enough and connection.message_bytes.take(len(data), now)):
            raise PeerError(_TOO_MUCH)
        message = decode_from_client(data)
        connection.heard_at = now
        if connection.client is not None:
            self._handle_known(number, connection.client, message, len(data), now)
        elif isinstance(message, Hello):
            self._greet(number, connection, message, now)
        else:
            fault = "a client that does not begin with a hello"
            raise PeerError(fault)

    def _handle_known(self, number: int, client: Client, message: FromClient, size_bytes: int, now: float) -> None:
        match message:
            case Hello():
                fault = "a second hello on one connection"
                raise PeerError(fault)
            case Ping(received=received):
                client.line.acknowledge(received)
                self._transmit(number, Pong(received=client.line.said_received()))
            case Ack(received=received):
                client.line.acknowledge(received)
            case Bye():
                self._end(client, now)
            case _:
                if client.line.take_in(size_bytes):
                    self._transmit(number, Ack(received=client.line.said_received()))
                self._apply(self._switchboard.handle(client, message, now), now)

    def _greet(self, number: int, connection: _Connection, hello: Hello, now: float) -> None:
        if hello.version != RENDEZVOUS_VERSION:
            self._detach(number, now)
            self._refuse(number, Refusal.OTHER_VERSION)
            return
        client = self._switchboard.find(hello.token)
        if client is not None:
            self._resume(number, connection, client, hello, now)
            return
        client = Client(connection.source, Attached(connection=number))
        self._clients.add(client)
        connection.client = client
        continuity, nameplate, outcomes = self._switchboard.reseat(client, hello, now)
        self._welcome(number, continuity, client, nameplate)
        self._apply(outcomes, now)

    def _resume(self, number: int, connection: _Connection, client: Client, hello: Hello, now: float) -> None:
        missed = client.line.resume(hello.received)
        match client.place:
            case Attached(connection=old):
                # The client noticed before we did that its old connection is dead.
                self._drop(old, "taken up on another connection", now)
            case Away():
                pass
        client.place = Attached(connection=number)
        connection.client = client
        nameplate = client.role.session.nameplate if isinstance(client.role, Host) else None
        self._welcome(number, Continuity.RESUMED, client, nameplate)
        for data in missed:
            self._effects.append(Transmit(connection=number, data=data))

    def _welcome(self, number: int, continuity: Continuity, client: Client, nameplate: int | None) -> None:
        message = Welcome(
            continuity=continuity,
            received=client.line.said_received(),
            udp_port=self._connections[number].udp_port,
            nameplate=nameplate,
        )
        self._transmit(number, message)

    def _apply(self, outcomes: list[Outcome], now: float) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Tell):
                self._tell(outcome.client, outcome.message, now)
            else:
                self._effects.append(outcome)

    def _tell(self, client: Client, message: FromServer, now: float) -> None:
        if client not in self._clients:
            return
        data = encode_signal(message)
        client.line.push(data)
        self._switchboard.waiting_bytes += len(data)
        match client.place:
            case Attached(connection=connection):
                self._effects.append(Transmit(connection=connection, data=data))
            case Away():
                pass
        if client.line.waiting >= 2 * self._limits.waiting_messages:
            self._faults[_TAKES_NOTHING] += 1
            self._end(client, now)

    def _transmit(self, connection: int, message: FromServer) -> None:
        self._effects.append(Transmit(connection=connection, data=encode_signal(message)))

    def _end(self, client: Client, now: float) -> None:
        """The line is over."""
        self._clients.discard(client)
        match client.place:
            case Attached(connection=connection):
                self._drop(connection, "the line is over", now)
            case Away():
                pass
        self._apply(self._switchboard.leave(client), now)

    def _fault(self, connection: int, fault: str, now: float) -> None:
        self._faults[fault] += 1
        self._drop(connection, fault, now)

    def _drop(self, connection: int, reason: str, now: float) -> None:
        self._detach(connection, now)
        self._effects.append(Drop(connection=connection, reason=reason))

    def _detach(self, number: int, now: float) -> None:
        connection = self._connections.pop(number, None)
        if connection is None:
            return
        self._by_source[connection.source] -= 1
        if not self._by_source[connection.source]:
            del self._by_source[connection.source]
        client = connection.client
        if client is None or client not in self._clients:
            return
        if isinstance(client.role, Nobody):
            # It was given no token to come back with.
            self._clients.discard(client)
        else:
            client.place = Away(until=now + self._limits.grace_s)
