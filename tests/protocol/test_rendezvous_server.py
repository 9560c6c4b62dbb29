"""The rendezvous's machine: who is let in, who is connected with whom, who is forgotten when."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.rendezvous import SECRET, Draw, Member, Net
from kafila.protocol.rendezvous import (
    RENDEZVOUS_VERSION,
    SILENCE_S,
    Call,
    CloseCode,
    FromClient,
    HangUp,
    Hello,
    Open,
    Ping,
    Refusal,
    Refused,
    Say,
    decode_from_server,
    encode_signal,
)
from kafila.protocol.rendezvous_client import (
    BodyHeard,
    CallHeard,
    CallTaken,
    ExchangeEnded,
    Happening,
    RequestDenied,
    SessionOpened,
    TurnedAway,
)
from kafila.protocol.rendezvous_limits import Limits, Rate
from kafila.protocol.rendezvous_server import Drop, RendezvousMachine, Transmit


def only(happened: Sequence[Happening]) -> Happening:
    assert len(happened) == 1, happened
    return happened[0]


def open_session(net: Net, host: Member, nameplate: int | None = None) -> SessionOpened:
    host.machine.open(nameplate)
    host.perform()
    net.settle()
    opened = only(host.take())
    assert isinstance(opened, SessionOpened)
    return opened


def call(net: Net, guest: Member, nameplate: int) -> CallTaken | RequestDenied:
    guest.machine.call(nameplate)
    guest.perform()
    net.settle()
    answer = [each for each in guest.take() if not isinstance(each, ExchangeEnded)]
    taken = only(answer)
    assert isinstance(taken, CallTaken | RequestDenied)
    return taken


def take_call(host: Member) -> CallHeard:
    heard = only(host.take())
    assert isinstance(heard, CallHeard)
    return heard


def joined(net: Net) -> tuple[Member, Member, CallHeard, CallTaken]:
    host, guest = net.member("198.51.100.1"), net.member("198.51.100.2")
    taken = call(net, guest, open_session(net, host).seat.nameplate)
    assert isinstance(taken, CallTaken)
    return host, guest, take_call(host), taken


def test_bodies_pass_both_ways() -> None:
    net = Net()
    host, guest, heard, taken = joined(net)
    guest.machine.say(taken.exchange, b"first")
    guest.machine.say(taken.exchange, b"second")
    guest.perform()
    net.settle()
    assert host.take() == [
        BodyHeard(exchange=heard.exchange, body=b"first"),
        BodyHeard(exchange=heard.exchange, body=b"second"),
    ]
    host.machine.say(heard.exchange, b"answer")
    host.perform()
    net.settle()
    assert guest.take() == [BodyHeard(exchange=taken.exchange, body=b"answer")]


def test_seats_of_one_session_and_their_keys() -> None:
    net = Net()
    opened = open_session(net, net.member()).seat
    guests = [call(net, net.member(), opened.nameplate) for _ in range(2)]
    seats = [opened.seat, *(each.seat for each in guests if isinstance(each, CallTaken))]
    assert len({each.slot for each in seats}) == len({each.key for each in seats}) == 3
    assert {net.seats[each.slot].session for each in seats} == {net.seats[opened.seat.slot].session}
    assert {net.seats[each.slot].key for each in seats} == {each.key for each in seats}
    other = open_session(net, net.member()).seat.seat
    assert net.seats[other.slot].session != net.seats[opened.seat.slot].session


def test_a_nameplate_that_nobody_has() -> None:
    net = Net()
    answer = call(net, net.member(), 47)
    assert isinstance(answer, RequestDenied)
    assert answer.reason is Refusal.NO_SUCH_CODE


def test_a_new_code_keeps_the_seat_and_ends_the_old_number() -> None:
    net = Net()
    host = net.member()
    first, second = open_session(net, host), open_session(net, host)
    assert first.seat.seat == second.seat.seat
    assert first.seat.nameplate != second.seat.nameplate
    assert isinstance(call(net, net.member(), first.seat.nameplate), RequestDenied)
    assert isinstance(call(net, net.member(), second.seat.nameplate), CallTaken)


def test_a_closed_code_takes_no_calls_and_leaves_those_who_came() -> None:
    net = Net()
    host, guest, heard, taken = joined(net)
    nameplate = open_session(net, host).seat.nameplate
    host.machine.close_code()
    host.perform()
    net.settle()
    assert isinstance(call(net, net.member(), nameplate), RequestDenied)
    guest.machine.say(taken.exchange, b"still here")
    guest.perform()
    net.settle()
    assert host.take() == [BodyHeard(exchange=heard.exchange, body=b"still here")]


def test_a_proposed_nameplate_is_given_where_it_is_free() -> None:
    net = Net()
    assert open_session(net, net.member(), 470).seat.nameplate == 470
    assert open_session(net, net.member(), 470).seat.nameplate != 470


def test_nameplates_grow_longer_before_short_ones_are_crowded() -> None:
    net = Net(Limits(opens=Rate(1e6, 1), connects=Rate(1e6, 1), connections_per_source=10_000))
    nameplates = [open_session(net, net.member()).seat.nameplate for _ in range(600)]
    assert len(set(nameplates)) == 600
    lengths = [sum(len(str(each)) == length for each in nameplates) for length in (2, 3, 4)]
    assert lengths == [45, 450, 105]


def test_hanging_up_ends_the_exchange_for_both_and_keeps_the_seat() -> None:
    net = Net()
    host, guest, heard, taken = joined(net)
    host.machine.hang_up(heard.exchange)
    host.perform()
    net.settle()
    assert guest.take() == [ExchangeEnded(taken.exchange)]
    assert host.take() == [ExchangeEnded(heard.exchange)]
    assert taken.seat.slot in net.seats


def test_calling_again_keeps_the_seat_and_another_session_gives_another() -> None:
    net = Net()
    host, guest = net.member(), net.member()
    nameplate = open_session(net, host).seat.nameplate
    other = open_session(net, net.member()).seat.nameplate
    first, second, third = (call(net, guest, number) for number in (nameplate, nameplate, other))
    assert isinstance(first, CallTaken)
    assert isinstance(second, CallTaken)
    assert isinstance(third, CallTaken)
    assert first.seat == second.seat
    assert third.seat.slot != first.seat.slot
    assert first.seat.slot not in net.seats


def test_calls_from_one_address_are_told_apart_from_others_and_from_the_address() -> None:
    net = Net()
    host = net.member()
    nameplate = open_session(net, host).seat.nameplate
    for source in ("203.0.113.5", "203.0.113.5", "203.0.113.6"):
        call(net, net.member(source), nameplate)
    remotes = [each.remote for each in host.take() if isinstance(each, CallHeard)]
    assert remotes[0] == remotes[1] != remotes[2]
    assert "203" not in remotes[0]
    other = Net(secret=b"another secret..")
    host = other.member()
    call(other, other.member("203.0.113.5"), open_session(other, host).seat.nameplate)
    assert take_call(host).remote != remotes[0]


def test_a_host_that_leaves_ends_its_session() -> None:
    net = Net()
    host, guest, _, taken = joined(net)
    host.machine.bye()
    host.perform()
    net.settle()
    assert guest.take() == [ExchangeEnded(taken.exchange)]
    assert net.seats == {}
    assert net.server.counts().sessions == 0


def test_a_joiner_that_leaves_gives_up_its_seat() -> None:
    net = Net()
    host, guest, heard, taken = joined(net)
    guest.machine.bye()
    guest.perform()
    net.settle()
    assert host.take() == [ExchangeEnded(heard.exchange)]
    assert taken.seat.slot not in net.seats
    assert net.server.counts().clients == 1


def test_a_lost_host_is_waited_for_and_then_forgotten() -> None:
    net = Net()
    host, guest, _, taken = joined(net)
    host.cut()
    net.wait(net.limits.grace_s - 2)
    assert guest.take() == []
    assert len(net.seats) == 2
    net.wait(4)
    assert guest.take() == [ExchangeEnded(taken.exchange)]
    assert net.seats == {}


def test_a_silent_connection_is_dropped_and_its_line_kept() -> None:
    net = Net()
    host = net.member()
    seat = open_session(net, host).seat.seat
    number, dropped = host.connection, list[int]()
    while not dropped:  # The host's machine is never ticked, so it never pings.
        net.now += 1
        dropped = [each.connection for each in net.server.tick(net.now) if isinstance(each, Drop)]
    assert dropped == [number]
    assert net.now == 100.0 + SILENCE_S
    assert net.server.counts().connections == 0
    assert seat.slot in net.seats


def test_somebody_who_says_no_hello_is_dropped_soon() -> None:
    net = Net()
    net.server.connect(99, "203.0.113.9", 1, net.now)
    net.now += net.limits.hello_within_s
    assert [each for each in net.server.tick(net.now) if isinstance(each, Drop)] == [
        Drop(connection=99, reason="silent for too long")
    ]


def test_another_version_is_refused_in_words() -> None:
    net = Net()
    net.server.connect(99, "203.0.113.9", 1, net.now)
    effects = net.server.receive(99, encode_signal(Hello(version=RENDEZVOUS_VERSION + 1)), net.now)
    sent, drop = effects
    assert isinstance(sent, Transmit)
    assert decode_from_server(sent.data) == Refused(reason=Refusal.OTHER_VERSION, version=RENDEZVOUS_VERSION)
    assert isinstance(drop, Drop)
    assert net.server.counts().connections == 0


@pytest.mark.parametrize(
    "said",
    [
        [Ping(received=0)],
        [Open(request=0)],
        [Hello(version=1), Hello(version=1)],
        [Hello(version=1), Ping(received=1)],
        [Hello(version=1), CloseCode()],
        [Hello(version=1), Open(request=0), Call(request=1, nameplate=47)],
        [Hello(version=1), b"\xc1"],
        [b""],
    ],
)
def test_who_breaks_the_protocol_is_dropped(said: list[FromClient | bytes]) -> None:
    net = Net()
    net.server.connect(99, "203.0.113.9", 1, net.now)
    effects = [
        effect
        for each in said
        for effect in net.server.receive(99, each if isinstance(each, bytes) else encode_signal(each), net.now)
    ]
    assert isinstance(effects[-1], Drop)
    assert sum(net.server.counts().faults.values()) == 1
    assert net.server.receive(99, encode_signal(Hello(version=1)), net.now) == []


def test_a_joiner_may_not_open_on_the_same_line() -> None:
    net = Net()
    host, guest, _, _ = joined(net)
    guest.to_server.append(encode_signal(Open(request=5)))
    net.to_server(guest)
    assert guest.connection is None
    assert host.connection is not None


def test_saying_to_an_exchange_of_others_reaches_nobody() -> None:
    net = Net()
    host, guest, heard, _ = joined(net)
    stranger = net.member()
    for message in (Say(exchange=heard.exchange, body=b"hello"), HangUp(exchange=heard.exchange)):
        stranger.to_server.append(encode_signal(message))
    net.settle()
    assert host.take() == guest.take() == []


def test_connections_of_one_address_are_bounded() -> None:
    net = Net(Limits(connections_per_source=3))
    members = [net.member() for _ in range(3)]
    fourth = Member(net, members[0].source)
    fourth.connect()
    assert fourth.take() == [TurnedAway(Refusal.TOO_MANY)]
    assert net.member("203.0.113.77").connection is not None
    members[0].cut()
    assert net.member().connection is not None


def test_attempts_to_connect_are_bounded_in_time() -> None:
    net = Net(Limits(connects=Rate(5, 1)))
    for _ in range(5):
        net.member().cut()
    again = Member(net, "198.51.100.7")
    again.connect()
    assert again.take() == [TurnedAway(Refusal.TOO_MANY)]
    net.now += 1
    again.connect()
    net.settle()
    assert again.connection is not None


def test_all_connections_together_are_bounded() -> None:
    net = Net(Limits(connections=2))
    for source in ("203.0.113.1", "203.0.113.2"):
        net.member(source)
    third = Member(net, "203.0.113.3")
    third.connect()
    assert third.take() == [TurnedAway(Refusal.FULL)]


def test_calls_and_codes_of_one_address_are_bounded_in_time() -> None:
    net = Net(Limits(calls=Rate(2, 0.1), opens=Rate(2, 0.1)))
    guest, host = net.member(), net.member()
    answers = [call(net, guest, 47) for _ in range(3)]
    assert [each.reason for each in answers if isinstance(each, RequestDenied)] == [
        Refusal.NO_SUCH_CODE,
        Refusal.NO_SUCH_CODE,
        Refusal.TOO_MANY,
    ]
    open_session(net, host)
    open_session(net, host)
    host.machine.open(None)
    host.perform()
    net.settle()
    denied = only(host.take())
    assert isinstance(denied, RequestDenied)
    assert denied.reason is Refusal.TOO_MANY


def test_a_session_is_full_for_all_and_earlier_for_one_address() -> None:
    limits = Limits(exchanges_per_session=3, exchanges_per_session_and_source=2)
    net = Net(limits)
    nameplate = open_session(net, net.member()).seat.nameplate
    answers = [
        call(net, net.member(source), nameplate)
        for source in ("203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.2", "203.0.113.3")
    ]
    assert [isinstance(each, CallTaken) for each in answers] == [True, True, False, True, False]


def test_sessions_are_bounded() -> None:
    net = Net(Limits(sessions=1))
    open_session(net, net.member())
    second = net.member()
    second.machine.open(None)
    second.perform()
    net.settle()
    denied = only(second.take())
    assert isinstance(denied, RequestDenied)
    assert denied.reason is Refusal.FULL


def test_too_many_messages_at_once_are_a_fault() -> None:
    net = Net(Limits(messages=Rate(5, 1)))
    member = net.member()
    for _ in range(5):
        member.to_server.append(encode_signal(Ping(received=0)))
    net.settle()
    assert member.connection is None


def test_an_exchange_ends_when_one_side_is_away_and_the_other_talks_on() -> None:
    net = Net(Limits(waiting_messages=10, messages=Rate(1000, 1)))
    host, guest, _, taken = joined(net)
    host.cut()
    for number in range(40):
        guest.machine.say(taken.exchange, bytes([number]))
        guest.perform()
        net.settle()
    assert guest.take() == [ExchangeEnded(taken.exchange)]
    assert net.server.counts().overflows == {"line": 1}
    host.connect()
    net.settle()
    happened = host.take()
    bodies = [each.body[0] for each in happened if isinstance(each, BodyHeard)]
    assert bodies == list(range(len(bodies)))
    assert isinstance(happened[-1], ExchangeEnded)


def test_all_lines_together_are_bounded_and_have_room_again_when_they_were_taken() -> None:
    net = Net(Limits(waiting_bytes_in_all=20_000))
    host, guest, heard, taken = joined(net)
    guest.machine.say(taken.exchange, bytes(15_000))
    guest.perform()
    net.settle()
    net.wait(11)  # Within which the host has acknowledged.
    assert net.server.counts().waiting_bytes < 2_000
    host.cut()
    for _ in range(3):
        guest.machine.say(taken.exchange, bytes(15_000))
        guest.perform()
        net.settle()
    assert guest.take() == [ExchangeEnded(taken.exchange)]
    assert net.server.counts().overflows == {"all lines together": 1}
    host.connect()
    net.settle()
    bodies = [each for each in host.take() if isinstance(each, BodyHeard)]
    assert bodies == [BodyHeard(exchange=heard.exchange, body=bytes(15_000))] * 3


def test_what_says_nothing_counts_as_a_message() -> None:
    net = Net(Limits(messages=Rate(5, 1)))
    member = net.member()
    assert member.connection is not None
    effects = [net.server.count(member.connection, net.now) for _ in range(5)]
    assert not any(effects[:4])
    assert [type(effect) for effect in effects[4]] == [Drop]
    assert sum(net.server.counts().faults.values()) == 1
    assert net.server.count(member.connection, net.now) == []


def test_a_line_that_takes_nothing_at_all_is_ended() -> None:
    net = Net(Limits(waiting_messages=4, calls=Rate(1000, 1)))
    guest = net.member()
    for request in range(8):
        guest.to_server.append(encode_signal(Call(request=request, nameplate=47)))
    while guest.to_server:
        net.to_server(guest)  # Its answers are never delivered, so never acknowledged.
    assert guest.connection is None
    assert net.server.counts().clients == 0


def test_looking_a_nameplate_up_is_bounded_too() -> None:
    net = Net(Limits(lookups=Rate(2, 1)))
    opened = open_session(net, net.member())
    answers = [net.server.look_up(number, "x", net.now) for number in (opened.seat.nameplate, 10_000, 47)]
    assert answers == [True, False, Refusal.TOO_MANY]


def test_idle_limits_and_lines_leave_nothing_behind() -> None:
    net = Net()
    host, guest, _, _ = joined(net)
    host.cut()
    guest.cut()
    net.wait(net.limits.grace_s + 5)
    counts = net.server.counts()
    assert (counts.connections, counts.clients, counts.sessions) == (0, 0, 0)
    assert net.seats == {}


def shape(kind: str, first: object, second: object, third: object) -> bytes:
    numbers = {"request": first, "exchange": first, "nameplate": second, "received": second}
    return msgspec.msgpack.encode({"type": kind, "version": 1, "body": third, **numbers})


scalars = st.none() | st.integers(-1, 50) | st.binary(max_size=70)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.builds(
                shape,
                st.sampled_from(["Hello", "Open", "CloseCode", "Call", "Say", "HangUp", "Ping", "Ack", "Bye"]),
                scalars,
                scalars,
                scalars,
            ),
        ),
        max_size=30,
    )
)
def test_no_bytes_disturb_the_honest(messages: list[bytes]) -> None:
    net = Net()
    host, guest, heard, taken = joined(net)
    for number, data in enumerate(messages):
        connection = 1000 + number // 5
        if number % 5 == 0:
            net.server.connect(connection, "203.0.113.66", 1, net.now)
            net.server.receive(connection, encode_signal(Hello(version=1)), net.now)
        net.server.receive(connection, data, net.now)
    host.take()  # Junk may have called.
    guest.machine.say(taken.exchange, b"undisturbed")
    guest.perform()
    net.settle()
    assert host.take() == [BodyHeard(exchange=heard.exchange, body=b"undisturbed")]


def test_tokens_of_another_secret_mean_nothing() -> None:
    machine = RendezvousMachine(secret=SECRET, draw=Draw(), limits=Limits())
    machine.connect(1, "x", 1, 0.0)
    for token in (b"", b"t", b"t" * 33, b"t" * 64):
        machine.disconnect(1, 0.0)
        machine.connect(1, "x", 1, 0.0)
        machine.receive(1, encode_signal(Hello(version=1, token=token)), 0.0)
    assert machine.counts().sessions == 0
