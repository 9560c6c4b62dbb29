"""The blind relay: between seats of one session, authentic, newest address first."""

from hypothesis import given
from hypothesis import strategies as st

from kafila.protocol.links import Address
from kafila.protocol.relay_frames import (
    DeliveredFrame,
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    decode_from_relay,
    encode_to_relay,
)
from kafila.protocol.rendezvous_limits import Limits, Rate
from kafila.protocol.rendezvous_relay import (
    REPLAY_WINDOW_FRAMES,
    Forward,
    RelayMachine,
    ReplayWindow,
    Route,
)

HOST, GUEST, STRANGER = 11, 22, 33
KEYS = {slot: bytes([slot]) * 32 for slot in (HOST, GUEST, STRANGER)}
ROUTES = {slot: Route(0, Address("198.51.100.1", 4000 + slot), "198.51.100.1") for slot in KEYS}
ELSEWHERE = Route(1, Address("2001:db8::5", 999), "2001:db8::/64")


def make_relay(limits: Limits | None = None) -> RelayMachine:
    relay = RelayMachine(limits or Limits())
    relay.seat(slot=HOST, session=1, key=KEYS[HOST], now=0.0)
    relay.seat(slot=GUEST, session=1, key=KEYS[GUEST], now=0.0)
    relay.seat(slot=STRANGER, session=2, key=KEYS[STRANGER], now=0.0)
    return relay


def keep_alive(slot: int, counter: int) -> bytes:
    return encode_to_relay(KeepAliveFrame(slot=slot, counter=counter), KEYS[slot])


def frame(source: int, destination: int, counter: int, *, key: bytes | None = None) -> bytes:
    relayed = RelayedFrame(source=source, destination=destination, counter=counter, payload=b"opaque")
    return encode_to_relay(relayed, key or KEYS[source])


def seated(limits: Limits | None = None) -> RelayMachine:
    relay = make_relay(limits)
    for slot, route in ROUTES.items():
        relay.receive(keep_alive(slot, 1), route, 0.0)
    return relay


def test_a_keep_alive_is_answered_with_the_address_it_came_from() -> None:
    answer = make_relay().receive(keep_alive(HOST, 5), ELSEWHERE, 0.0)
    assert isinstance(answer, Forward)
    assert answer.route == ELSEWHERE
    assert decode_from_relay(answer.data) == SeatedFrame(slot=HOST, counter=5, observed=ELSEWHERE.address)


def test_a_frame_reaches_the_other_seat_of_its_session() -> None:
    relay = seated()
    forward = relay.receive(frame(GUEST, HOST, 2), ROUTES[GUEST], 0.0)
    assert isinstance(forward, Forward)
    assert forward.route == ROUTES[HOST]
    assert decode_from_relay(forward.data) == DeliveredFrame(source=GUEST, payload=b"opaque")
    assert (relay.forwarded_frames, relay.dropped) == (1, {})


def test_what_is_not_forwarded_and_why() -> None:
    relay = seated()
    cases = {
        "malformed": b"\x08short",
        "unknown slot": encode_to_relay(RelayedFrame(source=44, destination=HOST, counter=2, payload=b"x"), KEYS[HOST]),
        "wrong MAC": frame(GUEST, HOST, 2, key=KEYS[STRANGER]),
        "old counter": frame(GUEST, HOST, 1),
        "not in the session": frame(GUEST, STRANGER, 2),
    }
    for reason, data in cases.items():
        assert relay.receive(data, ROUTES[GUEST], 0.0) is None
        assert relay.dropped.pop(reason) == 1
        assert not relay.dropped
    assert relay.forwarded_frames == 0


def test_nothing_goes_to_a_seat_that_nobody_has_taken() -> None:
    relay = make_relay()
    assert relay.receive(frame(GUEST, HOST, 1), ROUTES[GUEST], 0.0) is None
    assert relay.dropped == {"not seated yet": 1}


def test_an_address_moves_on_a_newer_counter_only() -> None:
    relay = seated()
    relay.receive(frame(HOST, GUEST, 9), ELSEWHERE, 0.0)
    relay.receive(frame(HOST, GUEST, 7), ROUTES[HOST], 0.0)
    forward = relay.receive(frame(GUEST, HOST, 2), ROUTES[GUEST], 0.0)
    assert forward is not None
    assert forward.route == ELSEWHERE


def test_a_frame_that_was_overtaken_is_forwarded_once() -> None:
    relay = seated()
    relay.receive(frame(GUEST, HOST, 9), ROUTES[GUEST], 0.0)
    assert relay.receive(frame(GUEST, HOST, 7), ROUTES[GUEST], 0.0) is not None
    assert relay.receive(frame(GUEST, HOST, 7), ROUTES[GUEST], 0.0) is None


def test_an_overtaken_keep_alive_is_not_answered() -> None:
    relay = seated()
    relay.receive(frame(GUEST, HOST, 9), ROUTES[GUEST], 0.0)
    assert relay.receive(keep_alive(GUEST, 8), ELSEWHERE, 0.0) is None


def test_a_frame_with_a_wrong_mac_does_not_use_up_its_counter() -> None:
    relay = seated()
    assert relay.receive(frame(GUEST, HOST, 1000, key=KEYS[HOST]), ELSEWHERE, 0.0) is None
    assert relay.receive(frame(GUEST, HOST, 2), ROUTES[GUEST], 0.0) is not None


def test_slots_sessions_and_addresses_have_their_rates() -> None:
    size = len(frame(GUEST, HOST, 2))
    for limits in (
        Limits(slot_bytes=Rate(2.5 * size, size)),
        Limits(session_bytes=Rate(2.5 * size, size)),
        Limits(source_bytes=Rate(2.5 * size, size)),
    ):
        relay = seated(limits)
        sent = [relay.receive(frame(GUEST, HOST, n), ROUTES[GUEST], 0.0) for n in range(2, 6)]
        assert [each is not None for each in sent] == [True, True, False, False]
        assert relay.dropped == {"over the rate": 2}
        assert relay.receive(frame(GUEST, HOST, 9), ROUTES[GUEST], 1.0) is not None


def test_an_address_has_its_rate_whichever_seats_it_uses() -> None:
    size = len(frame(GUEST, HOST, 2))
    relay = seated(Limits(source_bytes=Rate(1.5 * size, size)))
    assert relay.receive(frame(GUEST, HOST, 2), ROUTES[GUEST], 0.0) is not None
    assert relay.receive(frame(HOST, GUEST, 2), ROUTES[HOST], 0.0) is None
    assert relay.receive(frame(HOST, GUEST, 3), ELSEWHERE, 0.0) is not None
    relay.tick(9.0)
    assert relay.receive(frame(HOST, GUEST, 4), ROUTES[HOST], 9.0) is not None


def test_a_seat_that_was_taken_back_neither_sends_nor_receives() -> None:
    relay = seated()
    relay.unseat(GUEST)
    assert relay.receive(frame(GUEST, HOST, 2), ROUTES[GUEST], 0.0) is None
    assert relay.receive(frame(HOST, GUEST, 2), ROUTES[HOST], 0.0) is None
    assert relay.dropped == {"unknown slot": 1, "not in the session": 1}


@given(st.lists(st.integers(0, 3 * REPLAY_WINDOW_FRAMES), max_size=80))
def test_the_window_admits_each_counter_once_and_none_that_is_too_old(counters: list[int]) -> None:
    window, seen, newest = ReplayWindow(), set[int](), -1
    for counter in counters:
        expected = counter not in seen and counter > newest - REPLAY_WINDOW_FRAMES
        assert window.admit(counter) is expected
        seen.add(counter)
        newest = max(newest, counter)


@given(st.binary(max_size=120), st.sampled_from([b"", b"\x08", b"\x09", b"\x0a", b"\x0b"]))
def test_junk_goes_nowhere(data: bytes, first: bytes) -> None:
    relay = seated()
    assert relay.receive(first + data, ELSEWHERE, 0.0) is None
    assert sum(relay.dropped.values()) == 1
