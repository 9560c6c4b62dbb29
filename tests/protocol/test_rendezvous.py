"""Signalling messages: whole after a round trip, bounded, and deaf to junk."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.protocol.rendezvous import (
    MAX_BODY_BYTES,
    MAX_SIGNAL_BYTES,
    RENDEZVOUS_VERSION,
    Call,
    Called,
    Hello,
    NameplateHere,
    Say,
    SeatGrant,
    Welcome,
    decode_from_client,
    decode_from_server,
    decode_nameplate_here,
    encode_signal,
)


def test_messages_come_back_whole() -> None:
    say = Say(exchange=7, body=b"\x00" * MAX_BODY_BYTES)
    assert decode_from_client(encode_signal(say)) == say
    assert decode_from_server(encode_signal(say)) == say
    seat = SeatGrant(slot=(1 << 64) - 1, key=b"k" * 32, token=b"t" * 33)
    called = Called(request=3, exchange=9, seat=seat)
    assert decode_from_server(encode_signal(called)) == called


def test_a_largest_body_fits_a_largest_message() -> None:
    assert len(encode_signal(Say(exchange=1 << 53, body=b"x" * MAX_BODY_BYTES))) <= MAX_SIGNAL_BYTES


@pytest.mark.parametrize(
    "message",
    [
        {"type": "Say", "exchange": 1, "body": b"x" * (MAX_BODY_BYTES + 1)},
        {"type": "Say", "exchange": -1, "body": b""},
        {"type": "Call", "request": 1, "nameplate": 0},
        {"type": "Call", "request": 1, "nameplate": 1_000_000_000},
        {"type": "Call", "request": 1},
        {"type": "Hello", "version": 1, "token": b"t" * 65},
        {"type": "Welcome", "continuity": 0, "received": 0, "udp_port": 1},
        {"type": "nothing"},
        {},
        [],
        None,
    ],
)
def test_what_no_client_says_is_refused(message: object) -> None:
    with pytest.raises(PeerError):
        decode_from_client(msgspec.msgpack.encode(message))


def test_what_only_a_client_says_is_refused_from_a_server() -> None:
    with pytest.raises(PeerError):
        decode_from_server(encode_signal(Call(request=1, nameplate=47)))
    with pytest.raises(PeerError):
        decode_from_client(encode_signal(Welcome(continuity=0, received=0, udp_port=9)))  # pyright: ignore[reportArgumentType]


def test_a_hello_of_a_later_version_is_read() -> None:
    later = {"type": "Hello", "version": 9, "token": b"", "received": 0, "colour": ["blue"]}
    hello = decode_from_client(msgspec.msgpack.encode(later))
    assert isinstance(hello, Hello)
    assert hello.version == 9 != RENDEZVOUS_VERSION


def test_deep_nesting_and_great_length_are_refused() -> None:
    deep = msgspec.msgpack.encode({"type": "Hello", "version": 1})[:-1] + b"\x91" * 60_000
    with pytest.raises(PeerError):
        decode_from_client(b"\x83" + deep[1:])
    with pytest.raises(PeerError):
        decode_from_client(b"\x90" * (MAX_SIGNAL_BYTES + 1))


@given(st.binary(max_size=512))
def test_junk_is_refused_or_read_and_nothing_else(data: bytes) -> None:
    for decode in (decode_from_client, decode_from_server, decode_nameplate_here):
        with contextlib.suppress(PeerError):
            decode(data)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(1 << 63), (1 << 64) - 1)
        | st.binary(max_size=40)
        | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=6),
        max_leaves=12,
    ),
    st.sampled_from(["Hello", "Open", "CloseCode", "Call", "Say", "HangUp", "Ping", "Ack", "Bye"]),
)
def test_well_formed_msgpack_of_the_wrong_shape_is_refused_or_read(value: object, kind: str) -> None:
    fields: dict[object, object] = {"type": kind, "exchange": value, "request": value, "received": value, "body": value}
    try:
        message = decode_from_client(msgspec.msgpack.encode(fields))
    except PeerError:
        return
    assert type(message).__name__ == kind


def test_the_answer_over_http() -> None:
    here = NameplateHere(kafila_rendezvous=1)
    assert decode_nameplate_here(msgspec.json.encode(here)) == here
    with pytest.raises(PeerError):
        decode_nameplate_here(b"<html>It works!</html>")
