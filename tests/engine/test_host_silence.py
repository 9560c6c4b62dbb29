"""What a member makes of a host that says nothing, from page to page."""

import msgspec
import pytest

from helpers.sessions import NOWHERE, Play, member_id, model_spec
from kafila.domain.capability import Machine
from kafila.domain.commands import JoinSession
from kafila.domain.ids import SessionId
from kafila.domain.snapshot import Ended, Joining, Pace, Reach, RingMember, Serving, ThisComputer, WaitingRoom
from kafila.engine.events import CloseSession, Ticked, Welcomed
from kafila.engine.member import FIRST_LINK_S, HOST_GRACE_S
from kafila.engine.state import State
from kafila.protocol.control import View, Welcome
from kafila.protocol.links import LinkHeard, LinkQuiet, LinkUp, Peer

HOST, ME = member_id(1), member_id(2)

WAITING = WaitingRoom(
    is_host=False,
    group="Friends",
    model="A model",
    blocks=12,
    context=4096,
    concurrency=1,
    code=None,
    link=None,
    reach=Reach.SAME_NETWORK,
    trust_known=True,
    members=(),
    newcomers=(),
    plan=None,
)

SERVING = Serving(
    is_host=False,
    group="Friends",
    model="A model",
    context=4096,
    ring=tuple(
        RingMember(
            member=member,
            machine=Machine(name="Desk"),
            first=0,
            end=1,
            head=member == HOST,
            is_host=member == HOST,
            busy=0.0,
            stage_ms=None,
            resident_weight_bytes=1,
            process_id=1,
        )
        for member in (HOST, ME)
    ),
    edges=(),
    pace=Pace(),
    chatting=0,
    formed_in_s=1.0,
)


@pytest.fixture
def play() -> Play:
    """A computer that was let in a moment ago, long after it was started."""
    play = Play(state=State(me=ThisComputer(member=ME, machine=Machine(name="Laptop"))), now=1000.0)
    play.give(JoinSession(code="47-a-b-c-d"))
    host = Peer(member=HOST, spki_sha256=bytes(32), probe_key=bytes(32), candidates=NOWHERE)
    welcome = Welcome(
        session=SessionId("5e" * 16), roster=b"", host=host, model=model_spec(), context=4096, concurrency=1
    )
    play(Welcomed(welcome=welcome, host=Machine(name="Desk")))
    return play


def test_a_host_with_which_no_link_comes_about_is_given_up(play: Play) -> None:
    play.now += FIRST_LINK_S - 1
    assert play(Ticked()) == []
    assert isinstance(play.see().session, Joining)
    play.now += 2
    assert isinstance(play(Ticked())[-1], CloseSession)
    session = play.see().session
    assert isinstance(session, Ended)
    assert session.failed
    assert session.reason.title == "Desk does not answer"


def test_a_link_that_came_about_in_time_is_not_given_up(play: Play) -> None:
    play.link(LinkUp(peer=HOST))
    play.hear(1, View(view=WAITING))
    play.now += 10 * FIRST_LINK_S
    assert play(Ticked()) == []
    assert play.see().session == WAITING


def test_a_silent_host_is_told_in_the_waiting_room(play: Play) -> None:
    play.hear(1, View(view=WAITING))
    play.link(LinkQuiet(peer=HOST))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert room.problem is not None
    assert room.problem.title == "Desk stopped answering"
    play.link(LinkHeard(peer=HOST))
    assert play.see().session == WAITING


def test_a_silent_host_is_away_from_the_ring(play: Play) -> None:
    play.hear(1, View(view=SERVING))
    play.link(LinkQuiet(peer=HOST))
    play.now += 5
    serving = play.see().session
    assert isinstance(serving, Serving)
    assert [member.away_s for member in serving.ring] == [5.0, None]
    assert serving.grace_left_s == HOST_GRACE_S - 5


def test_whoever_waited_is_not_told_to_wait_longer(play: Play) -> None:
    play.hear(1, View(view=msgspec.structs.replace(SERVING, chatting=1)))
    play.link(LinkQuiet(peer=HOST))
    play.now += HOST_GRACE_S + 1
    play(Ticked())
    session = play.see().session
    assert isinstance(session, Ended)
    assert "the session is over" in session.reason.advice
