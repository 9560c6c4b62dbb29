from contextlib import suppress

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from helpers.joining import SESSION, person
from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId, SessionId
from kafila.protocol.roster import (
    MAX_MEMBERS,
    BadSignature,
    ForeignSession,
    OldEpoch,
    Roster,
    RosterEntry,
    RosterKeeper,
    fingerprint_of,
    member_id_of,
    sign_roster,
)

HOST = Ed25519PrivateKey.from_private_bytes(b"h" * 32)
STRANGER = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
ELSEWHERE = SessionId("a0" * 16)


def entry(name: str) -> RosterEntry:
    me = person(name)
    return RosterEntry(member=member_id_of(me.spki_sha256), spki_sha256=me.spki_sha256, machine=me.machine)


def roster(epoch: int = 1, *names: str, session: SessionId = SESSION) -> Roster:
    return Roster(session=session, epoch=epoch, entries=tuple(entry(name) for name in names or ("Attic", "Kitchen")))


def keeper() -> RosterKeeper:
    return RosterKeeper(host_spki_sha256=fingerprint_of(HOST.public_key()), session=SESSION)


def signed_as_it_is(content: object, key: Ed25519PrivateKey = HOST) -> bytes:
    """A host that signs anything: the checks are the keeper's own."""
    honest: list[bytes] = msgspec.msgpack.decode(sign_roster(key, roster()), type=list[bytes])
    encoded = msgspec.msgpack.encode(content)
    return msgspec.msgpack.encode([encoded, honest[1], key.sign(b"kafila roster 1\0" + encoded)])


def test_a_signed_roster_is_taken_in() -> None:
    held = keeper()
    assert held.current is None
    taken = held.accept(sign_roster(HOST, roster()))
    assert taken == roster()
    assert held.current == taken
    assert roster().entry(entry("Attic").member) == entry("Attic")
    assert roster().entry(MemberId("0" * 16)) is None


def test_the_fingerprint_is_that_of_the_certificates_public_key() -> None:
    assert member_id_of(fingerprint_of(HOST.public_key())) == fingerprint_of(HOST.public_key()).hex()[:16]
    assert fingerprint_of(HOST.public_key()) != fingerprint_of(STRANGER.public_key())


def test_newer_epochs_replace_older_ones_and_never_the_other_way() -> None:
    held = keeper()
    first, second = sign_roster(HOST, roster(3)), sign_roster(HOST, roster(7, "Attic"))
    assert isinstance(held.accept(first), Roster)
    assert isinstance(held.accept(second), Roster)
    assert held.accept(first) == OldEpoch(epoch=3, held=7)
    assert held.accept(second) == OldEpoch(epoch=7, held=7)
    assert held.accept(sign_roster(HOST, roster(7, "Kitchen"))) == OldEpoch(epoch=7, held=7)
    assert held.current == roster(7, "Attic")


def test_a_roster_of_another_session_is_refused() -> None:
    held = keeper()
    foreign = sign_roster(HOST, roster(session=ELSEWHERE))
    assert held.accept(foreign) == ForeignSession(session=ELSEWHERE)
    assert held.current is None


def test_a_roster_that_a_stranger_signed_is_refused() -> None:
    held = keeper()
    assert held.accept(sign_roster(STRANGER, roster())) == BadSignature()
    body, _, signature = msgspec.msgpack.decode(sign_roster(STRANGER, roster()), type=list[bytes])
    _, spki, _ = msgspec.msgpack.decode(sign_roster(HOST, roster()), type=list[bytes])
    assert held.accept(msgspec.msgpack.encode([body, spki, signature])) == BadSignature()
    assert held.current is None


def test_a_signature_for_another_purpose_is_refused() -> None:
    body, spki, _ = msgspec.msgpack.decode(sign_roster(HOST, roster()), type=list[bytes])
    assert keeper().accept(msgspec.msgpack.encode([body, spki, HOST.sign(body)])) == BadSignature()


@given(st.integers(0), st.integers(1, 255))
def test_a_changed_roster_is_refused(place: int, change: int) -> None:
    held = keeper()
    data = bytearray(sign_roster(HOST, roster()))
    data[place % len(data)] ^= change
    with suppress(PeerError):
        assert held.accept(bytes(data)) == BadSignature()
    assert held.current is None


@given(st.binary(max_size=300))
def test_garbage_is_a_fault(data: bytes) -> None:
    with pytest.raises(PeerError):
        keeper().accept(data)


@given(st.recursive(st.none() | st.integers() | st.binary(max_size=40) | st.text(max_size=8), st.lists, max_leaves=6))
def test_signed_garbage_is_a_fault(content: object) -> None:
    if isinstance(content, int) and not -(1 << 63) <= content < 1 << 64:
        return
    try:
        data = signed_as_it_is(content)
    except OverflowError:
        return
    with pytest.raises(PeerError):
        keeper().accept(data)


def mistaken() -> list[Roster]:
    attic = entry("Attic")
    other_id = msgspec.structs.replace(attic, member=entry("Kitchen").member)
    other_case = msgspec.structs.replace(attic, member=MemberId(attic.member.upper()))
    return [
        Roster(session=SESSION, epoch=1, entries=(other_id,)),
        Roster(session=SESSION, epoch=1, entries=(other_case,)),
        Roster(session=SESSION, epoch=1, entries=(attic, attic)),
        roster(1, *(f"computer {number}" for number in range(MAX_MEMBERS + 1))),
        Roster(session=SESSION, epoch=1, entries=(msgspec.structs.replace(attic, spki_sha256=b"short"),)),
        Roster(session=SESSION, epoch=-1, entries=(attic,)),
        Roster(session=SESSION, epoch=1 << 32, entries=(attic,)),
    ]


@pytest.mark.parametrize("wrong", mistaken())
def test_a_roster_that_cannot_be_right_is_a_fault_whoever_signed_it(wrong: Roster) -> None:
    held = keeper()
    with pytest.raises(PeerError):
        held.accept(signed_as_it_is(wrong))
    assert held.current is None


@pytest.mark.parametrize("wrong", mistaken()[:4])
def test_no_such_roster_is_signed(wrong: Roster) -> None:
    with pytest.raises(ValueError, match="not a roster"):
        sign_roster(HOST, wrong)


def test_as_many_members_as_there_may_be() -> None:
    full = roster(1, *(f"computer {number}" for number in range(MAX_MEMBERS)))
    assert keeper().accept(sign_roster(HOST, full)) == full


def test_names_in_a_roster_are_made_safe_to_show() -> None:
    odd = msgspec.structs.replace(entry("Attic"), machine=Machine(name="\u202eAttic\n" + "x" * 100))
    taken = keeper().accept(sign_roster(HOST, Roster(session=SESSION, epoch=1, entries=(odd,))))
    assert isinstance(taken, Roster)
    assert taken.entries[0].machine.name == ("Attic " + "x" * 100)[:40]


def test_a_roster_longer_than_any_is_a_fault() -> None:
    with pytest.raises(PeerError, match="longer"):
        keeper().accept(bytes(1 << 20))
