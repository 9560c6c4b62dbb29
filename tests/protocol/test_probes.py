"""Probes are read by the other half of the pair, and by nobody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId
from kafila.protocol.links import Address
from kafila.protocol.probes import (
    MAX_ADDRESSES,
    MAX_PROBE_BYTES,
    PROBE_BYTES,
    Ping,
    Pong,
    Probe,
    ProbeCodec,
    Where,
    sender_tag,
)

ANNA, BELA = MemberId("00" * 8), MemberId("ff" * 8)
KEY = bytes(range(32))
TRANSACTIONS = st.integers(0, (1 << 64) - 1)
ADDRESSES = st.builds(Address, st.ip_addresses().map(str), st.integers(0, 65535))
PROBES = st.one_of(
    st.builds(Ping, transaction=TRANSACTIONS, size=st.integers(PROBE_BYTES, MAX_PROBE_BYTES)),
    st.builds(Pong, transaction=TRANSACTIONS),
    st.builds(Where, transaction=TRANSACTIONS, addresses=st.lists(ADDRESSES, max_size=MAX_ADDRESSES).map(tuple)),
)


def pair(key: bytes = KEY) -> tuple[ProbeCodec, ProbeCodec]:
    return ProbeCodec(key, own=ANNA, peer=BELA), ProbeCodec(key, own=BELA, peer=ANNA)


@given(PROBES)
def test_the_other_half_reads_a_probe(probe: Probe) -> None:
    anna, bela = pair()
    wire = anna.encode(probe)
    assert PROBE_BYTES <= len(wire) <= MAX_PROBE_BYTES
    match probe:
        case Ping(size=size):
            assert len(wire) == size
        case Pong():
            assert len(wire) == PROBE_BYTES
        case Where():
            pass
    assert sender_tag(wire) == bela.peer_tag
    assert bela.decode(wire) == probe


@given(PROBES)
def test_a_probe_sent_back_to_its_maker_is_refused(probe: Probe) -> None:
    anna, _ = pair()
    with pytest.raises(PeerError):
        anna.decode(anna.encode(probe))


@given(PROBES, st.integers(0, MAX_PROBE_BYTES), st.integers(1, 255))
def test_any_changed_byte_is_noticed(probe: Probe, place: int, change: int) -> None:
    anna, bela = pair()
    wire = bytearray(anna.encode(probe))
    wire[place % len(wire)] ^= change
    with pytest.raises(PeerError):
        bela.decode(bytes(wire))


@pytest.mark.parametrize("shorter", [PROBE_BYTES, 1200, 1349])
def test_nobody_on_the_way_makes_a_large_ping_shorter(shorter: int) -> None:
    anna, bela = pair()
    with pytest.raises(PeerError):
        bela.decode(anna.encode(Ping(transaction=1, size=1350))[:shorter])


def test_another_pairs_key_is_refused() -> None:
    anna, _ = pair()
    _, other_bela = pair(bytes(32))
    wire = anna.encode(Ping(transaction=1))
    assert sender_tag(wire) != other_bela.peer_tag
    with pytest.raises(PeerError):
        other_bela.decode(wire)


@given(st.binary(max_size=80))
def test_garbage_is_refused(data: bytes) -> None:
    _, bela = pair()
    assert sender_tag(data) is None or len(data) >= PROBE_BYTES
    with pytest.raises(PeerError):
        bela.decode(data)


def test_the_wire_carries_neither_member_id_nor_key() -> None:
    anna, _ = pair()
    wire = anna.encode(Ping(transaction=7))
    assert bytes.fromhex(BELA) not in wire
    assert KEY[:8] not in wire


def test_more_addresses_than_there_may_be_are_left_out_when_written_and_refused_when_read() -> None:
    anna, bela = pair()
    many = tuple(Address(f"2001:db8::{number:x}", 1) for number in range(1, MAX_ADDRESSES + 5))
    read = bela.decode(anna.encode(Where(transaction=1, addresses=many)))
    assert read == Where(transaction=1, addresses=many[:MAX_ADDRESSES])


def test_the_relay_does_not_read_where_a_member_is() -> None:
    anna, _ = pair()
    home = Address("192.168.1.10", 4242)
    wire = anna.encode(Where(transaction=7, addresses=(home,)))
    assert bytes((192, 168, 1, 10)) not in wire
    assert (4242).to_bytes(2, "big") not in wire
