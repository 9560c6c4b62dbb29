"""Relay frames survive the trip, and forged or garbled ones do not."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.protocol.links import Address
from kafila.protocol.relay_frames import (
    MAX_PAYLOAD_BYTES,
    MAX_SLOT,
    DeliveredFrame,
    FromRelay,
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    ToRelay,
    decode_from_relay,
    decode_to_relay,
    encode_from_relay,
    encode_to_relay,
    is_authentic,
)

SLOTS = st.integers(0, MAX_SLOT)
PAYLOADS = st.binary(min_size=1, max_size=MAX_PAYLOAD_BYTES)
KEYS = st.binary(min_size=32, max_size=32)
HOSTS = st.ip_addresses().map(str)

TO_RELAY = st.one_of(
    st.builds(RelayedFrame, source=SLOTS, counter=SLOTS, destination=SLOTS, payload=PAYLOADS),
    st.builds(KeepAliveFrame, slot=SLOTS, counter=SLOTS),
)
FROM_RELAY = st.one_of(
    st.builds(DeliveredFrame, source=SLOTS, payload=PAYLOADS),
    st.builds(
        SeatedFrame,
        slot=SLOTS,
        counter=SLOTS,
        observed=st.builds(Address, HOSTS, st.integers(0, 65535)),
    ),
)


@given(TO_RELAY, KEYS)
def test_frames_to_the_relay_come_back_whole(frame: ToRelay, key: bytes) -> None:
    data = encode_to_relay(frame, key)
    assert decode_to_relay(data) == frame
    assert is_authentic(data, key)


@given(FROM_RELAY)
def test_frames_from_the_relay_come_back_whole(frame: FromRelay) -> None:
    assert decode_from_relay(encode_from_relay(frame)) == frame


@given(TO_RELAY, KEYS, KEYS)
def test_another_key_is_noticed(frame: ToRelay, key: bytes, other: bytes) -> None:
    assert is_authentic(encode_to_relay(frame, key), other) == (key == other)


@given(TO_RELAY, KEYS, st.data())
def test_every_byte_of_the_head_is_authenticated(frame: ToRelay, key: bytes, data: st.DataObject) -> None:
    wire = bytearray(encode_to_relay(frame, key))
    size = 33 if isinstance(frame, RelayedFrame) else 25
    wire[data.draw(st.integers(1, size - 1))] ^= data.draw(st.integers(1, 255))
    assert not is_authentic(bytes(wire), key)


def test_the_layout_is_as_documented() -> None:
    wire = encode_to_relay(RelayedFrame(source=1, counter=2, destination=3, payload=b"body"), bytes(32))
    assert wire[:25].hex() == "08" + "0000000000000001" + "0000000000000002" + "0000000000000003"
    assert wire[33:] == b"body"
    seated = SeatedFrame(slot=1, counter=2, observed=Address("127.0.0.1", 258))
    assert encode_from_relay(seated).hex() == "0a" + "00" * 7 + "01" + "00" * 7 + "02" + ("04" + "7f000001" + "0102")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08",
        b"\x08" + bytes(32),
        b"\x08" + bytes(33 + MAX_PAYLOAD_BYTES),
        b"\x09" + bytes(23),
        b"\x09" + bytes(25),
        b"\x0b" + bytes(100),
    ],
)
def test_malformed_frames_to_the_relay_are_refused(data: bytes) -> None:
    with pytest.raises(PeerError):
        decode_to_relay(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0a" + bytes(16),
        b"\x0a" + bytes(16) + b"\x05" + bytes(6),
        b"\x0a" + bytes(16) + b"\x04" + bytes(18),
        b"\x0b" + bytes(8),
        b"\x0b" + bytes(9 + MAX_PAYLOAD_BYTES),
        b"\x08" + bytes(100),
    ],
)
def test_malformed_frames_from_the_relay_are_refused(data: bytes) -> None:
    with pytest.raises(PeerError):
        decode_from_relay(data)


@given(st.binary(max_size=64))
def test_garbage_raises_nothing_but_peer_errors(data: bytes) -> None:
    for first in (b"", b"\x08", b"\x09", b"\x0a", b"\x0b"):
        with contextlib.suppress(PeerError):
            decode_to_relay(first + data)
        with contextlib.suppress(PeerError):
            decode_from_relay(first + data)
