"""Byte ranges of a model's files, asked for and given over the weights channel of a link."""

import msgspec

from kafila.domain.errors import PeerError

MAX_RANGE_BYTES = 1 << 20
MAX_FILE_NAME = 200


class RangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [start, end) of one file of the session's model; `end` 0 means the whole file."""

    file: str
    start: int
    end: int


class RangeReply(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes; None where this computer does not have, or does not give, the file."""

    data: bytes | None


_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(RangeRequest)
_replies = msgspec.msgpack.Decoder(RangeReply)


def encode_range(message: RangeRequest | RangeReply) -> bytes:
    """A request or a reply as bytes."""
    return _encoder.encode(message)


def decode_request(data: bytes) -> RangeRequest:
    """A member's request. Raises PeerError where it is not one, or asks for too much."""
    try:
        request = _requests.decode(data)
    except msgspec.DecodeError as error:
        fault = "a request for weights that is not understood"
        raise PeerError(fault) from error
    too_much = not 0 <= request.start <= request.end or (request.end - request.start > MAX_RANGE_BYTES)
    if too_much or len(request.file) > MAX_FILE_NAME:
        fault = "a request for more weights than are given at once"
        raise PeerError(fault)
    return request


def decode_reply(data: bytes) -> bytes | None:
    """The bytes of a reply. Raises PeerError where it is not one."""
    try:
        return _replies.decode(data).data
    except msgspec.DecodeError as error:
        fault = "a reply about weights that is not understood"
        raise PeerError(fault) from error
