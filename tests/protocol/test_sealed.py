import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.errors import PeerError
from kafila.protocol.sealed import MAX_PLAIN_BYTES, MAX_SEALED_BYTES, SealedChannel, derive_key

KEYS = (b"\x01" * 32, b"\x02" * 32)


def sides() -> tuple[SealedChannel, SealedChannel]:
    return (
        SealedChannel(send_key=KEYS[0], receive_key=KEYS[1]),
        SealedChannel(send_key=KEYS[1], receive_key=KEYS[0]),
    )


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=64))))
def test_messages_arrive_whatever_the_turns(turns: list[tuple[bool, bytes]]) -> None:
    host, joiner = sides()
    for from_host, plain in turns:
        sender, receiver = (host, joiner) if from_host else (joiner, host)
        sealed = sender.seal(plain)
        assert plain not in sealed or len(plain) < 4
        assert receiver.open(sealed) == plain


@given(st.binary(min_size=1, max_size=40), st.integers(0), st.integers(1, 255))
def test_a_changed_message_does_not_open(plain: bytes, place: int, change: int) -> None:
    host, joiner = sides()
    sealed = bytearray(host.seal(plain))
    sealed[place % len(sealed)] ^= change
    with pytest.raises(PeerError):
        joiner.open(bytes(sealed))


@given(st.binary(max_size=100))
def test_garbage_does_not_open(data: bytes) -> None:
    with pytest.raises(PeerError):
        sides()[0].open(data)


def test_a_repeated_message_does_not_open() -> None:
    host, joiner = sides()
    sealed = host.seal(b"let in")
    assert joiner.open(sealed) == b"let in"
    with pytest.raises(PeerError):
        joiner.open(sealed)


def test_messages_in_another_order_do_not_open() -> None:
    host, joiner = sides()
    host.seal(b"first")
    with pytest.raises(PeerError):
        joiner.open(host.seal(b"second"))


def test_a_message_sent_back_to_its_sender_does_not_open() -> None:
    host, _ = sides()
    with pytest.raises(PeerError):
        host.open(host.seal(b"let in"))


def test_after_a_broken_message_not_even_the_right_one_opens() -> None:
    host, joiner = sides()
    sealed = host.seal(b"let in")
    with pytest.raises(PeerError):
        joiner.open(b"?" * 20)
    with pytest.raises(PeerError):
        joiner.open(sealed)


def test_sizes_are_bounded_on_both_sides() -> None:
    host, joiner = sides()
    largest = host.seal(bytes(MAX_PLAIN_BYTES))
    assert len(largest) == MAX_SEALED_BYTES
    assert joiner.open(largest) == bytes(MAX_PLAIN_BYTES)
    with pytest.raises(ValueError, match="at most"):
        host.seal(bytes(MAX_PLAIN_BYTES + 1))
    with pytest.raises(PeerError):
        joiner.open(bytes(MAX_SEALED_BYTES + 1))


def test_keys_differ_by_secret_transcript_and_use() -> None:
    variants = [
        derive_key(secret, transcript=transcript, use=use)
        for secret in (b"a" * 32, b"b" * 32)
        for transcript in (b"one", b"other")
        for use in ("joiner to host", "host to joiner")
    ]
    assert len(set(variants)) == len(variants)
    assert all(len(key) == 32 for key in variants)


def test_a_channel_shows_no_key() -> None:
    shown = repr(sides()[0])
    assert repr(KEYS[0])[2:-1] not in shown
    assert repr(KEYS[1])[2:-1] not in shown
