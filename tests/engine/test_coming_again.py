"""A computer that was let in and knocks again: its old link goes, and only a new one counts."""

from helpers.sessions import Play, guest, member_id
from kafila.domain.commands import Admission
from kafila.domain.snapshot import WaitingRoom
from kafila.engine.events import AnswerGuest, GuestCame, SetPeers, Ticked
from kafila.engine.host import GRACE_S
from kafila.protocol.links import LinkLost, LinkUp


def gathering() -> Play:
    play = Play()
    play.open(admission=Admission.ALL)
    return play


def members(play: Play) -> list[str]:
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    return [member.member for member in room.members[1:]]


def test_the_old_link_is_closed_before_the_welcome() -> None:
    play = gathering()
    play.arrive(1)
    play.arrive(2)
    effects = play(GuestCame(guest=guest(1)))
    told = [effect for effect in effects if isinstance(effect, SetPeers | AnswerGuest)]
    assert [type(effect) for effect in told] == [SetPeers, SetPeers, AnswerGuest]
    without, again = ({peer.member for peer in effect.peers} for effect in told if isinstance(effect, SetPeers))
    assert without == {member_id(2)}
    assert again == {member_id(1), member_id(2)}


def test_the_end_of_the_old_link_costs_the_new_seat_nothing() -> None:
    play = gathering()
    play.arrive(1)
    play(GuestCame(guest=guest(1)))
    play.link(LinkLost(peer=member_id(1), reason="removed"))
    assert members(play) == [member_id(1)]
    play.link(LinkUp(peer=member_id(1)))
    play.link(LinkLost(peer=member_id(1), reason="gone"))
    assert members(play) == []


def test_a_seat_with_which_no_link_comes_about_is_given_up() -> None:
    play = gathering()
    play(GuestCame(guest=guest(1)))
    play.now += GRACE_S - 1
    play(Ticked())
    assert members(play) == [member_id(1)]
    play.now += 2
    play(Ticked())
    assert members(play) == []
