"""What is kept of a configured rendezvous's certificate, and what a person is told of it."""

from pathlib import Path

import pytest

from kafila.domain.capability import Machine
from kafila.domain.errors import UserError
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import ThisComputer
from kafila.engine.events import KeepRendezvous, RendezvousMet
from kafila.engine.known_rendezvous import VOUCHED_FOR, met, recall
from kafila.engine.settings import MAX_CERTIFICATES, SettingsFile
from kafila.engine.state import State, snapshot, step
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import Authority, FirstUse, Pinned

THERE = "rendezvous.example.org:47470"
ONE, OTHER = bytes(range(32)), bytes(range(32, 64))
KNOWN = {THERE: ONE.hex(), "10.0.0.1:47470": VOUCHED_FOR, "10.0.0.2:47470": "", "127.0.0.1:47470": ONE.hex()}


def test_what_was_seen_before_counts_and_what_is_written_counts_more() -> None:
    def trust(text: str) -> object:
        at = recall(text, KNOWN)
        assert at is not None
        return at.trust

    assert trust(THERE) == Pinned(ONE, remembered=True)
    assert trust(f"{THERE}#{OTHER.hex()}") == Pinned(OTHER)
    assert trust("10.0.0.1:47470") == Authority("10.0.0.1")
    assert trust("10.0.0.1:47471") == FirstUse()
    assert trust("10.0.0.2:47470") == FirstUse()
    # On this computer nobody is in between, and programs come and go.
    assert trust("127.0.0.1:47470") == FirstUse()
    assert recall(None, KNOWN) is None


@pytest.mark.parametrize("text", ["", "somewhere", f"{THERE}#", f"{THERE}#12"])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(UserError, match="is not an address"):
        recall(text, KNOWN)


def test_a_certificate_is_kept_and_told_only_where_nobody_vouched_for_it() -> None:
    address = Address.parse(THERE)
    kept = ONE.hex()
    first = met(RendezvousAt(address), Pinned(ONE))
    assert first == RendezvousMet(address=THERE, certificate=kept, unverified=True)
    for trust in (Pinned(ONE), Pinned(ONE, remembered=True)):
        assert met(RendezvousAt(address, trust), trust) == RendezvousMet(
            address=THERE, certificate=kept, unverified=False
        )
    vouched = met(RendezvousAt(address), Authority(address.host))
    assert vouched == RendezvousMet(address=THERE, certificate=VOUCHED_FOR, unverified=False)
    for here in ("127.0.0.1", "::1", "localhost"):
        assert met(RendezvousAt(Address(here, 47470)), Pinned(ONE)) is None


def test_a_person_is_told_once_and_sees_it() -> None:
    me = ThisComputer(member=MemberId("a" * 16), machine=Machine(name="Desk"))
    news = RendezvousMet(address=THERE, certificate=ONE.hex(), unverified=True)
    state, effects = step(State(me=me), news, 0.0)
    assert effects == [KeepRendezvous(address=THERE, certificate=ONE.hex())]
    (notice,) = snapshot(state, 0.0).me.notices
    assert THERE in notice.sentence()
    assert "was not verified" in notice.sentence()
    again = RendezvousMet(address=THERE, certificate=ONE.hex(), unverified=False)
    state, effects = step(state, again, 1.0)
    assert len(effects) == len(state.me.notices) == 1


def test_settings_remember_the_newest_of_them(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path)
    settings.remember(THERE, VOUCHED_FOR)
    settings.remember(THERE, ONE.hex())
    assert SettingsFile(tmp_path).value.certificates == {THERE: ONE.hex()}
    for port in range(1, MAX_CERTIFICATES + 1):
        settings.remember(f"10.0.0.1:{port}", OTHER.hex())
    kept = SettingsFile(tmp_path).value.certificates
    assert len(kept) == MAX_CERTIFICATES
    assert THERE not in kept
