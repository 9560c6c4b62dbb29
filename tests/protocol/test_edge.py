"""The path machine, as dialogues: what happens, and what it does about it. No socket, no clock."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.plan import PathKind
from kafila.protocol.edge import (
    DEAD_AFTER_S,
    DOUBT_AFTER_S,
    MAX_CANDIDATES,
    PING_EXPIRES_S,
    PROBE_EVERY_S,
    PUNCH_ALONE_AFTER_S,
    PUNCH_FOR_S,
    Edge,
)
from kafila.protocol.edge_states import (
    Answer,
    Ask,
    Direct,
    Doubtful,
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

PEERS = 1_000_000
"""What is added to the peer's transactions, which would look like ours."""
LAN = Address("192.168.1.7", 4700)
PUBLIC = Address("203.0.113.9", 4700)
RELAY = OverRelay()
TO_LAN, TO_PUBLIC = OverAddress(LAN), OverAddress(PUBLIC)


class Clocked:
    """An edge with the time it has been told last."""

    def __init__(self, *, relay: bool = True, direct: bool = True) -> None:
        numbers = count(1)
        self.edge = Edge(relay=relay, direct=direct, draw=lambda: next(numbers))
        self.now = 100.0
        self.asked: dict[Route, int] = {}
        self.moves: list[Moved] = []
        self.answers: list[Answer] = []
        self.told: list[int] = []

    def take(self) -> list[Route]:
        """Note the effects; returns where pings went."""
        asks: list[Route] = []
        for effect in self.edge.effects():
            match effect:
                case Ask():
                    self.asked[effect.route] = effect.transaction
                    asks.append(effect.route)
                case Answer():
                    self.answers.append(effect)
                case Moved():
                    self.moves.append(effect)
                case TellWhere():
                    self.told.append(effect.transaction)
        return asks

    def wait(self, seconds: float, answering: tuple[Route, ...] = (), rtt_s: float = 0.0) -> None:
        """Let time pass, ticking when due; pings over `answering` are answered after `rtt_s`."""
        end = self.now + seconds
        while (due := self.edge.next_tick()) is not None and due <= end:
            self.now = max(self.now, due)
            self.edge.tick(self.now)
            for route in self.take():
                if route in answering:
                    self.now += rtt_s
                    self.pong(route)
        self.now = max(end, self.now)

    def pong(self, route: Route, transaction: int | None = None) -> None:
        asked = self.asked[route] if transaction is None else transaction
        self.edge.heard_pong(route, asked, self.now)
        self.take()

    def began(self, *candidates: Address) -> "Clocked":
        """It has begun to punch; over the relay nobody has answered yet."""
        self.edge.set_candidates(candidates, self.now)
        self.edge.begin(self.now)
        self.edge.tick(self.now)
        self.take()
        self.now += PUNCH_ALONE_AFTER_S
        return self


def test_it_starts_on_the_relay_and_asks_everyone_at_once() -> None:
    it = Clocked().began(LAN, PUBLIC)
    assert it.moves == [Moved(path=PathKind.RELAYED, rtt_s=None)]
    assert it.edge.routes() == (RELAY,)
    it.edge.tick(it.now)
    assert it.take() == [TO_LAN, TO_PUBLIC]


class TestPunchingTogether:
    """Both begin at the same moment, as far as half a round trip tells."""

    def both_asked_at(self, *, learns_later_s: float, one_way_s: float) -> list[float]:
        """When each of two edges first asks an address, who learn of each other at different times."""
        edges = [Clocked(), Clocked()]
        asked_at: dict[int, float] = {}
        under_way: list[tuple[float, int, Effect]] = []
        for edge in edges:
            edge.edge.set_candidates([PUBLIC], edge.now)
        for step in range(2000):
            now = 100.0 + step / 1000
            for side, edge in enumerate(edges):
                if now >= 100.0 + side * learns_later_s:
                    edge.edge.begin(now)
                arrived = [effect for at, to, effect in under_way if to == side and at <= now]
                under_way = [each for each in under_way if each[1] != side or each[0] > now]
                for effect in arrived if not isinstance(edge.edge.state, Resting) else ():
                    hear(edge.edge, effect, now)
                edge.edge.tick(now)
                for effect in edge.edge.effects():
                    if isinstance(effect, Ask) and effect.route == TO_PUBLIC:
                        asked_at.setdefault(side, now - 100.0)
                    under_way.append((now + one_way_s, 1 - side, effect))
        return [asked_at[side] for side in range(2)]

    @pytest.mark.parametrize("learns_later_s", [0.0, 0.03, 0.3])
    def test_whoever_learns_of_it_first(self, learns_later_s: float) -> None:
        one, other = self.both_asked_at(learns_later_s=learns_later_s, one_way_s=0.055)
        assert abs(one - other) < 0.003
        assert max(one, other) < learns_later_s + 4 * 0.055

    def test_at_once_where_the_peer_knocks_already(self) -> None:
        it = Clocked()
        it.edge.set_candidates([LAN], it.now)
        it.edge.begin(it.now)
        it.edge.heard_ping(TO_PUBLIC, 5, it.now)
        it.edge.tick(it.now)
        assert TO_LAN in it.take()

    def test_told_candidates_do_not_hurry_it(self) -> None:
        it = Clocked()
        it.edge.begin(it.now)
        it.edge.set_candidates([LAN], it.now)
        it.edge.tick(it.now)
        assert it.take() == [RELAY]


def hear(edge: Edge, effect: Effect, now: float) -> None:
    """What the peer sent over the relay arrives."""
    match effect:
        case Ask(route=OverRelay(), transaction=transaction):
            edge.heard_ping(RELAY, transaction + PEERS, now)
        case Answer(route=OverRelay(), transaction=transaction):
            edge.heard_pong(RELAY, transaction - PEERS, now)
        case TellWhere(transaction=transaction):
            edge.heard_where([PUBLIC], transaction + PEERS, now)
        case _:
            pass


def test_it_moves_to_the_first_address_that_answers_and_stays() -> None:
    it = Clocked().began(LAN, PUBLIC)
    it.edge.tick(it.now)
    it.take()
    it.now += 0.004
    it.pong(TO_LAN)
    it.now += 0.1
    it.pong(TO_PUBLIC)
    assert it.edge.routes() == (TO_LAN,)
    assert isinstance(it.edge.state, Direct)
    assert it.moves[-1].path is PathKind.DIRECT
    assert it.moves[-1].rtt_s is not None
    assert abs(it.moves[-1].rtt_s - 0.004) < 1e-6
    assert it.edge.has_answered(PUBLIC)


def test_a_silent_direct_path_is_doubted_then_given_up() -> None:
    it = Clocked().began(LAN)
    it.wait(0.1, answering=(TO_LAN, RELAY))
    assert it.edge.routes() == (TO_LAN,)
    it.wait(PROBE_EVERY_S + DOUBT_AFTER_S, answering=(RELAY,))
    assert isinstance(it.edge.state, Doubtful)
    assert it.edge.routes() == (TO_LAN, RELAY)
    assert it.edge.path is PathKind.DIRECT
    it.wait(DEAD_AFTER_S - DOUBT_AFTER_S, answering=(RELAY,))
    assert it.edge.routes() == (RELAY,)
    assert it.moves[-1].path is PathKind.RELAYED


def test_a_late_answer_ends_the_doubt_without_a_word() -> None:
    it = Clocked().began(LAN)
    it.wait(0.1, answering=(TO_LAN,))
    it.wait(PROBE_EVERY_S + DOUBT_AFTER_S)
    moves = [move.path for move in it.moves]
    it.wait(0.3, answering=(TO_LAN,))
    assert it.edge.routes() == (TO_LAN,)
    assert [move.path for move in it.moves][: len(moves)] == moves
    assert {move.path for move in it.moves[len(moves) :]} <= {PathKind.DIRECT}


def test_after_falling_back_it_finds_the_direct_path_again() -> None:
    it = Clocked().began(LAN)
    it.wait(0.1, answering=(TO_LAN,))
    it.wait(20.0)
    assert isinstance(it.edge.state, Relayed)
    it.wait(2.5, answering=(TO_LAN,))
    assert it.edge.routes() == (TO_LAN,)
    changes = [move.path for move in it.moves]
    assert changes[-1] is PathKind.DIRECT
    assert PathKind.RELAYED in changes


def test_nobody_answers_so_it_stays_relayed_and_goes_on_asking() -> None:
    it = Clocked().began(LAN)
    it.wait(PUNCH_FOR_S + 0.1, answering=(RELAY,), rtt_s=0.02)
    assert isinstance(it.edge.state, Relayed)
    assert it.edge.rtt_s is not None
    assert abs(it.edge.rtt_s - 0.02) < 1e-6
    before = it.asked[TO_LAN]
    it.wait(3.0)
    assert it.asked[TO_LAN] > before


def test_without_a_relay_it_is_lost_until_someone_answers() -> None:
    it = Clocked(relay=False).began(LAN)
    assert it.edge.routes() == ()
    assert it.moves == []
    it.wait(PUNCH_FOR_S + 0.1)
    assert isinstance(it.edge.state, Lost)
    it.wait(3.0, answering=(TO_LAN,))
    assert it.edge.routes() == (TO_LAN,)


def test_a_relay_that_comes_later_is_used_and_one_that_goes_is_not() -> None:
    it = Clocked(relay=False).began()
    it.edge.set_relay(available=True, now=it.now)
    it.take()
    assert it.edge.routes() == (RELAY,)
    assert it.moves[-1].path is PathKind.RELAYED
    it.edge.set_relay(available=False, now=it.now)
    assert it.edge.routes() == ()


def test_a_peer_that_asks_is_answered_and_asked_back() -> None:
    it = Clocked()
    assert isinstance(it.edge.state, Resting)
    it.edge.heard_ping(TO_PUBLIC, 77, it.now)
    assert it.take() == [TO_PUBLIC]
    assert it.answers == [Answer(route=TO_PUBLIC, transaction=77)]
    assert not it.edge.has_answered(PUBLIC)
    it.pong(TO_PUBLIC)
    assert it.edge.routes() == (TO_PUBLIC,)
    assert it.edge.has_answered(PUBLIC)


def test_a_repeated_ping_earns_nothing() -> None:
    it = Clocked().began()
    it.edge.heard_ping(TO_LAN, 77, it.now)
    it.take()
    it.edge.heard_ping(TO_PUBLIC, 77, it.now)
    assert it.take() == []
    assert len(it.answers) == 1


def test_only_the_first_answer_from_the_asked_address_counts() -> None:
    it = Clocked().began(LAN)
    it.edge.tick(it.now)
    it.take()
    it.pong(TO_PUBLIC, it.asked[TO_LAN])
    it.pong(TO_LAN, 999_999)
    assert isinstance(it.edge.state, Punching)
    it.pong(TO_LAN)
    assert isinstance(it.edge.state, Direct)
    it.wait(PROBE_EVERY_S)
    it.pong(TO_LAN, 1)
    assert it.edge.state.asked_at is not None


def test_a_very_late_answer_tells_nothing() -> None:
    it = Clocked().began(LAN)
    it.edge.tick(it.now)
    it.take()
    it.now += PING_EXPIRES_S + 0.1
    it.pong(TO_LAN)
    assert isinstance(it.edge.state, Punching)


def test_whoever_was_stopped_does_not_take_its_own_silence_for_the_peers() -> None:
    it = Clocked().began(LAN)
    it.wait(0.1, answering=(TO_LAN, RELAY))
    it.now += 60.0
    it.edge.tick(it.now)
    it.take()
    assert it.edge.routes() == (TO_LAN,)
    it.wait(0.01, answering=(TO_LAN, RELAY))
    it.wait(5.0, answering=(TO_LAN, RELAY))
    assert [move.path for move in it.moves if move.path is PathKind.RELAYED] == [PathKind.RELAYED]


def test_in_doubt_a_new_address_of_the_peer_takes_over() -> None:
    it = Clocked().began(LAN)
    it.wait(0.1, answering=(TO_LAN,))
    it.wait(PROBE_EVERY_S + DOUBT_AFTER_S)
    it.edge.heard_ping(TO_PUBLIC, 5, it.now)
    assert it.take() == [TO_PUBLIC]
    it.pong(TO_PUBLIC)
    assert it.edge.routes() == (TO_PUBLIC,)


def test_where_direct_is_forbidden_no_address_is_asked_answered_or_used() -> None:
    it = Clocked(direct=False)
    it.edge.set_candidates([LAN], it.now)
    it.edge.begin(it.now)
    it.edge.tick(it.now)
    assert it.take() == [RELAY]
    it.edge.heard_ping(TO_LAN, 5, it.now)
    assert it.take() == []
    assert it.answers == []
    it.wait(10.0, answering=(RELAY, TO_LAN))
    assert it.edge.routes() == (RELAY,)


def test_new_candidates_start_the_punching_anew() -> None:
    it = Clocked().began(LAN)
    it.wait(PUNCH_FOR_S + 0.1)
    assert isinstance(it.edge.state, Relayed)
    it.edge.set_candidates((LAN, PUBLIC), it.now)
    assert isinstance(it.edge.state, Punching)
    it.wait(0.05, answering=(TO_PUBLIC,))
    assert it.edge.routes() == (TO_PUBLIC,)


def test_measurements_are_told_about_once_a_second() -> None:
    it = Clocked().began(LAN)
    it.wait(10.0, answering=(TO_LAN, RELAY), rtt_s=0.001)
    direct = [move for move in it.moves if move.path is PathKind.DIRECT]
    assert 8 <= len(direct) <= 13


def test_candidates_are_bounded() -> None:
    it = Clocked().began(*(Address("192.0.2.1", port) for port in range(1, 1000)))
    it.edge.tick(it.now)
    assert len(it.take()) == MAX_CANDIDATES


ROUTES = st.sampled_from([RELAY, TO_LAN, TO_PUBLIC])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ping"), ROUTES, st.integers(0, 5)),
        st.tuples(st.just("pong"), ROUTES, st.integers(0, 40)),
        st.tuples(st.just("wait"), st.just(RELAY), st.integers(0, 60)),
        st.tuples(st.just("relay"), st.just(RELAY), st.integers(0, 1)),
    ),
    max_size=60,
)


@given(steps=STEPS, relay=st.booleans(), direct=st.booleans())
def test_whatever_happens_a_direct_route_has_answered_a_question(
    *, steps: list[tuple[str, Route, int]], relay: bool, direct: bool
) -> None:
    it = Clocked(relay=relay, direct=direct).began(LAN)
    for step, route, number in steps:
        match step:
            case "ping":
                it.edge.heard_ping(route, 10_000 + number, it.now)
            case "pong":
                it.edge.heard_pong(route, number, it.now)
            case "relay":
                it.edge.set_relay(available=bool(number), now=it.now)
            case _:
                it.wait(number / 10)
        it.take()
        due = it.edge.next_tick()
        assert due is not None
        for used in it.edge.routes():
            if isinstance(used, OverAddress):
                assert direct
                assert it.edge.has_answered(used.address)


def test_it_tells_where_it_is_once_the_peer_is_there_and_when_its_path_is_late() -> None:
    it = Clocked().began(PUBLIC)
    assert it.told == []
    it.pong(RELAY)
    assert len(it.told) == 1
    it.edge.tick(it.now)
    it.take()
    it.pong(TO_PUBLIC)
    it.wait(30, answering=(TO_PUBLIC, RELAY))
    assert len(it.told) == 1
    it.wait(PROBE_EVERY_S + DOUBT_AFTER_S + 0.1, answering=(RELAY,))
    assert isinstance(it.edge.state, Doubtful)
    assert len(it.told) == 2
    it.wait(DEAD_AFTER_S, answering=(RELAY,))
    assert isinstance(it.edge.state, Punching)
    assert len(it.told) == 3
    it.wait(PUNCH_FOR_S + 60, answering=(RELAY,))
    assert len(it.told) == 3


def test_it_asks_at_once_where_the_peer_says_it_is_and_does_not_tell_it_back() -> None:
    it = Clocked().began(LAN)
    it.wait(PUNCH_FOR_S + 1, answering=(RELAY,))
    told = len(it.told)
    assert isinstance(it.edge.state, Relayed)
    it.edge.heard_where([PUBLIC], 77, it.now)
    it.edge.tick(it.now)
    assert TO_PUBLIC in it.take()
    it.pong(TO_PUBLIC)
    assert it.edge.routes() == (TO_PUBLIC,)
    assert len(it.told) == told


def test_where_counts_once() -> None:
    it = Clocked().began(LAN)
    it.edge.heard_where([PUBLIC], 77, it.now)
    it.edge.heard_where([LAN], 78, it.now)
    it.edge.heard_where([PUBLIC], 77, it.now)
    it.edge.tick(it.now)
    assert TO_PUBLIC not in it.take()


def test_without_leave_to_go_direct_nobody_is_told_anything() -> None:
    it = Clocked(direct=False).began(LAN)
    it.wait(PUNCH_FOR_S + 10, answering=(RELAY,))
    assert it.told == []
