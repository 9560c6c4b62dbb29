"""Addresses of a rendezvous as people write them, with or without a certificate's fingerprint."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import PIN_BYTES, Authority, FirstUse, Pinned, pin_of

FINGERPRINT = bytes(range(0xA0, 0xC0))


@given(
    host=st.sampled_from(["127.0.0.1", "rendezvous.example.org", "2001:db8::1"]),
    port=st.integers(1, 65535),
    fingerprint=st.none() | st.binary(min_size=PIN_BYTES, max_size=32),
)
def test_what_is_written_is_read(host: str, port: int, fingerprint: bytes | None) -> None:
    at = RendezvousAt(Address(host, port), FirstUse() if fingerprint is None else Pinned(fingerprint))
    assert RendezvousAt.parse(str(at)) == at
    assert RendezvousAt.parse(f" {at}\n") == at
    assert RendezvousAt.parse(str(at).upper().lower()) == at


@pytest.mark.parametrize(
    "text",
    [
        "somewhere",
        "host:1#",
        "host:1#" + "5a" * (PIN_BYTES - 1),
        "host:1#" + "5a" * 33,
        "host:1#" + "5a" * PIN_BYTES + "5",
        "host:1#" + "5g" * PIN_BYTES,
        "host:1#" + "5a" * PIN_BYTES + "#",
        "#" + "5a" * PIN_BYTES,
        "host:1 #" + "5a:" * PIN_BYTES,
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not (HOST:PORT|the beginning of a fingerprint)"):
        RendezvousAt.parse(text)


@given(st.text())
def test_nothing_else_is_raised(text: str) -> None:
    with suppress(ValueError):
        RendezvousAt.parse(text)


def test_an_invitation_carries_the_beginning_of_a_fingerprint() -> None:
    assert pin_of(Pinned(FINGERPRINT)) == FINGERPRINT[:PIN_BYTES]
    assert pin_of(Authority("rendezvous.example.org")) is None
