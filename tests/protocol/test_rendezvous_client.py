"""A client's machine against the server's: through cuts, restarts and lies."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.rendezvous import SECRET, Member, Net
from kafila.protocol.rendezvous import (
    SILENCE_S,
    Ack,
    Called,
    Continuity,
    FromServer,
    HangUp,
    Incoming,
    Pong,
    SeatGrant,
    Welcome,
    encode_signal,
)
from kafila.protocol.rendezvous_client import (
    MAX_RETRY_DELAY_S,
    BodyHeard,
    CallHeard,
    CallTaken,
    Disconnect,
    ExchangeEnded,
    Happening,
    RendezvousClientMachine,
    SessionOpened,
    retry_delay_s,
)
from kafila.protocol.rendezvous_session import (
    HostSeatChanged,
    SeatGone,
    SignallingBack,
    SignallingLost,
)
from kafila.protocol.trust import Authority

OTHER_SECRET = b"fedcba9876543210"


class Pair:
    """A host and a joiner who talk."""

    def __init__(self) -> None:
        self.net = Net()
        self.host, self.guest = self.net.member("198.51.100.1"), self.net.member("198.51.100.2")
        self.host.machine.open(None)
        self.host.perform()
        self.net.settle()
        opened = self.host.take()[-1]
        assert isinstance(opened, SessionOpened)
        self.host_seat = opened.seat
        self.guest.machine.call(self.host_seat.nameplate)
        self.guest.perform()
        self.net.settle()
        taken, heard = self.guest.take()[-1], self.host.take()[-1]
        assert isinstance(taken, CallTaken)
        assert isinstance(heard, CallHeard)
        self.guest_seat = taken.seat
        self.taken, self.heard = taken.exchange, heard.exchange


def bodies(happened: list[Happening]) -> list[bytes]:
    return [each.body for each in happened if isinstance(each, BodyHeard)]


@given(st.lists(st.sampled_from(["say", "answer", "up", "down", "cut host", "cut guest", "back"]), max_size=120))
def test_through_any_cuts_nothing_is_lost_or_doubled_or_out_of_order(steps: list[str]) -> None:
    pair = Pair()
    net, host, guest = pair.net, pair.host, pair.guest
    said, answered = list[bytes](), list[bytes]()
    for number, step in enumerate(steps):
        body = number.to_bytes(2, "big")
        match step:
            case "say":
                said.append(body)
                guest.machine.say(pair.taken, body)
                guest.perform()
            case "answer":
                answered.append(body)
                host.machine.say(pair.heard, body)
                host.perform()
            case "up" | "down":
                for member in (host, guest):
                    net.to_server(member) if step == "up" else net.to_client(member)
            case "cut host":
                host.cut()
            case "cut guest":
                guest.cut()
            case _:
                reconnect(host, guest)
    reconnect(host, guest)
    net.settle()
    assert bodies(host.take()) == said
    assert bodies(guest.take()) == answered


def reconnect(*members: Member) -> None:
    for member in members:
        if member.connection is None:
            member.connect()


def test_a_lost_connection_and_its_return_are_told() -> None:
    pair = Pair()
    pair.host.cut()
    assert pair.host.take() == [SignallingLost()]
    pair.host.connect()
    pair.net.settle()
    assert pair.host.take() == [SignallingBack()]
    assert pair.net.server.look_up(pair.host_seat.nameplate, "x", pair.net.now) is True


def test_a_connection_that_only_the_client_knows_dead_is_replaced() -> None:
    pair = Pair()
    number = pair.guest.connection
    assert number is not None
    # The server has not heard that the old connection is gone.
    pair.guest.connection = None
    pair.guest.machine.disconnected()
    pair.guest.perform()
    pair.guest.connect()
    pair.net.settle()
    assert number not in pair.net.members
    assert pair.guest.take() == [SignallingLost(), SignallingBack()]
    pair.guest.machine.say(pair.taken, b"again")
    pair.guest.perform()
    pair.net.settle()
    assert bodies(pair.host.take()) == [b"again"]


def test_an_answer_that_was_lost_with_its_connection_comes_with_the_next() -> None:
    net = Net()
    host = net.member()
    host.machine.open(None)
    host.perform()
    net.settle()
    opened = host.take()[-1]
    assert isinstance(opened, SessionOpened)
    request = host.machine.open(None)
    host.perform()
    net.to_server(host)
    host.cut()
    host.connect()
    net.settle()
    answers = [each for each in host.take() if isinstance(each, SessionOpened)]
    assert [each.request for each in answers] == [request]


def test_a_first_request_survives_a_cut_before_it_was_answered() -> None:
    net = Net()
    host, guest = net.member(), net.member()
    host.machine.open(300)
    host.perform()
    net.settle()
    guest.machine.call(300)
    guest.perform()
    guest.cut()
    guest.connect()
    net.settle()
    assert [type(each) for each in guest.take()] == [SignallingLost, SignallingBack, CallTaken]


def test_a_restarted_rendezvous_with_its_secret_gives_everything_back_but_exchanges() -> None:
    pair = Pair()
    pair.net.restart()
    # The joiner comes back before the host, to a session that has none for now.
    for member in (pair.guest, pair.host):
        member.take()
        member.connect()
        pair.net.settle()
    assert pair.guest.take() == [ExchangeEnded(pair.taken), SignallingBack()]
    assert pair.host.take() == [ExchangeEnded(pair.heard), SignallingBack()]
    seats = pair.net.seats
    assert seats[pair.host_seat.seat.slot].key == pair.host_seat.seat.key
    assert seats[pair.guest_seat.slot].key == pair.guest_seat.key
    assert len({each.session for each in seats.values()}) == 1
    pair.guest.machine.call(pair.host_seat.nameplate)
    pair.guest.perform()
    pair.net.settle()
    taken = pair.guest.take()[-1]
    assert isinstance(taken, CallTaken)
    assert taken.seat == pair.guest_seat


def test_a_joiner_that_comes_back_to_a_session_without_host_waits_in_vain() -> None:
    pair = Pair()
    pair.net.restart()
    pair.guest.connect()
    pair.net.wait(pair.net.limits.grace_s + 5)
    assert pair.net.seats == {}
    assert pair.net.server.counts().sessions == 0


def test_a_rendezvous_that_has_forgotten_everything_is_told_again() -> None:
    pair = Pair()
    pair.net.restart(OTHER_SECRET)
    for member in (pair.guest, pair.host):
        member.take()
        member.connect()
        pair.net.settle()
    assert pair.guest.take() == [ExchangeEnded(pair.taken), SignallingBack(), SeatGone()]
    back, changed = pair.host.take()[-2:]
    assert back == SignallingBack()
    assert isinstance(changed, HostSeatChanged)
    assert changed.seat.nameplate == pair.host_seat.nameplate
    assert changed.seat.seat.key != pair.host_seat.seat.key
    assert pair.net.server.look_up(pair.host_seat.nameplate, "x", pair.net.now) is True


def test_a_closed_code_stays_closed_through_restarts() -> None:
    for secret in (SECRET, OTHER_SECRET):
        pair = Pair()
        pair.host.machine.close_code()
        pair.host.perform()
        pair.net.settle()
        pair.net.restart(secret)
        pair.host.connect()
        pair.net.settle()
        assert pair.net.server.counts().sessions == 1
        here = [number for number in range(10, 100) if pair.net.server.look_up(number, str(number), pair.net.now)]
        assert here == []


def test_a_number_that_somebody_else_took_meanwhile_is_replaced() -> None:
    pair = Pair()
    pair.net.restart()
    squatter = pair.net.member()
    squatter.machine.open(pair.host_seat.nameplate)
    squatter.perform()
    pair.net.settle()
    pair.host.take()
    pair.host.connect()
    pair.net.settle()
    changed = pair.host.take()[-1]
    assert isinstance(changed, HostSeatChanged)
    assert changed.seat.seat == pair.host_seat.seat
    assert changed.seat.nameplate != pair.host_seat.nameplate


def test_pings_keep_a_quiet_line_and_acknowledge() -> None:
    pair = Pair()
    pair.net.wait(5 * SILENCE_S)
    assert pair.host.take() == pair.guest.take() == []
    assert pair.host.connection is not None


def test_a_silent_rendezvous_is_left() -> None:
    machine = RendezvousClientMachine()
    machine.connected("127.0.0.1", Authority("rendezvous.example.org"), 0.0)
    machine.drain()
    machine.tick(SILENCE_S - 1)
    assert machine.drain() == []
    machine.tick(SILENCE_S)
    assert machine.drain() == [Disconnect("the rendezvous is silent")]


def test_a_call_that_nobody_waits_for_any_more_is_hung_up() -> None:
    pair = Pair()
    request = pair.guest.machine.call(pair.host_seat.nameplate)
    pair.guest.machine.abandon(request)
    pair.guest.perform()
    pair.net.settle()
    call, end = pair.host.take()
    assert isinstance(call, CallHeard)
    assert end == ExchangeEnded(call.exchange)


def test_there_is_room_until_much_is_unacknowledged() -> None:
    pair = Pair()
    pair.guest.cut()
    said = 0
    while pair.guest.machine.has_room:
        pair.guest.machine.say(pair.taken, b"x" * 1000)
        said += 1
    assert 10 < said < 1000
    pair.guest.connect()
    pair.net.settle()
    assert pair.guest.machine.has_room


SEAT = SeatGrant(slot=1, key=b"k" * 32, token=b"t")
WELCOME = Welcome(continuity=Continuity.NEW, received=0, udp_port=1)


@pytest.mark.parametrize(
    "said",
    [
        [Incoming(exchange=1, remote="x")],
        [WELCOME, WELCOME],
        [WELCOME, Pong(received=9)],
        [WELCOME, Ack(received=9)],
        [Welcome(continuity=Continuity.RESUMED, received=5, udp_port=1)],
        [b"\x00"],
    ],
)
def test_a_rendezvous_that_breaks_the_protocol_is_left(said: list[FromServer | bytes]) -> None:
    machine = RendezvousClientMachine()
    machine.connected("127.0.0.1", Authority("rendezvous.example.org"), 0.0)
    for each in said:
        machine.receive(each if isinstance(each, bytes) else encode_signal(each), 0.0)
    assert any(isinstance(output, Disconnect) for output in machine.drain())


def test_an_answer_to_another_question_is_a_fault() -> None:
    machine = RendezvousClientMachine()
    machine.connected("127.0.0.1", Authority("rendezvous.example.org"), 0.0)
    machine.receive(encode_signal(WELCOME), 0.0)
    request = machine.open(None)
    machine.receive(encode_signal(Called(request=request, exchange=1, seat=SEAT)), 0.0)
    assert Disconnect("an answer to another question than was asked") in machine.drain()


def test_what_belongs_to_no_exchange_of_ours_is_let_pass() -> None:
    machine = RendezvousClientMachine()
    machine.connected("127.0.0.1", Authority("rendezvous.example.org"), 0.0)
    machine.receive(encode_signal(WELCOME), 0.0)
    machine.drain()
    machine.receive(encode_signal(HangUp(exchange=5)), 0.0)
    machine.say(5, b"nobody there")
    machine.hang_up(5)
    assert machine.drain() == []


@given(st.lists(st.binary(max_size=60), max_size=10), st.booleans())
def test_no_bytes_from_a_rendezvous_raise(messages: list[bytes], is_welcome: bool) -> None:  # noqa: FBT001
    machine = RendezvousClientMachine()
    machine.connected("127.0.0.1", Authority("rendezvous.example.org"), 0.0)
    if is_welcome:
        machine.receive(encode_signal(WELCOME), 0.0)
    for data in messages:
        machine.receive(data, 0.0)
        machine.receive(msgspec.msgpack.encode({"type": "Say", "exchange": 1, "body": data}), 0.0)
    assert machine.drain()


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_retries_are_spread_and_never_far_apart(attempt: int, chance: float) -> None:
    assert 0.1 < retry_delay_s(attempt, chance) <= MAX_RETRY_DELAY_S
    assert retry_delay_s(0, chance) <= 0.25
