import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gui.serving.conftest import Show
from gui.serving.hands import click, press, seen
from gui.serving.scenes import paused, serving
from kafila.domain.snapshot import Pace, Serving
from kafila.gui.serving.ring_look import look
from kafila.gui.serving.ring_view import RingView
from kafila.gui.serving.series import SeriesBook
from kafila.gui.theme import Theme


def put(view: RingView, shown: Serving, *, tokens: int = 420) -> None:
    pace = msgspec.structs.replace(shown.pace, tokens=tokens)
    view.show_ring(look(shown, SeriesBook()), pace)


@pytest.fixture
def view(theme: Theme, show: Show) -> RingView:
    view = RingView(theme)
    show(view, 632, 560)
    put(view, serving())
    return view


def test_nodes_are_buttons_with_names(view: RingView) -> None:
    names = [node.accessibleName() for node in view.nodes]
    assert names[3] == "Attic mini, 10 parts, busy 47 percent, relayed"
    assert view.accessibleName() == "Ring of 5 computers"
    assert "11.9 words a second" in view.accessibleDescription()
    assert "Office desktop to Attic mini: Relayed" in view.accessibleDescription()


def test_arrow_keys_go_round(view: RingView) -> None:
    view.nodes[0].setFocus()
    press(view.nodes[0], Qt.Key.Key_Right)
    assert view.nodes[1].hasFocus()
    press(view.nodes[1], Qt.Key.Key_Up)
    press(view.nodes[0], Qt.Key.Key_Left)
    assert view.nodes[4].hasFocus()


def test_right_to_left_the_ring_runs_the_other_way(view: RingView) -> None:
    before = [node.geometry().center().x() for node in view.nodes]
    view.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    after = [node.geometry().center().x() for node in view.nodes]
    assert after[1] < after[0] < after[4]
    for left, right in zip(before, after, strict=True):
        assert abs(left + right - view.width()) <= 2
    view.nodes[0].setFocus()
    press(view.nodes[0], Qt.Key.Key_Left)
    assert view.nodes[1].hasFocus()


def test_a_node_opens_by_click_and_by_enter(view: RingView) -> None:
    opened: list[int] = []
    view.pressed.connect(opened.append)
    click(view.nodes[2])
    view.nodes[1].setFocus()
    press(view.nodes[1], Qt.Key.Key_Return)
    assert opened == [2, 1]


def test_beside_the_disc_there_is_nothing_to_press(view: RingView) -> None:
    node = view.nodes[0]
    assert node.hitButton(node.rect().center())
    assert not node.hitButton(QPoint(1, 1))


def test_members_come_and_go(view: RingView) -> None:
    for count in (2, 1, 5):
        put(view, serving(count, relayed=None))
        assert sum(1 for node in view.nodes if seen(node)) == count
    view.grab()


def test_a_name_with_markup_in_it_stays_text(view: RingView) -> None:
    here = serving()
    evil = msgspec.structs.replace(here.ring[1].machine, name="<img src=http://x/y> & co")
    ring = (here.ring[0], msgspec.structs.replace(here.ring[1], machine=evil), *here.ring[2:])
    put(view, msgspec.structs.replace(here, ring=ring))
    assert "&lt;img" in view.nodes[1].toolTip()
    assert "<img" not in view.nodes[1].toolTip()


def test_paused_looks_different_and_nothing_moves(view: RingView) -> None:
    before = image(view)
    put(view, paused(), tokens=430)
    assert image(view) != before
    assert not view.moving


def test_a_token_sends_a_light_and_hiding_stops_it(lively: Theme, show: Show) -> None:
    view = RingView(lively)
    show(view, 632, 560)
    put(view, serving(), tokens=1)
    assert not view.moving
    put(view, serving(), tokens=2)
    assert view.moving
    view.hide()
    assert not view.moving


def test_a_light_that_went_round_lets_the_timer_stop(lively: Theme, show: Show, qtbot: QtBot) -> None:
    view = RingView(lively)
    show(view, 632, 560)
    slow = msgspec.structs.replace(serving(), pace=Pace(tokens_per_second=0.5, circuit_ms_p50=100))
    put(view, slow, tokens=1)
    put(view, slow, tokens=2)
    assert view.moving
    qtbot.waitUntil(lambda: not view.moving, timeout=20_000)


def test_without_movement_there_is_no_light(view: RingView) -> None:
    put(view, serving(), tokens=500)
    assert not view.moving


def test_a_ring_of_one_has_nowhere_to_send_a_light(lively: Theme, show: Show) -> None:
    view = RingView(lively)
    show(view, 632, 560)
    put(view, serving(1), tokens=1)
    put(view, serving(1), tokens=2)
    assert not view.moving
    assert view.accessibleName() == "Ring of one computer"


def test_it_fits_any_size(view: RingView) -> None:
    for width, height in ((220, 220), (312, 312), (900, 300), (1200, 1000)):
        view.resize(width, height)
        for node in view.nodes:
            assert view.rect().contains(node.geometry().center())
        view.grab()


def image(widget: QWidget) -> QImage:
    return widget.grab().toImage()
