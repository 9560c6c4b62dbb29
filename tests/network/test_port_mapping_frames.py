"""PCP and NAT-PMP, byte by byte as their documents have them, and with junk."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.network.port_mapping_frames import (
    TCP,
    UDP,
    Granted,
    Refused,
    Wish,
    pcp_request,
    pmp_address_request,
    pmp_request,
    read_pcp,
    read_pmp,
    read_pmp_address,
)
from kafila.protocol.links import Address

WISH = Wish(protocol=UDP, port=0x1234, lifetime_s=600)
NONCE = bytes(range(12))
OUTSIDE = bytes(10) + b"\xff\xff" + bytes((198, 51, 100, 7))
ANSWER = b"\x02\x81\x00\x00" + b"\x00\x00\x02\x58" + bytes(16) + NONCE + b"\x11\0\0\0" + b"\x12\x34\x43\x21" + OUTSIDE


def test_a_pcp_request_is_laid_out_as_rfc_6887_says() -> None:
    request = pcp_request(WISH, "192.168.1.10", NONCE)
    assert len(request) == 60
    assert request[:8] == b"\x02\x01\x00\x00\x00\x00\x02\x58"
    assert request[8:24] == bytes(10) + b"\xff\xff" + bytes((192, 168, 1, 10))
    assert request[24:36] == NONCE
    assert request[36:44] == b"\x11\x00\x00\x00\x12\x34\x12\x34"
    assert request[44:] == bytes(10) + b"\xff\xff\0\0\0\0"


def test_a_pcp_answer_is_read() -> None:
    assert read_pcp(ANSWER, WISH, NONCE) == Granted(outside=Address("198.51.100.7", 0x4321), lifetime_s=600)


def test_refusals_and_older_routers_are_told_apart() -> None:
    assert read_pcp(ANSWER[:3] + b"\x02" + ANSWER[4:], WISH, NONCE) == Refused(code=2)
    assert read_pcp(b"\x00\x81\x00\x01\0\0\0\0", WISH, NONCE) == Refused(code=1, is_older=True)


@pytest.mark.parametrize(
    "other",
    [
        ANSWER[:24] + bytes(12) + ANSWER[36:],
        ANSWER[:36] + bytes((TCP,)) + ANSWER[37:],
        ANSWER[:40] + b"\x12\x35" + ANSWER[42:],
        ANSWER[:1] + b"\x01" + ANSWER[2:],
        ANSWER[:-1],
    ],
    ids=["another nonce", "another protocol", "another port", "a request", "cut short"],
)
def test_answers_to_something_else_are_none(other: bytes) -> None:
    with pytest.raises(PeerError):
        read_pcp(other, WISH, NONCE)


def test_nat_pmp_is_laid_out_as_rfc_6886_says() -> None:
    assert pmp_address_request() == b"\0\0"
    assert pmp_request(WISH) == b"\x00\x01\x00\x00\x12\x34\x12\x34\x00\x00\x02\x58"
    end = Wish(protocol=TCP, port=0x1234, lifetime_s=0)
    assert pmp_request(end) == b"\x00\x02\x00\x00\x12\x34\x00\x00\x00\x00\x00\x00"
    assert read_pmp_address(b"\x00\x80\x00\x00\0\0\0\x01" + bytes((198, 51, 100, 7))) == "198.51.100.7"
    answer = b"\x00\x81\x00\x00\0\0\0\x01\x12\x34\x43\x21\x00\x00\x00\x3c"
    assert read_pmp(answer, WISH, "198.51.100.7") == Granted(outside=Address("198.51.100.7", 0x4321), lifetime_s=60)
    assert read_pmp(answer[:3] + b"\x02" + answer[4:], WISH, "198.51.100.7") == Refused(code=2)


@given(st.binary(max_size=80))
def test_junk_is_an_answer_to_nothing(data: bytes) -> None:
    for read in (lambda: read_pcp(data, WISH, NONCE), lambda: read_pmp(data, WISH, "198.51.100.7")):
        with contextlib.suppress(PeerError):
            assert isinstance(read(), Refused)
