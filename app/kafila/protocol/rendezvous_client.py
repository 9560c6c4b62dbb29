"""A client's side of signalling, sans-io: one line to a rendezvous, over any number of connections.

Call a method, then `drain()` what is to be sent and what happened. Requests and bodies given while
there is no connection go out with the next one.
"""

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.rendezvous import (
    PING_EVERY_S,
    RENDEZVOUS_VERSION,
    SILENCE_S,
    Ack,
    Bye,
    Call,
    Called,
    CloseCode,
    Continuity,
    Denied,
    FromClient,
    HangUp,
    Hello,
    Incoming,
    Open,
    Opened,
    Ping,
    Pong,
    Refusal,
    Refused,
    Say,
    SeatGrant,
    Welcome,
    decode_from_server,
    encode_signal,
)
from kafila.protocol.rendezvous_line import Line
from kafila.protocol.rendezvous_session import (
    HostSeat,
    HostSeatChanged,
    SeatGone,
    SignallingBack,
    SignallingLost,
)
from kafila.protocol.trust import Certain

MAX_WAITING_MESSAGES = 64
MAX_WAITING_BYTES = 1 << 20
MAX_RETRY_DELAY_S = 10.0


class Send(msgspec.Struct, frozen=True):
    """Send this on the connection."""

    data: bytes


class Disconnect(msgspec.Struct, frozen=True):
    """Give the connection up. `reason` is our own, for the log."""

    reason: str


class TurnedAway(msgspec.Struct, frozen=True):
    """The rendezvous does not want this connection."""

    reason: Refusal


class SessionOpened(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `open`."""

    request: int
    seat: HostSeat


class CallTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `call`."""

    request: int
    exchange: int
    seat: RelaySeat


class RequestDenied(msgspec.Struct, frozen=True, kw_only=True):
    """The other answer to `open` or `call`."""

    request: int
    reason: Refusal


class CallHeard(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody calls the session."""

    exchange: int
    remote: str


class BodyHeard(msgspec.Struct, frozen=True, kw_only=True):
    """The other side of an exchange said something."""

    exchange: int
    body: bytes


class ExchangeEnded(msgspec.Struct, frozen=True):
    """Nothing will be heard on this exchange any more."""

    exchange: int


Happening = (
    SignallingLost
    | SignallingBack
    | HostSeatChanged
    | SeatGone
    | TurnedAway
    | SessionOpened
    | CallTaken
    | RequestDenied
    | CallHeard
    | BodyHeard
    | ExchangeEnded
)
Output = Send | Disconnect | Happening


class _Offline(msgspec.Struct, frozen=True):
    """There is no connection."""


class _Greeting(msgspec.Struct, frozen=True):
    """A hello was said and not yet answered."""

    relay_host: str
    trust: Certain


class _Online(msgspec.Struct, frozen=True):
    """Welcome."""

    relay: Address
    trust: Certain

    def seat(self, grant: SeatGrant) -> RelaySeat:
        """The relay is where the signalling is, and shows the same certificate."""
        return RelaySeat(relay=self.relay, slot=grant.slot, key=grant.key, trust=self.trust)


def retry_delay_s(attempt: int, chance: float) -> float:
    """How long to wait before the next attempt to connect; `chance` in [0, 1) spreads clients."""
    return min(MAX_RETRY_DELAY_S, 0.25 * 2.0 ** min(attempt, 10)) * (0.5 + 0.5 * chance)


class RendezvousClientMachine:
    """The line, the requests and the exchanges of one client."""

    def __init__(self) -> None:
        self._phase: _Offline | _Greeting | _Online = _Offline()
        self._line = Line()
        self._token = b""
        self._hosting: HostSeat | None = None
        self._is_code_open = False
        self._requests: dict[int, Open | Call] = {}
        self._next_request = 0
        self._reopening: int | None = None
        self._exchanges: set[int] = set()
        self._heard_at = self._pinged_at = 0.0
        self._outputs: list[Output] = []

    def drain(self) -> list[Output]:
        """What the calls since the last `drain` led to, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    @property
    def has_room(self) -> bool:
        """Whether a body may be said now, or earlier ones should be taken by the rendezvous first."""
        few = self._line.waiting < MAX_WAITING_MESSAGES
        return few and self._line.waiting_bytes < MAX_WAITING_BYTES

    def connected(self, relay_host: str, trust: Certain, now: float) -> None:
        """A connection is there, to a rendezvous at this IP address that showed the right certificate."""
        self._phase = _Greeting(relay_host, trust)
        self._heard_at = self._pinged_at = now
        nameplate = self._hosting.nameplate if self._hosting and self._is_code_open else None
        self._transmit(
            Hello(
                version=RENDEZVOUS_VERSION,
                token=self._token,
                received=self._line.said_received(),
                nameplate=nameplate,
            )
        )

    def disconnected(self) -> None:
        """The connection is gone."""
        was_online = isinstance(self._phase, _Online)
        self._phase = _Offline()
        if was_online:
            self._outputs.append(SignallingLost())

    def tick(self, now: float) -> None:
        """Call about once a second while there is a connection."""
        if now - self._heard_at >= SILENCE_S:
            self._outputs.append(Disconnect("the rendezvous is silent"))
        elif isinstance(self._phase, _Online) and now - self._pinged_at >= PING_EVERY_S:
            self._pinged_at = now
            self._transmit(Ping(received=self._line.said_received()))

    def open(self, nameplate: int | None) -> int:
        """Open the session, or give it another nameplate. Returns the request's number."""
        return self._ask(Open(request=self._next_request, nameplate=nameplate))

    def close_code(self) -> None:
        """Nobody can call any more."""
        if self._is_code_open:
            self._is_code_open = False
            self._push(CloseCode())

    def call(self, nameplate: int) -> int:
        """Call a session. Returns the request's number."""
        return self._ask(Call(request=self._next_request, nameplate=nameplate))

    def abandon(self, request: int) -> None:
        """Nobody waits for the answer any more; a call that is taken all the same is hung up."""
        self._requests.pop(request, None)

    def say(self, exchange: int, body: bytes) -> None:
        """Say something to the other side; of no effect where the exchange is over."""
        if exchange in self._exchanges:
            self._push(Say(exchange=exchange, body=body))

    def hang_up(self, exchange: int) -> None:
        """End an exchange."""
        if exchange in self._exchanges:
            self._exchanges.discard(exchange)
            self._push(HangUp(exchange=exchange))
            self._outputs.append(ExchangeEnded(exchange))

    def bye(self) -> None:
        """Leave for good."""
        for exchange in sorted(self._exchanges):
            self._end_exchange(exchange)
        if isinstance(self._phase, _Online):
            self._transmit(Bye())

    def receive(self, data: bytes, now: float) -> None:
        """A message came. A rendezvous that breaks the protocol is disconnected from."""
        self._heard_at = now
        try:
            message = decode_from_server(data)
            match message:
                case Welcome():
                    self._welcomed(message)
                case Refused(reason=reason):
                    self._outputs.append(TurnedAway(reason))
                    self._outputs.append(Disconnect("turned away"))
                case Pong(received=received) | Ack(received=received):
                    self._line.acknowledge(received)
                case _:
                    self._take(message, len(data))
        except PeerError as error:
            self._outputs.append(Disconnect(error.fault))

    def _take(self, message: Opened | Called | Denied | Incoming | Say | HangUp, size_bytes: int) -> None:
        if not isinstance(self._phase, _Online):
            fault = "a rendezvous that does not begin with a welcome"
            raise PeerError(fault)
        if self._line.take_in(size_bytes):
            self._transmit(Ack(received=self._line.said_received()))
        match message:
            case Opened() | Called() | Denied():
                self._answered(message, self._phase)
            case Incoming(exchange=exchange, remote=remote):
                self._exchanges.add(exchange)
                self._outputs.append(CallHeard(exchange=exchange, remote=remote))
            case Say(exchange=exchange, body=body):
                if exchange in self._exchanges:
                    self._outputs.append(BodyHeard(exchange=exchange, body=body))
            case HangUp(exchange=exchange):
                self._end_exchange(exchange)

    def _answered(self, answer: Opened | Called | Denied, online: _Online) -> None:
        request = answer.request
        asked = self._requests.pop(request, None)
        is_awaited = asked is not None
        match asked, answer:
            case (Call(), Opened()) | (Open(), Called()):
                fault = "an answer to another question than was asked"
                raise PeerError(fault)
            case _:
                pass
        match answer:
            case Opened():
                self._opened(answer, online, is_awaited=is_awaited)
            case Called():
                self._token = answer.seat.token
                self._exchanges.add(answer.exchange)
                seat = online.seat(answer.seat)
                if is_awaited:
                    taken = CallTaken(request=request, exchange=answer.exchange, seat=seat)
                    self._outputs.append(taken)
                else:
                    self.hang_up(answer.exchange)
            case Denied(reason=reason):
                if request == self._reopening:
                    self._reopening = self._hosting = None
                    self._outputs.append(SeatGone())
                elif is_awaited:
                    self._outputs.append(RequestDenied(request=request, reason=reason))

    def _opened(self, answer: Opened, online: _Online, *, is_awaited: bool) -> None:
        self._token = answer.seat.token
        self._hosting = HostSeat(nameplate=answer.nameplate, seat=online.seat(answer.seat))
        if answer.request == self._reopening:
            self._reopening = None
            self._outputs.append(HostSeatChanged(self._hosting))
            return
        self._is_code_open = True
        if is_awaited:
            self._outputs.append(SessionOpened(request=answer.request, seat=self._hosting))

    def _welcomed(self, welcome: Welcome) -> None:
        match self._phase:
            case _Greeting(relay_host=relay_host, trust=trust):
                self._phase = _Online(Address(relay_host, welcome.udp_port), trust)
            case _:
                fault = "a welcome to nobody who said hello"
                raise PeerError(fault)
        if welcome.continuity is Continuity.RESUMED:
            missed = self._line.resume(welcome.received)
            self._outputs.append(SignallingBack())
            self._outputs.extend(Send(data) for data in missed)
            return
        for exchange in sorted(self._exchanges):
            self._end_exchange(exchange)
        self._line = Line()
        self._outputs.append(SignallingBack())
        self._restore(welcome)
        for request in self._requests.values():
            self._push(request)

    def _restore(self, welcome: Welcome) -> None:
        """Ask again for what the rendezvous has forgotten."""
        is_forgotten = welcome.continuity is Continuity.NEW and self._token != b""
        if is_forgotten:
            self._token = b""
        if self._hosting is None:
            if is_forgotten:
                self._outputs.append(SeatGone())
            return
        nameplate = self._hosting.nameplate if self._is_code_open else None
        if is_forgotten or (self._is_code_open and welcome.nameplate != nameplate):
            self._reopening = self._next_request
            self._next_request += 1
            self._push(Open(request=self._reopening, nameplate=nameplate))
            if not self._is_code_open:
                self._push(CloseCode())

    def _ask(self, message: Open | Call) -> int:
        self._next_request += 1
        self._requests[message.request] = message
        self._push(message)
        return message.request

    def _end_exchange(self, exchange: int) -> None:
        if exchange in self._exchanges:
            self._exchanges.discard(exchange)
            self._outputs.append(ExchangeEnded(exchange))

    def _push(self, message: FromClient) -> None:
        data = encode_signal(message)
        self._line.push(data)
        if isinstance(self._phase, _Online):
            self._outputs.append(Send(data))

    def _transmit(self, message: FromClient) -> None:
        self._outputs.append(Send(encode_signal(message)))
