"""Control messages: understood or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.capability import Capability
from kafila.domain.errors import PeerError
from kafila.protocol.control import (
    MAX_CONTROL_BYTES,
    Leaving,
    Measured,
    decode_message,
    decode_sealed,
    encode_message,
)


def test_a_message_survives_the_wire() -> None:
    message = Measured(capability=Capability(room_bytes=1 << 33, bandwidth_bytes_s=1e9, flops_s=1e12))
    assert decode_message(encode_message(message)) == message


@given(st.binary(max_size=200))
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(PeerError):
        decode_message(junk)
    with pytest.raises(PeerError):
        decode_sealed(junk)


def test_what_is_too_long_is_not_even_read() -> None:
    with pytest.raises(PeerError, match="too long"):
        decode_message(bytes(MAX_CONTROL_BYTES + 1))


def test_a_sealed_message_is_no_control_message() -> None:
    with pytest.raises(PeerError):
        decode_sealed(encode_message(Leaving()))
