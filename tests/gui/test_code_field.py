"""The code field: completing, marking, and turning a pasted message into its code."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from gui.conftest import Show
from kafila.gui.codes import Nothing, Reading, Right, Typing, Wrong, code_words
from kafila.gui.theme import Theme
from kafila.gui.widgets.code_field import CodeField
from kafila.gui.widgets.code_shown import CodeShown, QrCode
from kafila.protocol.invitation import make_code

SPOKEN = make_code(47, b"\x01\x82\x63\x34\x95", code_words()).spoken()


@pytest.fixture
def field(theme: Theme, show: Show) -> CodeField:
    field = CodeField(theme, code_words())
    show(field)
    field.setFocus()
    return field


def _uses(widget: QWidget, colour: QColor) -> bool:
    image = widget.grab().toImage()
    return any(
        image.pixelColor(x, y).rgb() == colour.rgb() for x in range(image.width()) for y in range(image.height())
    )


def test_tab_takes_the_rest_of_a_word(field: CodeField) -> None:
    number, first, *_ = SPOKEN.split("-")
    QTest.keyClicks(field, f"{number}-{first[:4]}")
    assert field.reading == Typing(rest=first[4:])
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert field.text() == f"{number}-{first}"
    assert field.hasFocus()


def test_tab_moves_on_where_there_is_nothing_to_take(theme: Theme, show: Show) -> None:
    holder = QWidget()
    field = CodeField(theme, code_words())
    field.setParent(holder)
    following = QrCode(theme)
    following.setParent(holder)
    following.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    show(holder)
    field.setFocus()
    QTest.keyClicks(field, SPOKEN)
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert not field.hasFocus()


def test_the_wrong_word_is_marked_and_the_mark_goes_away(theme: Theme, field: CodeField) -> None:
    field.setText(SPOKEN.replace("nanny", "nannny"))
    assert isinstance(field.reading, Wrong)
    assert field.property("state") == "wrong"
    assert _uses(field, theme.colour("lost_soft"))
    field.setText(SPOKEN)
    assert field.property("state") == "right"
    assert not _uses(field, theme.colour("lost_soft"))


def test_a_pasted_message_becomes_its_code(field: CodeField) -> None:
    field.setText(f"Hi, join us with {SPOKEN}, see you")
    assert field.text() == SPOKEN
    assert isinstance(field.reading, Right)


def test_every_change_of_meaning_is_told(field: CodeField) -> None:
    told: list[Reading] = []
    field.read.connect(told.append)
    QTest.keyClicks(field, "47-")
    field.clear()
    assert [type(reading) for reading in told] == [Typing, Nothing]


def test_the_shown_code_is_spelled_and_can_be_copied(theme: Theme, show: Show, qtbot: QtBot) -> None:
    shown = CodeShown(theme)
    show(shown)
    shown.set_code(SPOKEN)
    assert shown.accessibleName() == SPOKEN.replace("-", ", ")
    shown.setSelection(0, len(SPOKEN))
    assert shown.selectedText() == SPOKEN
    qtbot.wait(1)


def test_a_qr_code_is_dark_on_light_in_the_dark_too(theme: Theme, show: Show) -> None:
    qr = QrCode(theme)
    qr.set_link(f"kafila://join/{SPOKEN}?v=1")
    show(qr)
    qr.resize(qr.sizeHint())
    image = qr.grab().toImage()
    shades = [image.pixelColor(x, image.height() // 2).lightness() for x in range(12, image.width() - 12)]
    assert min(shades) < 60
    assert max(shades) > 240
