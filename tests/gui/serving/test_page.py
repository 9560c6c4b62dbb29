from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QObject, QPoint, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QPushButton, QScrollArea, QTextEdit, QWidget
from pytestqt.qtbot import QtBot

from gui.serving.conftest import Show, Stage
from gui.serving.hands import click, press, seen, words, write
from gui.serving.scenes import ended, member_id, paused, serving
from gui.serving.scenes import snapshot as snap
from kafila.domain.commands import Ask, LeaveSession, PlanAnew
from kafila.domain.errors import Problem
from kafila.domain.snapshot import Ended, Forming, Idle
from kafila.gui.theme import Looks, Mode, Theme


def test_the_head_says_who_serves_what(stage: Stage) -> None:
    page = stage.page
    assert page.group.text() == "Sunday group"
    assert page.status.text() == "Serving · 5 computers"
    assert page.model.text() == "Qwen3 32B"
    stage.play(serving(1))
    assert page.status.text() == "Serving · 1 computer"


def test_a_paused_session_says_who_is_away_and_how_long_we_wait(stage: Stage) -> None:
    stage.play(paused())
    page = stage.page
    assert page.status.text() == "Paused · Attic mini is away"
    action = page.ring_pane.action
    assert seen(action)
    assert not seen(page.ring_pane.graphs)
    shown = words(action)
    assert "Attic mini stopped answering" in shown
    assert "It holds 10 of 64 parts, so the model waits." in shown
    assert "0:36 left" in shown
    assert action.bar.accessibleName() == "0:36 left"
    stage.play(serving())
    assert not seen(action)
    assert seen(page.ring_pane.graphs)
    assert page.status.text() == "Serving · 5 computers"


def test_the_lock_says_who_reads(stage: Stage) -> None:
    lock = stage.page.chat.lock
    assert "This computer leads and reads the text in order to answer." in lock.words()
    stage.play(serving(), me=2)
    assert lock.words() == (
        "Encrypted between your computers. Studio laptop leads and reads the text in order to answer."
    )
    stage.play(serving(1))
    assert lock.words() == "Everything stays on this computer."


def test_an_ended_session_stays_dim_with_its_reason(stage: Stage) -> None:
    stage.play(msgspec.structs.replace(serving(), is_host=False))
    stage.play(ended())
    page = stage.page
    assert page.status.text() == "Ended"
    assert seen(page.ended)
    assert page.ended.words() == "The host ended the session. Your conversations stay here."
    assert seen(page.ring_pane.ring)
    assert not seen(page.more)
    stage.play(serving(3, relayed=1))
    assert not seen(page.ended)
    assert page.status.text() == "Serving · 3 computers"


def test_a_host_who_ended_it_is_told_so_and_one_who_lost_it_is_told_why(stage: Stage) -> None:
    stage.play(ended())
    assert stage.page.ended.words() == "You ended the session. Your conversations stay here."
    stage.play(serving())
    lost = Problem(title="Attic mini did not come back", advice="Your conversations stay here.")
    stage.play(Ended(reason=lost, failed=True))
    assert stage.page.ended.words().startswith("Attic mini did not come back.")


def test_a_session_that_was_left_is_over_too(stage: Stage) -> None:
    stage.play(Idle())
    assert stage.page.status.text() == "Ended"
    assert stage.page.ended.words().startswith("You left the session.")


def _forming() -> Forming:
    plan = msgspec.json.decode(
        b'{"type":"plan","objective":"fastest","tier":"full","tier_reason":"","shares":[],'
        b'"edges":[],"figures":{"bottleneck_ms":null,"circuit_ms":null,"tokens_per_second":null,'
        b'"utilisation":null,"fits":true},"tokens_per_second_alone":null,"search":"exact"}',
        type=Forming.__annotations__["plan"],
    )
    return Forming(is_host=True, group="g", model="m", plan=plan, rows=())


def test_before_it_serves_it_shows_nothing_and_does_not_mind(theme: Theme, show: Show, tmp_path: Path) -> None:
    stage = Stage(theme, tmp_path / "conversations")
    show(stage.page, 1204, 800)
    stage.play(_forming())
    assert stage.page.group.text() == ""
    assert not seen(stage.page.ended)


def test_a_ring_that_is_divided_anew_has_not_ended(stage: Stage) -> None:
    stage.play(_forming())
    page = stage.page
    assert not seen(page.ended)
    assert page.status.text() == "Serving · 5 computers"
    stage.play(serving(4))
    assert page.status.text() == "Serving · 4 computers"
    stage.play(ended())
    assert page.status.text() == "Ended"


def test_what_is_being_written_while_the_parts_move_has_to_be_asked_again(stage: Stage) -> None:
    chat = stage.page.chat
    write(chat.composer.draft, "How long does the ferry take?")
    click(chat.composer.button)
    assert any(isinstance(command, Ask) for command in stage.sent)
    stage.play(_forming())
    stage.play(serving())
    assert "The parts were divided anew while this was being written" in words(chat.messages)


def test_dividing_anew_is_asked_and_then_sent(stage: Stage) -> None:
    page = stage.page
    assert page.divide.isVisible()
    page.divide.trigger()
    dialog = page.dividing
    assert dialog is not None
    assert "answers pause for everyone" in words(dialog)
    dialog.stay.click()
    assert stage.sent == []
    page.divide.trigger()
    assert page.dividing is not None
    page.dividing.go.click()
    assert stage.sent == [PlanAnew()]


def test_only_the_host_of_several_divides_anew_and_not_while_paused(stage: Stage) -> None:
    page = stage.page
    stage.play(paused())
    assert page.divide.isVisible()
    assert not page.divide.isEnabled()
    stage.play(serving(1))
    assert not page.divide.isVisible()
    stage.play(msgspec.structs.replace(serving(), is_host=False), me=2)
    assert not page.divide.isVisible()


def test_leaving_is_asked_and_then_sent(stage: Stage) -> None:
    stage.page.ask_to_leave()
    dialog = stage.page.leaving
    assert dialog is not None
    assert dialog.stay.hasFocus() or dialog.focusWidget() is dialog.stay
    dialog.stay.click()
    assert stage.sent == []
    stage.page.ask_to_leave()
    dialog = stage.page.leaving
    assert dialog is not None
    dialog.go.click()
    assert stage.sent == [LeaveSession()]


def test_a_node_opens_its_card(stage: Stage) -> None:
    pane = stage.page.ring_pane
    click(pane.ring.nodes[3])
    card = pane.card
    assert card is not None
    shown = words(card)
    for expected in (
        "Attic mini",
        "Kit",
        "49–58 of 64",
        "28 ms, busy 47 %",
        "From Office desktop",
        "84 ms there and back, 164 kB/s",
        "2.8 GB",
    ):
        assert expected in shown
    assert "[48, 58)" not in shown
    card.details.click()
    assert "[48, 58)" in words(card)
    assert "4003" in words(card)
    press(card, Qt.Key.Key_Escape)
    assert not seen(card)


def test_narrow_windows_have_a_list_instead_of_names(stage: Stage) -> None:
    stage.page.resize(844, 600)
    pane = stage.page.ring_pane
    assert seen(pane.list)
    assert not seen(pane.graphs)
    assert pane.width() == 312
    assert stage.page.status.text() == "Serving · 5"
    shown = words(pane.list)
    assert "Attic mini" in shown
    assert "47 %" in shown
    assert pane.list.rows[3].accessibleName() == "Attic mini, 10 parts, busy 47 percent, relayed"
    stage.page.resize(1204, 800)
    assert not seen(pane.list)
    assert seen(pane.graphs)


def test_tight_windows_have_tabs(stage: Stage) -> None:
    page = stage.page
    page.resize(640, 600)
    assert page.width() == 640
    assert seen(page.tabs)
    assert seen(page.chat)
    assert not seen(page.ring_pane)
    page.tabs.chosen.emit(0)
    assert seen(page.ring_pane)
    assert not seen(page.chat)
    page.resize(1204, 800)
    assert seen(page.chat)
    assert seen(page.ring_pane)


def test_hiding_the_page_stops_everything(stage: Stage) -> None:
    pane = stage.page.ring_pane
    assert pane.graphs.running
    stage.page.hide()
    assert not pane.graphs.running
    assert not pane.ring.moving


@pytest.mark.parametrize("kind", [QAbstractButton, QLineEdit, QTextEdit])
def test_everything_that_can_be_used_has_a_name(stage: Stage, kind: type[QObject]) -> None:
    stage.play(serving())
    nameless = [
        widget
        for widget in stage.page.findChildren(kind)
        if isinstance(widget, QWidget) and seen(widget) and not widget.accessibleName()
    ]
    assert nameless == []


def test_the_members_colours_are_the_same_in_ring_and_graphs(stage: Stage) -> None:
    pane = stage.page.ring_pane
    places = dict(pane.graphs.members)
    for at in range(5):
        look = pane.ring.nodes[at].look
        assert look is not None
        assert look.series == places[member_id(at)]
    assert snap(serving()).me.member == member_id(0)


@pytest.fixture
def large_stage(theme: Theme, show: Show, tmp_path: Path) -> Iterator[Stage]:
    """The same page with text of twice the size, in the least window that there is."""
    before = theme.looks
    theme.choose(Looks(mode=Mode.LIGHT, still=True, text_percent=200))
    stage = Stage(theme, tmp_path / "conversations")
    show(stage.page, 704, 528)
    stage.play(serving())
    yield stage
    theme.choose(before)


def _inside(page: QWidget, part: QWidget) -> bool:
    """Whether a part is on the page whole, and has the room that it needs."""
    shown = QRect(part.mapTo(page, QPoint(0, 0)), part.size())
    least = part.minimumSizeHint()
    return page.rect().contains(shown) and part.width() >= least.width() and part.height() >= least.height()


def test_large_text_fits_a_small_window(large_stage: Stage, qtbot: QtBot) -> None:
    page = large_stage.page
    ring, chat = page.tabs.findChildren(QPushButton)
    parts = (page.group, page.status, page.tabs, ring, chat, page.more, page.chat.more, page.chat.composer.button)
    qtbot.waitUntil(lambda: all(_inside(page, part) for part in parts))
    assert page.chat.width() == page.width()
    click(ring)
    qtbot.waitUntil(lambda: all(_inside(page, part) for part in (page.tabs, page.ring_pane, page.ring_pane.ring)))


def test_large_text_leaves_the_trouble_readable(large_stage: Stage, qtbot: QtBot) -> None:
    page = large_stage.page
    large_stage.play(paused())
    click(page.tabs.findChildren(QPushButton)[0])
    action = page.ring_pane.action
    qtbot.waitUntil(lambda: seen(action) and action.height() >= action.heightForWidth(action.width()))
    page.resize(2200, 900)
    qtbot.waitUntil(lambda: seen(action) and not seen(page.tabs))
    assert not any(scroll.isAncestorOf(action) for scroll in page.ring_pane.findChildren(QScrollArea))
