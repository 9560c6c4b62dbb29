"""The window shows the page that fits, leads from one to the next, and asks before others lose something."""

from itertools import product

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.conftest import Show
from helpers import snapshots
from kafila.domain.commands import Command, HostSession, JoinSession, LeaveSession, PlanAnew, StartRing, TryDemo
from kafila.domain.snapshot import Serving, Snapshot
from kafila.gui.app import make_session_pages
from kafila.gui.bridge import EngineStopped
from kafila.gui.codes import code_words
from kafila.gui.rail import Place
from kafila.gui.serving.page import ServingPage
from kafila.gui.theme import Looks, Mode, Role, Theme
from kafila.gui.widgets import Button, IconButton, Text, Tile
from kafila.gui.widgets.choices import Check, Segments
from kafila.gui.widgets.notice import Asking
from kafila.gui.window import Window
from kafila.protocol.invitation import make_code

LEFT = Qt.MouseButton.LeftButton
SPOKEN = make_code(47, b"\x01\x82\x63\x34\x95", code_words()).spoken()


@pytest.fixture
def window(theme: Theme, sent: list[Command], show: Show) -> Window:
    window = Window(theme, sent.append, lambda theme, send: make_session_pages(theme, send, None))
    show(window)
    window.resize(1280, 800)
    return window


def _dialog() -> Asking:
    dialogs = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, Asking) and widget.isVisible()]
    assert len(dialogs) == 1
    return dialogs[0]


def test_nothing_is_drawn_as_focused_before_anything_is(theme: Theme, sent: list[Command], show: Show) -> None:
    window = Window(theme, sent.append, lambda theme, send: make_session_pages(theme, send, None))
    window.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    show(window)
    frame = window.focus_frame
    assert frame.widget() is not None or not frame.isVisible()


def test_before_the_engine_speaks_it_says_so(window: Window) -> None:
    assert window.page() is window.waking


def test_every_kind_of_session_has_its_page(window: Window) -> None:
    kinds = (
        (snapshots.idle(), window.start, Place.HOME),
        (snapshots.preparing(), window.preparing, Place.HOME),
        (snapshots.joining(), window.joining, Place.HOME),
        (snapshots.waiting_room(), window.room, Place.SESSION),
        (snapshots.forming(), window.forming, Place.SESSION),
        (snapshots.ended(), window.ended, Place.SESSION),
    )
    for snapshot, page, place in kinds:
        window.show_snapshot(snapshot)
        assert window.stack.currentWidget() is page
        assert window.rail.button(place).isChecked()


def _planned(word: str, *, is_host: bool = True) -> Snapshot:
    session = snapshots.serving().session
    assert isinstance(session, Serving)
    return snapshots.snapshot(msgspec.structs.replace(session, planned=word, is_host=is_host))


def test_what_came_of_dividing_anew_is_said(window: Window, sent: list[Command]) -> None:
    page = window.session_pages.serving
    assert isinstance(page, ServingPage)
    window.show_snapshot(snapshots.serving())
    for _ in range(2):
        page.divide.trigger()
        _dialog().go.click()
        # Also when it is the same as before, for it was asked again.
        window.show_snapshot(_planned("The parts are divided as well as they can be."))
        assert window.toast.accessibleName() == "The parts are divided as well as they can be."
        assert window.toast.isVisible()
        window.toast.hide()
        window.show_snapshot(_planned("The parts are divided as well as they can be."))
        assert not window.toast.isVisible()
    assert sent == [PlanAnew(), PlanAnew()]


def test_dividing_anew_leads_over_the_forming_page_back_to_the_chat(window: Window) -> None:
    page = window.session_pages.serving
    assert isinstance(page, ServingPage)
    window.show_snapshot(snapshots.serving())
    page.divide.trigger()
    _dialog().go.click()
    window.show_snapshot(snapshots.forming())
    assert window.stack.currentWidget() is window.forming
    window.show_snapshot(snapshots.serving())
    assert window.stack.currentWidget() is page
    assert not page.ended.isVisible()
    assert window.toast.accessibleName() == "The parts are divided anew."
    assert window.toast.isVisible()


def test_a_long_sentence_in_passing_is_read_whole(window: Window) -> None:
    window.resize(760, 600)
    window.toast.say("The parts are divided as well as they can be. " * 4)
    assert window.toast.width() <= 760
    one_line = window.theme.line(Role.BODY)
    assert window.toast.height() > 2 * one_line
    window.toast.say("Short.")
    assert window.toast.height() < 3 * one_line


def test_members_are_not_told_what_only_the_host_asked(window: Window) -> None:
    window.show_snapshot(_planned("", is_host=False))
    window.show_snapshot(_planned("Ask something first.", is_host=False))
    assert not window.toast.isVisible()


def test_a_serving_session_has_ring_and_graphs(window: Window) -> None:
    window.show_snapshot(snapshots.serving())
    assert window.stack.currentWidget() is window.session_pages.serving
    assert window.windowTitle() == "Sunday group"
    window.rail.button(Place.GRAPHS).click()
    assert window.stack.currentWidget() is window.session_pages.graphs


def test_what_served_stays_readable_when_it_has_ended(window: Window) -> None:
    window.show_snapshot(snapshots.serving())
    window.show_snapshot(snapshots.ended())
    assert window.stack.currentWidget() is window.session_pages.serving
    window.rail.button(Place.HOME).click()
    assert window.stack.currentWidget() is window.start
    assert window.start.host_button.isEnabled()


def test_places_without_a_session_cannot_be_reached(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    assert not window.rail.button(Place.SESSION).isEnabled()
    assert not window.rail.button(Place.GRAPHS).isEnabled()


def test_the_way_of_a_host(window: Window, sent: list[Command]) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.host_button, LEFT)
    assert window.page() is window.model
    QTest.mouseClick(window.model.go_on, LEFT)
    assert window.page() is window.conversations
    QTest.mouseClick(window.conversations.back_button, LEFT)
    assert window.page() is window.model
    QTest.mouseClick(window.model.go_on, LEFT)
    QTest.mouseClick(window.conversations.get_code, LEFT)
    window.show_snapshot(snapshots.preparing())
    window.show_snapshot(snapshots.waiting_room())
    QTest.mouseClick(window.room.start, LEFT)
    assert [type(command) for command in sent] == [HostSession, StartRing]


def test_a_failed_attempt_to_join_leads_back_to_the_field(window: Window, sent: list[Command]) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.join_button, LEFT)
    window.join.field.setText(SPOKEN)
    QTest.mouseClick(window.join.join, LEFT)
    window.show_snapshot(snapshots.joining())
    window.show_snapshot(snapshots.idle("This code has ended", "Ask Jo for a new one."))
    assert sent == [JoinSession(code=SPOKEN)]
    assert window.page() is window.join
    assert window.join.verdict.words() == "This code has ended. Ask Jo for a new one."


def test_a_refused_code_without_a_visible_change_is_told_too(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.join_button, LEFT)
    window.join.field.setText(SPOKEN)
    QTest.mouseClick(window.join.join, LEFT)
    window.show_snapshot(snapshots.idle("No session answers to 47", "Check the number."))
    assert window.join.verdict.words() == "No session answers to 47. Check the number."


def test_a_failed_attempt_to_host_leads_back_to_its_page(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.host_button, LEFT)
    QTest.mouseClick(window.model.go_on, LEFT)
    QTest.mouseClick(window.conversations.get_code, LEFT)
    window.show_snapshot(snapshots.preparing())
    window.show_snapshot(snapshots.idle("The folder is incomplete", "Copy it again."))
    assert window.page() is window.conversations
    assert window.conversations.problem.words() == "The folder is incomplete. Copy it again."


def test_a_failed_demo_is_told_at_the_start(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.try_button, LEFT)
    window.show_snapshot(snapshots.preparing())
    window.show_snapshot(snapshots.idle("The port is in use", "Close the other program."))
    assert window.page() is window.start
    assert window.start.problem.words() == "The port is in use. Close the other program."
    QTest.mouseClick(window.start.try_button, LEFT)
    assert window.start.problem.isHidden()


def test_ending_before_the_ring_leads_home(window: Window, sent: list[Command]) -> None:
    window.show_snapshot(snapshots.waiting_room(members=(snapshots.member(snapshots.STUDIO),)))
    QTest.mouseClick(window.room.leave, LEFT)
    window.show_snapshot(snapshots.ended(failed=False))
    assert sent == [LeaveSession(), LeaveSession()]
    window.show_snapshot(snapshots.idle())
    assert window.page() is window.start


def test_an_end_that_somebody_else_made_is_shown(window: Window, sent: list[Command]) -> None:
    window.show_snapshot(snapshots.waiting_room(is_host=False, code=None))
    window.show_snapshot(snapshots.ended(failed=False))
    assert window.page() is window.ended
    assert sent == []


def test_settings_and_help_stay_while_the_session_moves(window: Window) -> None:
    window.show_snapshot(snapshots.waiting_room())
    window.rail.button(Place.SETTINGS).click()
    window.show_snapshot(snapshots.forming())
    assert window.page() is window.settings
    window.rail.button(Place.SESSION).click()
    assert window.page() is window.forming


def test_somebody_who_asks_is_told_wherever_one_is(window: Window) -> None:
    window.show_snapshot(snapshots.waiting_room(newcomers=()))
    window.rail.button(Place.HELP).click()
    window.show_snapshot(snapshots.waiting_room())
    assert window.toast.isVisible()
    assert window.toast.accessibleName() == "Kitchen laptop asks to join."
    QTest.mouseClick(window.toast.button, LEFT)
    assert window.page() is window.room
    assert window.toast.isHidden()


def test_keys_lead_to_every_place(window: Window) -> None:
    window.show_snapshot(snapshots.serving())
    window.activateWindow()
    for key, page in (
        (Qt.Key.Key_1, window.start),
        (Qt.Key.Key_2, window.session_pages.serving),
        (Qt.Key.Key_3, window.session_pages.graphs),
        (Qt.Key.Key_4, window.help),
        (Qt.Key.Key_5, window.settings),
    ):
        QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
        assert window.stack.currentWidget() is page


def test_tab_reaches_the_main_action_and_the_focus_is_seen(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    window.activateWindow()
    window.setFocus()
    reached: list[QWidget | None] = []
    for _ in range(12):
        QTest.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_Tab)
        reached.append(QApplication.focusWidget())
        if QApplication.focusWidget() is window.start.host_button:
            assert window.focus_frame.isVisible()
            assert window.focus_frame.widget() is window.start.host_button
    for button in (window.start.host_button, window.start.join_button, window.start.try_button):
        assert button in reached


def test_a_dead_engine_is_shown_and_started_again(window: Window, qtbot: QtBot) -> None:
    window.show_snapshot(snapshots.serving())
    window.show_stopped(EngineStopped(exit_code=-6, last_lines=()))
    assert window.page() is window.stopped
    assert not window.rail.button(Place.SESSION).isEnabled()
    with qtbot.waitSignal(window.restart_wanted, timeout=1000):
        QTest.mouseClick(window.stopped.again, LEFT)
    assert window.page() is window.waking
    window.show_snapshot(snapshots.idle())
    assert window.page() is window.start


def test_closing_asks_where_others_would_lose_the_session(window: Window, qtbot: QtBot) -> None:
    window.show_snapshot(snapshots.serving())
    window.close()
    assert window.isVisible()
    dialog = _dialog()
    QTest.mouseClick(dialog.stay, LEFT)
    assert window.isVisible()
    window.close()
    with qtbot.waitSignal(window.closed, timeout=1000):
        QTest.mouseClick(_dialog().go, LEFT)
    assert not window.isVisible()


def test_closing_asks_nobody_where_nobody_loses_anything(window: Window) -> None:
    closed: list[bool] = []
    window.closed.connect(lambda: closed.append(True))
    for snapshot in (snapshots.idle(), snapshots.ended(), snapshots.joining()):
        window.show_snapshot(snapshot)
        window.show()
        window.close()
    assert closed == [True, True, True]


def test_the_ring_on_this_computer_alone_is_closed_without_asking(
    window: Window, sent: list[Command], qtbot: QtBot
) -> None:
    window.show_snapshot(snapshots.idle())
    QTest.mouseClick(window.start.try_button, LEFT)
    window.show_snapshot(snapshots.serving())
    assert sent == [TryDemo()]
    with qtbot.waitSignal(window.closed, timeout=1000):
        window.close()


@pytest.mark.parametrize("text_percent", [100, 200])
def test_nothing_is_cut_off_at_any_width(window: Window, theme: Theme, text_percent: int) -> None:
    theme.choose(Looks(mode=Mode.LIGHT, text_percent=text_percent, still=True))
    pages = (snapshots.idle(), snapshots.waiting_room(), snapshots.forming(), snapshots.joining(), snapshots.ended())
    for width, snapshot in product((760, 1039, 1280, 1900), pages):
        window.resize(width, 600)
        window.show_snapshot(snapshot)
        QApplication.processEvents()
        _assert_nothing_is_cut_off(window.page(), f"at {width}")


def _assert_nothing_is_cut_off(page: QWidget, where: str) -> None:
    for child in page.findChildren(QWidget):
        if not child.isVisible():
            continue
        what = f"{type(child).__name__} {child.accessibleName()!r} on {type(page).__name__} {where}"
        assert child.mapTo(page, child.rect().topRight()).x() <= page.width(), what
        if isinstance(child, Button | IconButton | Text | Tile | Segments | Check):
            assert child.width() >= child.minimumSizeHint().width(), what


def test_every_button_has_a_name(window: Window) -> None:
    for snapshot in (snapshots.idle(), snapshots.waiting_room(), snapshots.forming(), snapshots.joining()):
        window.show_snapshot(snapshot)
    nameless = [
        type(widget).__name__
        for widget in window.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible() and not widget.accessibleName()
    ]
    assert nameless == []


def test_a_new_page_has_the_focus_but_none_of_its_buttons(window: Window) -> None:
    window.show_snapshot(snapshots.idle())
    window.activateWindow()
    window.start.try_button.setFocus()
    window.show_snapshot(snapshots.waiting_room())
    assert QApplication.focusWidget() is window.room
    assert not window.focus_frame.isVisible()
    QTest.keyClick(window.room, Qt.Key.Key_Tab)
    focused = QApplication.focusWidget()
    assert focused is not None
    assert window.room.isAncestorOf(focused)
