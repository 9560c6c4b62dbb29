"""Activation frames: hidden states on their way round the ring, and the refusals that come back.

Layout of an activation frame, all integers big-endian:

    kind 1 · flags 1 · dtype 1 · hops 1 · epoch 4 · tiling 8 · request 8 · position 4 · rows 4 ·
    hidden 4 · spans 4·hops · digests 8·(rows + 1) · payload

`rows` counts the token positions that the frame advances. The payload holds `rows` rows of the
hidden state, or one where LAST_ONLY is set and the last stage has cut it.
"""

import struct
from enum import IntEnum

import msgspec

from kafila.domain.errors import PeerError
from kafila.domain.ids import RequestId
from kafila.protocol.digests import DIGEST_BYTES

TILING_BYTES = 8
MAX_ROWS = 4096
MAX_HIDDEN = 1 << 16
MAX_HOPS = 64

_FIXED = struct.Struct("!BBBBI8sQIII")
_REFUSED = struct.Struct("!BBI8sQII")
_DROP = struct.Struct("!BI8sQ")
_ACTIVATION, _REFUSAL, _RELEASE = 1, 2, 3
_LAST_ONLY = 1


class Dtype(IntEnum):
    """Element types of hidden states on the wire."""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 4 if self is Dtype.FLOAT32 else 2


class ActivationFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Hidden states of `rows` consecutive tokens of one sequence, from `position` on."""

    epoch: int
    tiling: bytes
    """8 bytes over the plan's division: a frame of another division is refused."""
    request: RequestId
    position: int
    rows: int
    hidden: int
    dtype: Dtype
    last_only: bool
    """The head wants the last row alone; the last stage sends no other."""
    digests: bytes
    """`rows` + 1 digests of the tokens before the frame and after each of its rows."""
    spans_us: tuple[int, ...]
    """Microseconds that each stage so far has computed, the head's own blocks first."""
    payload: bytes


class Refused(IntEnum):
    """Why a stage would not take a frame."""

    OTHER_PLAN = 1
    GAP = 2
    OTHER_TEXT = 3
    CANNOT_REWIND = 4


class RefusalFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A stage cannot continue a sequence from the frame's position; the head starts it anew."""

    epoch: int
    tiling: bytes
    request: RequestId
    reason: Refused
    position: int
    held: int
    """Tokens in the stage's cache."""


class ReleaseFrame(msgspec.Struct, frozen=True, kw_only=True):
    """The sequence is over: every stage frees its caches and passes the frame on."""

    epoch: int
    tiling: bytes
    request: RequestId


Frame = ActivationFrame | RefusalFrame | ReleaseFrame


def encode_frame(frame: Frame) -> bytes:
    """The frame as bytes for a link's channel."""
    match frame:
        case ActivationFrame():
            head = _FIXED.pack(
                _ACTIVATION,
                _LAST_ONLY if frame.last_only else 0,
                frame.dtype,
                len(frame.spans_us),
                frame.epoch,
                frame.tiling,
                frame.request,
                frame.position,
                frame.rows,
                frame.hidden,
            )
            spans = struct.pack(f"!{len(frame.spans_us)}I", *frame.spans_us)
            return b"".join((head, spans, frame.digests, frame.payload))
        case RefusalFrame():
            return _REFUSED.pack(
                _REFUSAL,
                frame.reason,
                frame.epoch,
                frame.tiling,
                frame.request,
                frame.position,
                frame.held,
            )
        case ReleaseFrame():
            return _DROP.pack(_RELEASE, frame.epoch, frame.tiling, frame.request)


def decode_frame(data: bytes) -> Frame:
    """Read a frame from a neighbour. Raises PeerError where any length or field is off."""
    try:
        match data[:1]:
            case b"\x01":
                return _decode_activation(data)
            case b"\x02":
                _, reason, epoch, tiling, request, position, held = _REFUSED.unpack(data)
                return RefusalFrame(
                    epoch=epoch,
                    tiling=tiling,
                    request=RequestId(request),
                    reason=Refused(reason),
                    position=position,
                    held=held,
                )
            case b"\x03":
                _, epoch, tiling, request = _DROP.unpack(data)
                return ReleaseFrame(epoch=epoch, tiling=tiling, request=RequestId(request))
            case _:
                pass
    except (struct.error, ValueError) as error:
        fault = "a frame whose fields do not fit together"
        raise PeerError(fault) from error
    fault = "a frame of an unknown kind"
    raise PeerError(fault)


def _decode_activation(data: bytes) -> ActivationFrame:
    (_, flags, dtype_code, hops, epoch, tiling, request, position, rows, hidden) = _FIXED.unpack_from(data)
    dtype = Dtype(dtype_code)
    last_only = bool(flags & _LAST_ONLY)
    if not (0 < rows <= MAX_ROWS and 0 < hidden <= MAX_HIDDEN and hops <= MAX_HOPS):
        fault = "a frame larger than any that is sent"
        raise PeerError(fault)
    spans_end = _FIXED.size + 4 * hops
    digests_end = spans_end + DIGEST_BYTES * (rows + 1)
    payload = data[digests_end:]
    row_bytes = hidden * dtype.size
    if len(payload) != rows * row_bytes and not (last_only and len(payload) == row_bytes):
        fault = "a frame whose length is not what its header says"
        raise PeerError(fault)
    return ActivationFrame(
        epoch=epoch,
        tiling=tiling,
        request=RequestId(request),
        position=position,
        rows=rows,
        hidden=hidden,
        dtype=dtype,
        last_only=last_only,
        digests=data[spans_end:digests_end],
        spans_us=struct.unpack_from(f"!{hops}I", data, _FIXED.size),
        payload=payload,
    )
