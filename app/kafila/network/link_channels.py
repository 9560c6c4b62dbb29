"""What a link's streams carry: messages with their lengths, and how far the other side may send.

Each channel is a stream of its own in either direction, made of messages: length 4 · bytes. One
more stream, the first, carries records of 10 bytes: kind 1 · channel 1 · number 8.

    hello   01 · 00 · 0                            both, once the other's certificate is found right
    grant   02 · channel · total                   "you may send up to this many bytes in all"

A channel may be sent CREDIT_BYTES from the start. Grants follow what the reader has taken out, so
what waits for a slow reader is bounded by that, or by the one message that it waits for.
"""

import struct
from collections import deque

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.links import MAX_MESSAGE_BYTES, Channel

CREDIT_BYTES = 16 << 20
HIGH_WATER_BYTES = 4 << 20
"""A channel with as much waiting lets senders wait…"""
LOW_WATER_BYTES = 1 << 20
"""…until so little is left."""
CHUNK_BYTES = 64 << 10

RECORD_STREAM = 0

_CHANNELS = tuple(Channel)
_LENGTH = struct.Struct("!I")
_RECORD = struct.Struct("!BBQ")
_HELLO, _GRANT = 1, 2


class Hello(msgspec.Struct, frozen=True):
    """Your certificate is right; the link is open from my side."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """On this channel you may send up to `total` bytes, counted from the beginning."""

    channel: Channel
    total: int


Record = Hello | Grant


def channel_stream(channel: Channel) -> int:
    """The number of the channel's stream. Lower ones are sent first."""
    return 1 + channel


def stream_channel(stream: int) -> Channel:
    """The channel of a stream that the peer sends on. Raises PeerError where there is none."""
    if not 0 < stream <= len(_CHANNELS):
        fault = "a stream that no link has"
        raise PeerError(fault)
    return _CHANNELS[stream - 1]


def encode_record(record: Record) -> bytes:
    """The record as bytes of the first stream."""
    match record:
        case Hello():
            return _RECORD.pack(_HELLO, 0, 0)
        case Grant(channel=channel, total=total):
            return _RECORD.pack(_GRANT, channel, total)


class RecordReader:
    """Reads the peer's first stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Record]:
        """Take bytes in; returns the records that are whole. Raises PeerError."""
        self._buffer += data
        whole = len(self._buffer) - len(self._buffer) % _RECORD.size
        records = [self._decode(*fields) for fields in _RECORD.iter_unpack(self._buffer[:whole])]
        del self._buffer[:whole]
        return records

    def _decode(self, kind: int, channel: int, number: int) -> Record:
        try:
            match kind:
                case 1:
                    return Hello()
                case 2:
                    return Grant(channel=Channel(channel), total=number)
                case _:
                    pass
        except ValueError:
            pass
        fault = "a record of an unknown kind or channel"
        raise PeerError(fault)


class Outbox:
    """Messages of one channel that wait to be sent, and the credit to send them on."""

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()
        self._credit = CREDIT_BYTES
        self.waiting_bytes = 0
        self.sent_bytes = 0

    def put(self, message: bytes) -> None:
        """Queue one message."""
        self._parts.append(memoryview(_LENGTH.pack(len(message))))
        if message:
            self._parts.append(memoryview(message))
        self.waiting_bytes += _LENGTH.size + len(message)

    def allow(self, total: int) -> None:
        """The peer's grant. It never shrinks."""
        self._credit = max(self._credit, total)

    def take(self, size: int) -> bytes:
        """Up to `size` bytes to be sent now, as far as there is credit; empty if none."""
        size = min(size, self._credit - self.sent_bytes)
        taken: list[memoryview] = []
        while size > 0 and self._parts:
            part = self._parts.popleft()
            if len(part) > size:
                self._parts.appendleft(part[size:])
                part = part[:size]
            taken.append(part)
            size -= len(part)
        data = b"".join(taken)
        self.sent_bytes += len(data)
        self.waiting_bytes -= len(data)
        return data


class Inbox:
    """Bytes of one channel that have arrived, until somebody takes the messages out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._taken = 0
        self._granted = CREDIT_BYTES
        self._next_length_at = 0

    @property
    def received_bytes(self) -> int:
        """All that has arrived so far."""
        return self._taken + len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take bytes in. Raises PeerError for more than was granted, or too long a message."""
        if self.received_bytes + len(data) > self._granted:
            fault = "more bytes on a channel than were granted"
            raise PeerError(fault)
        self._buffer += data
        while (length := self._length_at(self._next_length_at - self._taken)) is not None:
            if length > MAX_MESSAGE_BYTES:
                fault = "a message longer than any that is sent"
                raise PeerError(fault)
            self._next_length_at += _LENGTH.size + length

    def take(self) -> bytes | None:
        """The next message, if all of it is here."""
        length = self._length_at(0)
        if length is None or len(self._buffer) < (end := _LENGTH.size + length):
            return None
        with memoryview(self._buffer) as view:
            message = bytes(view[_LENGTH.size : end])
        del self._buffer[:end]
        self._taken += end
        return message

    def grant(self) -> int | None:
        """The total to tell the peer now, if it is time to raise it."""
        length = self._length_at(0)
        awaited = 0 if length is None else _LENGTH.size + length
        total = self._taken + max(CREDIT_BYTES, awaited)
        raised = total - self._granted
        if raised <= 0 or (raised < CREDIT_BYTES // 4 and awaited <= CREDIT_BYTES):
            return None
        self._granted = total
        return total

    def _length_at(self, place: int) -> int | None:
        if place + _LENGTH.size > len(self._buffer):
            return None
        length: int = _LENGTH.unpack_from(self._buffer, place)[0]
        return length
