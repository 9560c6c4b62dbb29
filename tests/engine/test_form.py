"""A plan is believed only with a newer roster that this session's host signed, and with that roster's keys."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from helpers.sessions import NOWHERE
from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError
from kafila.domain.ids import SessionId
from kafila.domain.plan import Figures, Objective, Plan, Tier
from kafila.engine.session import is_believed
from kafila.network.identity import DeviceIdentity
from kafila.protocol.control import Form
from kafila.protocol.links import Peer
from kafila.protocol.roster import Roster, RosterEntry, RosterKeeper, sign_roster

SESSION, OTHER_SESSION = SessionId("5e" * 16), SessionId("0f" * 16)
HOST, MEMBER, STRANGER = (DeviceIdentity.generate() for _ in range(3))
PLAN = Plan(
    objective=Objective.FASTEST,
    tier=Tier.FULL,
    tier_reason="",
    shares=(),
    edges=(),
    figures=Figures(bottleneck_ms=None, circuit_ms=None, tokens_per_second=None, utilisation=None, fits=True),
    tokens_per_second_alone=None,
    search="exact",
)


def form(
    epoch: int,
    *,
    signer: DeviceIdentity = HOST,
    session: SessionId = SESSION,
    key_of_member: bytes = MEMBER.spki_sha256,
) -> Form:
    entries = tuple(
        RosterEntry(member=one.member, spki_sha256=one.spki_sha256, machine=Machine(name="A computer"))
        for one in (HOST, MEMBER)
    )
    private = Ed25519PrivateKey.from_private_bytes(signer.to_bytes())
    peer = Peer(member=MEMBER.member, spki_sha256=key_of_member, probe_key=bytes(32), candidates=NOWHERE)
    roster = sign_roster(private, Roster(session=session, epoch=epoch, entries=entries))
    return Form(epoch=epoch, tiling=bytes(8), roster=roster, plan=PLAN, peers=(peer,))


@pytest.fixture
def keeper() -> RosterKeeper:
    """A member that has the roster of epoch 3."""
    keeper = RosterKeeper(host_spki_sha256=HOST.spki_sha256, session=SESSION)
    assert is_believed(form(3), keeper)
    return keeper


def test_a_newer_roster_of_the_host_is_believed(keeper: RosterKeeper) -> None:
    assert is_believed(form(4), keeper)


def test_the_same_or_an_older_one_is_not(keeper: RosterKeeper) -> None:
    assert not is_believed(form(3), keeper)
    assert not is_believed(form(2), keeper)


def test_one_that_somebody_else_signed_is_not(keeper: RosterKeeper) -> None:
    assert not is_believed(form(4, signer=STRANGER), keeper)


def test_one_of_another_session_is_not(keeper: RosterKeeper) -> None:
    assert not is_believed(form(4, session=OTHER_SESSION), keeper)


def test_a_peer_with_another_key_than_the_rosters_is_not(keeper: RosterKeeper) -> None:
    assert not is_believed(form(4, key_of_member=STRANGER.spki_sha256), keeper)


def test_before_being_let_in_nothing_is() -> None:
    assert not is_believed(form(1), None)


def test_what_is_no_roster_at_all_is_a_fault(keeper: RosterKeeper) -> None:
    broken = Form(epoch=4, tiling=bytes(8), roster=b"junk", plan=PLAN, peers=())
    with pytest.raises(PeerError):
        is_believed(broken, keeper)
