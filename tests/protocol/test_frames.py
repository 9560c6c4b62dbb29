"""Activation frames: every field survives the wire, and nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.domain.ids import RequestId
from kafila.protocol.digests import DIGEST_BYTES
from kafila.protocol.frames import (
    TILING_BYTES,
    ActivationFrame,
    Dtype,
    Frame,
    RefusalFrame,
    Refused,
    ReleaseFrame,
    decode_frame,
    encode_frame,
)

EPOCHS = st.integers(0, 2**32 - 1)
TILINGS = st.binary(min_size=TILING_BYTES, max_size=TILING_BYTES)
REQUESTS = st.integers(0, 2**64 - 1).map(RequestId)
POSITIONS = st.integers(0, 2**32 - 1)


@st.composite
def activation_frames(draw: st.DrawFn) -> ActivationFrame:
    rows, hidden = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    dtype, last_only = draw(st.sampled_from(Dtype)), draw(st.booleans())
    sent_rows = 1 if last_only and draw(st.booleans()) else rows
    payload_bytes = sent_rows * hidden * dtype.size
    digest_bytes = DIGEST_BYTES * (rows + 1)
    return ActivationFrame(
        epoch=draw(EPOCHS),
        tiling=draw(TILINGS),
        request=draw(REQUESTS),
        position=draw(POSITIONS),
        rows=rows,
        hidden=hidden,
        dtype=dtype,
        last_only=last_only,
        digests=draw(st.binary(min_size=digest_bytes, max_size=digest_bytes)),
        spans_us=tuple(draw(st.lists(st.integers(0, 2**32 - 1), max_size=8))),
        payload=draw(st.binary(min_size=payload_bytes, max_size=payload_bytes)),
    )


FRAMES = st.one_of(
    activation_frames(),
    st.builds(
        RefusalFrame,
        epoch=EPOCHS,
        tiling=TILINGS,
        request=REQUESTS,
        reason=st.sampled_from(Refused),
        position=POSITIONS,
        held=POSITIONS,
    ),
    st.builds(ReleaseFrame, epoch=EPOCHS, tiling=TILINGS, request=REQUESTS),
)


@given(FRAMES)
def test_a_frame_survives_the_wire(frame: Frame) -> None:
    assert decode_frame(encode_frame(frame)) == frame


@given(FRAMES, st.data())
def test_a_cut_or_lengthened_frame_is_refused(frame: Frame, data: st.DataObject) -> None:
    wire = encode_frame(frame)
    cut = data.draw(st.integers(0, len(wire) - 1))
    with pytest.raises(PeerError):
        decode_frame(wire[:cut])
    with pytest.raises(PeerError):
        decode_frame(wire + b"\0")


@given(st.binary(max_size=300))
def test_junk_is_refused_or_read_as_what_it_is(junk: bytes) -> None:
    try:
        frame = decode_frame(junk)
    except PeerError:
        return
    assert encode_frame(frame)[2:] == junk[2:]  # unknown flag bits are dropped, nothing else
