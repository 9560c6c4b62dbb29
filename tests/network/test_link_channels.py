"""Messages on channels: whole, in order, and never more of them than the reader makes room for."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.network.link_channels import (
    CREDIT_BYTES,
    Grant,
    Hello,
    Inbox,
    Outbox,
    Record,
    RecordReader,
    channel_stream,
    encode_record,
    stream_channel,
)
from kafila.protocol.links import MAX_MESSAGE_BYTES, Channel

MESSAGES = st.lists(st.binary(max_size=300), max_size=30)
SIZES = st.lists(st.integers(1, 200), min_size=1, max_size=50)


@given(MESSAGES, SIZES)
def test_messages_arrive_whole_and_in_order_however_they_are_cut(messages: list[bytes], sizes: list[int]) -> None:
    outbox, inbox, got = Outbox(), Inbox(), list[bytes]()
    for message in messages:
        outbox.put(message)
    turn = 0
    while outbox.waiting_bytes:
        inbox.feed(outbox.take(sizes[turn % len(sizes)]))
        turn += 1
        while turn % 3 == 0 and (message := inbox.take()) is not None:
            got.append(message)
    while (message := inbox.take()) is not None:
        got.append(message)
    assert got == messages


def test_a_sender_stops_where_its_credit_ends_and_goes_on_when_the_reader_has_read() -> None:
    outbox, inbox = Outbox(), Inbox()
    message = bytes(5 << 20)
    for _ in range(5):
        outbox.put(message)
    while data := outbox.take(1 << 20):
        inbox.feed(data)
    assert outbox.waiting_bytes == 5 * (len(message) + 4) - CREDIT_BYTES
    assert inbox.grant() is None

    assert inbox.take() == message
    granted = inbox.grant() or 0
    assert granted == CREDIT_BYTES + len(message) + 4
    assert inbox.grant() is None
    outbox.allow(granted)
    received = 1
    while received < 5:
        while data := outbox.take(1 << 20):
            inbox.feed(data)
        while inbox.take() is not None:
            received += 1
        outbox.allow(inbox.grant() or 0)
    assert outbox.waiting_bytes == 0


def test_a_message_larger_than_the_credit_comes_through() -> None:
    outbox, inbox = Outbox(), Inbox()
    outbox.put(bytes(CREDIT_BYTES * 2))
    while inbox.take() is None:
        data = outbox.take(1 << 20)
        assert data
        inbox.feed(data)
        outbox.allow(inbox.grant() or 0)


def test_a_peer_that_sends_beyond_its_credit_is_refused() -> None:
    inbox = Inbox()
    inbox.feed(CREDIT_BYTES.to_bytes(4) + bytes(CREDIT_BYTES - 4))
    with pytest.raises(PeerError):
        inbox.feed(b"x")


@pytest.mark.parametrize("before", [b"", (1).to_bytes(4) + b"a"])
def test_a_message_that_is_too_long_is_refused_at_its_first_bytes(before: bytes) -> None:
    with pytest.raises(PeerError):
        Inbox().feed(before + (MAX_MESSAGE_BYTES + 1).to_bytes(4))


def test_grants_do_not_shrink() -> None:
    outbox = Outbox()
    outbox.put(bytes(100))
    outbox.allow(10)
    assert len(outbox.take(1000)) == 104


RECORDS = st.lists(
    st.one_of(
        st.just(Hello()),
        st.builds(Grant, channel=st.sampled_from(Channel), total=st.integers(0, 1 << 62)),
    )
)


@given(RECORDS, st.integers(1, 25))
def test_records_are_read_however_they_are_cut(records: list[Record], size: int) -> None:
    wire = b"".join(map(encode_record, records))
    reader, got = RecordReader(), list[Record]()
    for start in range(0, len(wire), size):
        got += reader.feed(wire[start : start + size])
    assert got == records


@given(st.binary(max_size=60))
def test_garbage_records_raise_nothing_but_peer_errors(data: bytes) -> None:
    with contextlib.suppress(PeerError):
        RecordReader().feed(data)


@pytest.mark.parametrize("wire", [b"\x03" + bytes(9), b"\x02\x09" + bytes(8), b"\x02\x04" + bytes(8)])
def test_unknown_records_and_channels_are_refused(wire: bytes) -> None:
    with pytest.raises(PeerError):
        RecordReader().feed(wire)


def test_every_channel_has_its_stream_and_no_other_stream_a_channel() -> None:
    assert [stream_channel(channel_stream(channel)) for channel in Channel] == list(Channel)
    for stream in (0, len(Channel) + 1):
        with pytest.raises(PeerError):
            stream_channel(stream)


def test_decode_is_sent_ahead_of_prefill_and_both_ahead_of_weights() -> None:
    assert channel_stream(Channel.DECODE) < channel_stream(Channel.PREFILL) < channel_stream(Channel.WEIGHTS)
