"""The waiting room, the way in, the forming ring, and the end: what they show and what they ask."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui.conftest import Show
from helpers import snapshots
from kafila.domain.commands import Admit, Command, Decline, LeaveSession, NewCode, Remove, StartRing, TrustKnown
from kafila.domain.errors import Problem
from kafila.domain.plan import Refusal
from kafila.domain.snapshot import Forming, FormStep, JoinStep, NoPort, Reach
from kafila.gui.bridge import EngineStopped
from kafila.gui.pages.ended import EndedPage, EngineStoppedPage
from kafila.gui.pages.forming import FormingPage
from kafila.gui.pages.joining import JoiningPage, PreparingPage
from kafila.gui.pages.waiting_room import MemberRow, NewcomerRow, WaitingRoomPage
from kafila.gui.theme import Theme
from kafila.gui.widgets.notice import Asking

LEFT = Qt.MouseButton.LeftButton


def _dialog() -> Asking:
    dialogs = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, Asking) and widget.isVisible()]
    assert len(dialogs) == 1
    return dialogs[0]


# The waiting room --------------------------------------------------------------------------------


@pytest.fixture
def room(theme: Theme, sent: list[Command], show: Show) -> WaitingRoomPage:
    page = WaitingRoomPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.waiting_room())
    return page


def _members(page: WaitingRoomPage) -> list[MemberRow]:
    return [row for row in page.list.rows() if isinstance(row, MemberRow)]


def _newcomer(page: WaitingRoomPage) -> NewcomerRow:
    return next(row for row in page.list.rows() if isinstance(row, NewcomerRow))


def test_the_code_can_be_copied_and_renewed(room: WaitingRoomPage, sent: list[Command]) -> None:
    card = room.code_card
    assert card.code.code == snapshots.CODE
    QTest.mouseClick(card.copy_code, LEFT)
    assert QGuiApplication.clipboard().text() == snapshots.CODE
    assert card.copy_code.accessibleName() == "Copied"
    QTest.mouseClick(card.copy_link, LEFT)
    invitation = QGuiApplication.clipboard().text()
    assert "Sunday group" in invitation
    assert f"kafila://join/{snapshots.CODE}" in invitation
    QTest.mouseClick(card.new_code, LEFT)
    assert sent == [NewCode()]


def test_where_only_the_link_works_no_code_is_shown(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(code=None))
    assert not room.code_card.code.isVisible()
    assert not room.code_card.copy_code.isVisible()
    assert room.code_card.copy_link.isVisible()


@pytest.mark.parametrize(
    ("reach", "no_port", "pill", "notice"),
    [
        (Reach.SAME_NETWORK, None, "Open to people on this network", None),
        (Reach.PROBABLY_ANYWHERE, None, "Probably open to people elsewhere", "Nobody has come in that way yet"),
        (Reach.ANYWHERE, None, "Open to people anywhere", "Send the invitation to people elsewhere"),
        (Reach.NEEDS_RENDEZVOUS, NoPort.REFUSED, "Open to people on this network", "The router opens no way in"),
        (Reach.RENDEZVOUS, None, "Open to people with the code", None),
        (Reach.RENDEZVOUS, NoPort.NOT_REACHED, "Open to people with the code", "nobody outside gets through"),
    ],
)
def test_the_host_sees_from_where_people_can_join(
    room: WaitingRoomPage, reach: Reach, no_port: NoPort | None, pill: str, notice: str | None
) -> None:
    room.show_snapshot(snapshots.waiting_room(reach=reach, no_port=no_port))
    assert room.reach.text() == pill
    shown = [each.words() for each in room.way_in.values() if each.isVisible()]
    assert len(shown) == (0 if notice is None else 1)
    assert notice is None or notice in shown[0]
    room.show_snapshot(snapshots.waiting_room(reach=reach, no_port=no_port, is_host=False, code=None, link=None))
    assert not any(each.isVisible() for each in room.way_in.values())


def test_members_are_told_by_owner_speed_and_way(room: WaitingRoomPage) -> None:
    names = [row.accessibleName() for row in _members(room)]
    assert names == [
        "Studio laptop, This computer · you, 10.4 GB room, Leads",
        "Living-room PC, Jo · same network, 11.0 GB room, Direct",
        "Office desktop, Noor · far away, 8.2 GB room, Direct",
        "Attic mini, Kit · strict network, 6.4 GB room, Relayed",
    ]
    assert [row.speed.text() for row in _members(room)] == ["Fast", "Very fast", "Medium", "Medium"]


def test_a_newcomer_is_let_in_or_not(room: WaitingRoomPage, sent: list[Command]) -> None:
    newcomer = _newcomer(room)
    assert newcomer.title.words() == "Kitchen laptop asks to join"
    assert newcomer.second.words() == "Sam · check the words with Sam: amber heron cloud"
    QTest.mouseClick(newcomer.let_in, LEFT)
    QTest.mouseClick(newcomer.not_now, LEFT)
    assert sent == [Admit(member=snapshots.KITCHEN.member), Decline(member=snapshots.KITCHEN.member)]


def test_rows_stay_the_same_widgets_while_the_room_changes(room: WaitingRoomPage) -> None:
    before = _members(room)
    room.show_snapshot(snapshots.waiting_room(newcomers=()))
    assert _members(room) == before
    assert len(room.list.rows()) == 4


def test_somebody_elses_name_is_never_markup(room: WaitingRoomPage) -> None:
    machine = snapshots.KITCHEN.machine
    evil = type(machine)(name="<b>x</b>", owner="<img src=x>", kind=machine.kind)
    newcomers = (snapshots.Newcomer(member=snapshots.KITCHEN.member, machine=evil, phrase=("a", "b"), known=False),)
    room.show_snapshot(snapshots.waiting_room(newcomers=()))
    room.show_snapshot(snapshots.waiting_room(newcomers=newcomers))
    assert _newcomer(room).title.words() == "<b>x</b> asks to join"
    assert "<img src=x>" in _newcomer(room).second.words()
    row = MemberRow(room.theme, snapshots.member(snapshots.ATTIC))
    row.add_menu("More about <img src=x>", ())
    assert row.more is not None
    assert "<img" not in row.more.toolTip()


def test_trust_is_switched(room: WaitingRoomPage, sent: list[Command]) -> None:
    assert room.trust.isChecked()
    QTest.mouseClick(room.trust, LEFT)
    assert sent == [TrustKnown(on=False)]


def test_removing_asks_first(room: WaitingRoomPage, sent: list[Command]) -> None:
    row = _members(room)[3]
    assert row.menu is not None
    row.menu.actions()[0].trigger()
    assert sent == []
    QTest.mouseClick(_dialog().go, LEFT)
    assert sent == [Remove(member=snapshots.ATTIC.member)]


def test_the_host_itself_cannot_be_removed(room: WaitingRoomPage) -> None:
    assert [row.menu is None for row in _members(room)] == [True, False, False, False]


def test_a_plan_that_fits_can_be_started(room: WaitingRoomPage, sent: list[Command]) -> None:
    assert room.plan.pill.text() == "It fits"
    assert room.plan.plan.speed.text() == "4.0"
    assert room.summary.words() == "Ready with 4 computers"
    assert room.start.accessibleName() == "Start with 4 computers"
    QTest.mouseClick(room.start, LEFT)
    assert sent == [StartRing()]


def test_a_refusal_says_who_is_short_by_how_much(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(plan=snapshots.refusal()))
    assert not room.start.isEnabled()
    assert room.plan.pill.text() == "Does not fit yet"
    assert room.plan.refusal.title.words() == "Attic mini is 5.1 GB short"
    assert room.plan.refusal.isVisible()
    assert not room.plan.plan.isVisible()
    assert room.summary.words() == "The model does not fit yet"


def test_a_host_alone_is_told_calmly_that_more_are_needed(room: WaitingRoomPage) -> None:
    refusal = Refusal(member=None, sentence="The group needs more room.", needs_bytes=20, has_bytes=10)
    room.show_snapshot(
        snapshots.waiting_room(plan=refusal, members=(snapshots.member(snapshots.STUDIO),), newcomers=())
    )
    assert room.plan.pill.text() == "Needs more computers"


def test_nothing_starts_before_everybody_is_measured(room: WaitingRoomPage) -> None:
    members = (snapshots.member(snapshots.STUDIO), snapshots.member(snapshots.LIVING, measured=False))
    room.show_snapshot(snapshots.waiting_room(members=members, plan=None))
    assert not room.start.isEnabled()
    assert room.plan.pill.text() == "Measuring"
    assert room.summary.words() == "A computer is being measured"


def test_a_problem_of_the_room_is_shown(room: WaitingRoomPage) -> None:
    problem = Problem(title="Someone tried wrong codes", advice="A new code was made.")
    room.show_snapshot(snapshots.waiting_room(problem=problem))
    assert room.problem.words() == "Someone tried wrong codes. A new code was made."


def test_ending_with_others_in_asks_first(room: WaitingRoomPage, sent: list[Command]) -> None:
    QTest.mouseClick(room.leave, LEFT)
    dialog = _dialog()
    QTest.mouseClick(dialog.stay, LEFT)
    assert sent == []
    QTest.mouseClick(room.leave, LEFT)
    QTest.mouseClick(_dialog().go, LEFT)
    assert sent == [LeaveSession()]


def test_a_member_sees_the_room_without_the_code(room: WaitingRoomPage, sent: list[Command]) -> None:
    room.show_snapshot(snapshots.waiting_room(is_host=False, code=None, link=None, newcomers=()))
    assert not room.code_card.isVisible()
    assert room.heading.isVisible()
    assert room.heading.text() == "Sunday group"
    assert room.waiting.words() == "You are in. Maya starts when everyone is here."
    assert not room.start.isVisible()
    QTest.mouseClick(room.leave, LEFT)
    assert sent == [LeaveSession()]


# The way in --------------------------------------------------------------------------------------


def test_joining_shows_host_phrase_and_steps(theme: Theme, sent: list[Command], show: Show) -> None:
    page = JoiningPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.joining(JoinStep.FINDING))
    assert not page.phrase.isVisible()
    page.show_snapshot(snapshots.joining())
    assert page.title.words() == "Living-room PC is hosting Sunday group"
    assert page.phrase.isVisible()
    assert page.phrase.accessibleName() == "amber, heron, cloud"
    page.show_snapshot(snapshots.joining(JoinStep.MEASURING))
    assert page.pill.text() == "You are in"
    QTest.mouseClick(page.leave, LEFT)
    assert sent == [LeaveSession()]


def test_preparing_says_what_takes_the_time(theme: Theme, sent: list[Command], show: Show) -> None:
    page = PreparingPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.preparing())
    assert page.doing.words() == "Getting SmolLM2 135M ready."
    QTest.mouseClick(page.leave, LEFT)
    assert sent == [LeaveSession()]


# The ring is made --------------------------------------------------------------------------------


@pytest.fixture
def forming(theme: Theme, sent: list[Command], show: Show) -> FormingPage:
    page = FormingPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.forming())
    return page


def test_forming_has_a_row_for_every_computer(forming: FormingPage) -> None:
    assert [row.accessibleName() for row in forming.list.rows()] == [
        "Studio laptop: Ready. Waiting for the others",
        "Living-room PC: Connecting. To its two neighbours in the ring",
        "Office desktop: Loading. 3.5 of 5.4 GB",
        "Attic mini: Fetching its parts. 1.2 of 2.8 GB",
    ]
    assert forming.placed.text() == "21.4 GB"


def test_every_step_of_forming_has_its_words(forming: FormingPage) -> None:
    session = snapshots.forming().session
    assert isinstance(session, Forming)
    for step in FormStep:
        row = snapshots.FormingMember(member=snapshots.STUDIO.member, machine=snapshots.STUDIO.machine, step=step)
        changed = Forming(is_host=True, group="g", model="m", plan=session.plan, rows=(row,))
        forming.show_snapshot(snapshots.snapshot(changed))
        assert forming.list.rows()[0].status.text()


def test_stopping_asks_the_host_first(forming: FormingPage, sent: list[Command]) -> None:
    QTest.mouseClick(forming.stop, LEFT)
    assert sent == []
    QTest.mouseClick(_dialog().go, LEFT)
    assert sent == [LeaveSession()]


def test_forming_fits_into_a_narrow_window(forming: FormingPage) -> None:
    forming.resize(704, 600)
    rows = forming.list.rows()
    assert all(row.width() <= 704 - 48 for row in rows)
    assert rows[0].status.mapTo(forming, rows[0].status.rect().topRight()).x() <= 704


# The end -----------------------------------------------------------------------------------------


def test_the_end_says_why(theme: Theme, sent: list[Command], show: Show) -> None:
    page = EndedPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.ended())
    assert page.pill.text() == "Session lost"
    assert page.title.words() == "Attic mini stopped answering"
    page.show_snapshot(snapshots.ended(failed=False))
    assert page.pill.text() == "Session over"
    QTest.mouseClick(page.home, LEFT)
    assert sent == [LeaveSession()]


def test_a_stopped_engine_can_be_reported(theme: Theme, sent: list[Command], show: Show) -> None:
    page = EngineStoppedPage(theme, sent.append)
    show(page)
    page.show_stopped(EngineStopped(exit_code=-6, last_lines=("the compute library gave up",)))
    QTest.mouseClick(page.copy, LEFT)
    report = QGuiApplication.clipboard().text()
    assert "exit code: -6" in report
    assert "the compute library gave up" in report


def test_where_the_others_come_by_themselves_nobody_is_asked_to_send_the_code(room: WaitingRoomPage) -> None:
    room.show_snapshot(snapshots.waiting_room(starts_at=3, reach=Reach.THIS_COMPUTER, newcomers=()))
    assert room.code_card.code.isVisible()
    for for_people in (room.code_card.copy_code, room.code_card.copy_link, room.code_card.new_code, room.trust):
        assert not for_people.isVisible()
    assert not room.start.isVisible()
    assert "by itself" in room.summary.words()
