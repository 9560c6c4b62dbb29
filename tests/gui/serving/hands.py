"""Typing, pressing and looking, as a person does it."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from kafila.gui.widgets import Text


def press(widget: QWidget, key: Qt.Key, *, shift: bool = False) -> None:
    modifier = Qt.KeyboardModifier.ShiftModifier if shift else Qt.KeyboardModifier.NoModifier
    QTest.keyClick(widget, key, modifier)


def write(widget: QWidget, text: str) -> None:
    QTest.keyClicks(widget, text)


def click(widget: QWidget) -> None:
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def seen(widget: QWidget) -> bool:
    """Whether it shows when its window does. Qt shows what is new only with the next event."""
    return widget.isVisible() if widget.isWindow() else widget.isVisibleTo(widget.window())


def words(widget: QWidget) -> str:
    """All that is written in a widget, but for what is hidden."""
    return "\n".join(text.words() for text in widget.findChildren(Text) if text.isVisibleTo(widget))
