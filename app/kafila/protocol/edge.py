"""Which path an edge between two members uses: the relay at once, a direct one once it answers.

    Resting ──begin──▶ Punching ──nobody answered──▶ Relayed, or Lost where there is no relay
                        │    ▲                        │
                      pong   └──── new candidates ────┤
                        ▼                             │
                      Direct ◀────────── pong ────────┘
                        │  ▲
                   late │  │ pong
                        ▼  │
                     Doubtful ──silent──▶ Punching

Datagrams go over the relay from the first moment. Meanwhile every candidate address is asked, and
the first that answers is used: all are asked at once, so the first to answer is the nearest. A
direct path that answers late is in doubt, and datagrams take both ways, since QUIC drops the
duplicates; one that stays silent is given up, and the punching begins anew.

Whoever begins to look, or finds its path in doubt, tells the other over the relay where it is by
now, and begins itself half the relay's round trip later, when the other reads it. So both ask at
the same time and at the right doors, also after a router has forgotten them: a question that comes
before its router has sent one out spoils the way with some routers.

Both members run this machine, each for what it sends. A path counts once our own question on it
was answered, which proves both directions.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

import msgspec

from kafila.domain.plan import PathKind
from kafila.protocol.edge_states import (
    Answer,
    Ask,
    Direct,
    Doubtful,
    EdgeState,
    Effect,
    Lost,
    Moved,
    OverAddress,
    OverRelay,
    Punching,
    Relayed,
    Resting,
    Route,
    TellWhere,
)
from kafila.protocol.links import Address

PUNCH_FIRST_GAP_S = 0.025
PUNCH_GAP_GROWTH = 1.6
PUNCH_LONGEST_GAP_S = 0.4
PUNCH_FOR_S = 4.0
PUNCH_ALONE_AFTER_S = 0.6
"""How long the relay may leave a first question unanswered before the punching begins without the peer."""
PROBE_EVERY_S = 1.0
PROBE_IN_DOUBT_EVERY_S = 0.25
PROBE_AGAIN_EVERY_S = 2.0
PROBE_SPARE_RELAY_EVERY_S = 5.0
DOUBT_AFTER_S = 0.3
"""How long, beyond the round trip, a question may go unanswered before a direct path is in doubt."""
DEAD_AFTER_S = 1.5
"""…and before it is given up. Both count from the question: whoever was stopped has not asked."""
PING_EXPIRES_S = 10.0
"""An older answer tells nothing of the path as it is now."""

MAX_CANDIDATES = 16
MAX_LEARNED = 8
MAX_OPEN_PINGS = 512
MAX_REMEMBERED_PINGS = 256


class _OpenPing(msgspec.Struct, frozen=True, kw_only=True):
    route: Route
    asked_at: float


class Edge:
    """The path machine of one edge. Take the `effects()` after every call, and `tick` in time."""

    def __init__(self, *, relay: bool, direct: bool, draw: Callable[[], int]) -> None:
        """`draw` gives a fresh unpredictable 64-bit number at every call."""
        self.state: EdgeState = Resting()
        self._has_relay = relay
        self._may_go_direct = direct
        self._draw = draw
        self._told: tuple[Address, ...] = ()
        self._heard_where: tuple[Address, ...] = ()
        self._learned: deque[Address] = deque(maxlen=MAX_LEARNED)
        self._answering: deque[Address] = deque(maxlen=MAX_LEARNED)
        self._open_pings: OrderedDict[int, _OpenPing] = OrderedDict()
        self._heard_pings: deque[int] = deque(maxlen=MAX_REMEMBERED_PINGS)
        self._relay_rtt_s: float | None = None
        self._is_agreed = False
        """Whether the peer was told where this member is, which takes that it answers over the relay."""
        self._next_round_at = 0.0
        self._next_relay_ping_at = 0.0
        self._last_told: tuple[Moved, float] | None = None
        self._effects: list[Effect] = []

    def effects(self) -> list[Effect]:
        """What is to be done since the last call, in order."""
        effects, self._effects = self._effects, []
        return effects

    def routes(self) -> tuple[Route, ...]:
        """The ways that every datagram takes now; none where none is known."""
        relay = (OverRelay(),) if self._has_relay else ()
        match self.state:
            case Direct(address=address):
                return (OverAddress(address),)
            case Doubtful(address=address):
                return (OverAddress(address), *relay)
            case _:
                return relay

    @property
    def path(self) -> PathKind | None:
        """How datagrams travel now."""
        if isinstance(self.state, Direct | Doubtful):
            return PathKind.DIRECT
        return PathKind.RELAYED if self._has_relay else None

    @property
    def rtt_s(self) -> float | None:
        """The measured round trip of the path in use."""
        match self.state:
            case Direct(rtt_s=rtt_s) | Doubtful(rtt_s=rtt_s):
                return rtt_s
            case _:
                return self._relay_rtt_s if self._has_relay else None

    def has_answered(self, address: Address) -> bool:
        """Whether a probe of ours was answered from the address lately: the peer itself is there."""
        return address in self._answering

    # What happens to an edge

    def begin(self, now: float) -> None:
        """The edge is wanted: use the relay, look for a direct path."""
        if isinstance(self.state, Resting):
            agrees = self._has_relay and self._may_go_direct
            self._punch(now, in_s=PUNCH_ALONE_AFTER_S if agrees else 0.0)

    def tell_where(self) -> None:
        """Have the peer look where we are now; so it does when our addresses have changed."""
        if self._has_relay and self._may_go_direct and not isinstance(self.state, Resting):
            self._effects.append(TellWhere(transaction=self._draw()))

    def punch(self, now: float) -> None:
        """Ask all candidates in quick succession, from this moment if it is not to begin soon."""
        if not isinstance(self.state, Direct | Doubtful) and not self._is_about_to_punch(now):
            self._punch(now)

    def set_candidates(self, addresses: Iterable[Address], now: float) -> None:
        """What the peer says of where it may be reached."""
        told = tuple(dict.fromkeys(addresses))[:MAX_CANDIDATES]
        if told != self._told:
            self._told = told
            if not isinstance(self.state, Resting):
                self.punch(now)

    def heard_where(self, addresses: Iterable[Address], transaction: int, now: float) -> None:
        """The peer says where it is now, and knocks at our door from this moment on."""
        if transaction in self._heard_pings:
            return
        self._heard_pings.append(transaction)
        self._heard_where = tuple(dict.fromkeys(addresses))[:MAX_CANDIDATES]
        match self.state:
            case Direct() | Doubtful():
                # It may have moved away from the address in use: see at once.
                self._next_round_at = now
            case _:
                self._punch(now)

    def set_relay(self, *, available: bool, now: float) -> None:
        """Whether both sides have a seat at the relay."""
        if available == self._has_relay:
            return
        self._has_relay = available
        self._relay_rtt_s = None
        self._next_relay_ping_at = now
        match self.state:
            case Lost() if available:
                self.state = Relayed()
            case Relayed() if not available:
                self.state = Lost()
            case _:
                pass
        if not isinstance(self.state, Resting):
            self._tell(now)

    def heard_ping(self, route: Route, transaction: int, now: float) -> None:
        """The peer asked, by this way: answer, and learn where it can be asked back."""
        if transaction in self._heard_pings or self._is_forbidden(route):
            return
        self._heard_pings.append(transaction)
        self._effects.append(Answer(route=route, transaction=transaction))
        self.begin(now)
        match route:
            case OverAddress(address=address) if not self._uses(address):
                if self._is_about_to_punch(now):
                    self._punch(now)
                if address not in (*self._heard_where, *self._told, *self._learned):
                    self._learned.append(address)
                self._ask(route, now)
            case _:
                pass

    def heard_pong(self, route: Route, transaction: int, now: float) -> None:
        """The peer answered. Anything but a recent question's first answer is passed over."""
        ping = self._open_pings.get(transaction)
        if ping is None or ping.route != route or self._is_forbidden(route):
            return
        del self._open_pings[transaction]
        rtt_s = now - ping.asked_at
        if rtt_s > PING_EXPIRES_S:
            return
        match route:
            case OverRelay():
                self._relay_rtt_s = _smooth(self._relay_rtt_s, rtt_s)
                self._agree(now)
            case OverAddress(address=address):
                self._heard_from(address, rtt_s, now)
        self._tell(now)

    def tick(self, now: float) -> None:
        """Do what is due. Read what has arrived first: silence is judged here."""
        self._judge_silence(now)
        if isinstance(self.state, Resting):
            return
        if now >= self._next_round_at:
            self._ask_round(now)
        if self._has_relay and now >= self._next_relay_ping_at:
            spare = isinstance(self.state, Direct)
            gap_s = PROBE_SPARE_RELAY_EVERY_S if spare else PROBE_EVERY_S
            self._next_relay_ping_at = now + gap_s
            self._ask(OverRelay(), now)

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        due = [self._next_round_at]
        if self._has_relay:
            due.append(self._next_relay_ping_at)
        match self.state:
            case Resting():
                return None
            case Punching(since=since):
                due.append(since + PUNCH_FOR_S)
            case Direct(asked_at=float(asked_at), rtt_s=rtt_s):
                due.append(asked_at + DOUBT_AFTER_S + rtt_s)
            case Doubtful(asked_at=asked_at, rtt_s=rtt_s):
                due.append(asked_at + DEAD_AFTER_S + rtt_s)
            case Direct() | Relayed() | Lost():
                pass
        return min(due)

    # How the state moves

    def _punch(self, now: float, *, in_s: float = 0.0) -> None:
        self.state = Punching(since=now + in_s, gap_s=PUNCH_FIRST_GAP_S)
        self._next_round_at, self._next_relay_ping_at = now + in_s, now
        self._tell(now)

    def _is_about_to_punch(self, now: float) -> bool:
        return isinstance(self.state, Punching) and now < self.state.since

    def _agree(self, now: float) -> None:
        """The peer is there: tell it where this member is, and begin when it reads that."""
        if self._is_agreed:
            return
        self._is_agreed = True
        self.tell_where()
        if self._is_about_to_punch(now):
            self._punch(now, in_s=self._half_relay_s())

    def _half_relay_s(self) -> float:
        return (self._relay_rtt_s or 0.0) / 2

    def _judge_silence(self, now: float) -> None:
        match self.state:
            case Punching(since=since) if now >= since + PUNCH_FOR_S:
                self.state = Relayed() if self._has_relay else Lost()
            case Direct(address=address, asked_at=float(asked_at), rtt_s=rtt_s):
                if now >= asked_at + DOUBT_AFTER_S + rtt_s:
                    self.state = Doubtful(address=address, asked_at=asked_at, rtt_s=rtt_s)
                    self._next_round_at = now
                    self.tell_where()
                    self._judge_silence(now)
            case Doubtful(asked_at=asked_at, rtt_s=rtt_s):
                if now >= asked_at + DEAD_AFTER_S + rtt_s:
                    self._punch(now, in_s=self._half_relay_s())
                    self.tell_where()
            case _:
                pass

    def _heard_from(self, address: Address, rtt_s: float, now: float) -> None:
        if address in self._answering:
            self._answering.remove(address)
        self._answering.append(address)
        match self.state:
            case Direct() | Doubtful() as held if held.address == address:
                rtt_s = _smooth(held.rtt_s, rtt_s)
            case Direct():
                return
            case _:
                pass
        self.state = Direct(address=address, rtt_s=rtt_s, asked_at=None)
        self._next_round_at = min(now + PROBE_EVERY_S, max(self._next_round_at, now))

    # What is sent

    def _ask_round(self, now: float) -> None:
        everyone = tuple(dict.fromkeys((*self._heard_where, *self._told, *self._learned)))
        match self.state:
            case Direct(address=address):
                asked, gap_s = (address,), PROBE_EVERY_S
            case Doubtful(address=address):
                asked, gap_s = dict.fromkeys((address, *everyone)), PROBE_IN_DOUBT_EVERY_S
            case Punching(since=since, gap_s=gap_s):
                asked = everyone
                longer = min(gap_s * PUNCH_GAP_GROWTH, PUNCH_LONGEST_GAP_S)
                self.state = Punching(since=since, gap_s=longer)
            case _:
                asked, gap_s = everyone, PROBE_AGAIN_EVERY_S
        self._next_round_at = now + gap_s
        for address in asked:
            self._ask(OverAddress(address), now)

    def _ask(self, route: Route, now: float) -> None:
        if self._is_forbidden(route):
            return
        transaction = self._draw()
        self._open_pings[transaction] = _OpenPing(route=route, asked_at=now)
        if len(self._open_pings) > MAX_OPEN_PINGS:
            self._open_pings.popitem(last=False)
        self._effects.append(Ask(route=route, transaction=transaction))
        match self.state, route:
            case Direct(asked_at=None) as direct, OverAddress(address=asked) if asked == direct.address:
                self.state = msgspec.structs.replace(direct, asked_at=now)
            case _:
                pass

    def _tell(self, now: float) -> None:
        """Tell of the path in use: what is new at once, what was measured again once a second."""
        path = self.path
        if path is None:
            return
        if self._last_told is not None:
            told, told_at = self._last_told
            news = path != told.path or (told.rtt_s is None and self.rtt_s is not None)
            if not news and now < told_at + PROBE_EVERY_S * 0.9:
                return
        moved = Moved(path=path, rtt_s=self.rtt_s)
        self._last_told = (moved, now)
        self._effects.append(moved)

    def _is_forbidden(self, route: Route) -> bool:
        return isinstance(route, OverAddress) and not self._may_go_direct

    def _uses(self, address: Address) -> bool:
        return isinstance(self.state, Direct | Doubtful) and self.state.address == address


def _smooth(held: float | None, sample: float) -> float:
    """Down at once, up slowly: a busy computer delays an answer, and nothing makes it early."""
    if held is None or sample <= held:
        return sample
    return held + (sample - held) / 4
