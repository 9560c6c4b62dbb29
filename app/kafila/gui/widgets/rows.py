"""Rows of a list in a card: an icon, two lines, and what is at their end."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QAction, QEnterEvent, QPainter, QPainterPath, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QMenu, QVBoxLayout, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.buttons import IconButton, Kind, Size
from kafila.gui.widgets.cards import Tile
from kafila.gui.widgets.text import Text, Tone

SIDE = 16
RADIUS = 14
TEXT_FROM = 66
TURN_BELOW = 440


class Row(QWidget):
    """One row. Put what belongs at its end into `end`."""

    def __init__(self, theme: Theme, icon: Icon, *, indent_line: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._indent_line = indent_line
        self.turn_below = TURN_BELOW
        self._asking = False
        self._over = False
        self._first = self._last = True
        self.menu: QMenu | None = None
        self.tile = Tile(theme, icon)
        self.title = Text(theme, "", Role.STRONG, wrap=True)
        self.second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self.end = QHBoxLayout()
        self.more: IconButton | None = None
        self.names = QWidget()
        lines = QVBoxLayout(self.names)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(0)
        lines.addStretch(1)
        lines.addWidget(self.title)
        lines.addWidget(self.second)
        lines.addStretch(1)
        self.across = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.across.addWidget(self.names, 1)
        self.across.addLayout(self.end)
        self._layout = QHBoxLayout(self)
        self._layout.addWidget(self.tile)
        self._layout.addLayout(self.across, 1)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_edges(self, *, first: bool, last: bool) -> None:
        """Whether its corners are those of the card."""
        if (first, last) != (self._first, self._last):
            self._first, self._last = first, last
            self.update()

    def ask(self) -> None:
        """Show it as somebody who asks to join."""
        self._asking = True
        self.tile.show_as(Icon.LAPTOP, "text_muted", "surface")
        self.update()

    def add_menu(self, name: str, actions: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Give it a menu, shown under the pointer or the keyboard."""
        menu = QMenu(self)
        for words, act in actions:
            action = QAction(words, menu)
            action.triggered.connect(_without_arguments(act))
            menu.addAction(action)
        self.menu = menu
        self.more = IconButton(self._theme, Icon.ELLIPSIS, name, Kind.QUIET, Size.SMALL)
        self.more.clicked.connect(self._open_menu)
        self.end.addWidget(self.more)

    def _open_menu(self) -> None:
        if self.menu is not None and self.more is not None:
            self.menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def _restyle(self) -> None:
        px = self._theme.px
        side = px(12 if self.upright else SIDE)
        self._layout.setContentsMargins(side, px(12), side, px(12))
        self._layout.setSpacing(px(10 if self.upright else 14))
        self.end.setSpacing(px(8 if self.upright else 12))
        self.across.setSpacing(px(8 if self.upright else 14))
        self.update()

    @property
    def upright(self) -> bool:
        """Whether the end stands below the names, because there is no room beside them."""
        return self.across.direction() is QBoxLayout.Direction.TopToBottom

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Turn where it becomes narrow."""
        super().resizeEvent(event)
        upright = event.size().width() < self._theme.px(self.turn_below)
        if upright is not self.upright:
            kinds = QBoxLayout.Direction
            self.across.setDirection(kinds.TopToBottom if upright else kinds.LeftToRight)
            self._restyle()

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """The pointer is over it."""
        self._over = self.menu is not None
        super().enterEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """The pointer left."""
        self._over = False
        super().leaveEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the ground and the line above."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        if self._asking or self._over:
            ground = self._theme.colour("lantern_soft" if self._asking else "hover")
            painter.fillPath(self._shape(box), ground)
        if not self._first:
            left = 0 if self._asking or not self._indent_line else self._theme.px(TEXT_FROM)
            rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
            line = QRectF(0 if rtl else left, 0, box.width() - left, 1)
            painter.fillRect(line, self._theme.colour("border"))
        painter.end()

    def _shape(self, box: QRectF) -> QPainterPath:
        radius = self._theme.px(RADIUS) - 1
        path = QPainterPath()
        path.addRoundedRect(box, radius, radius)
        if not self._first:
            path.addRect(QRectF(0, 0, box.width(), box.height() / 2))
        if not self._last:
            path.addRect(QRectF(0, box.height() / 2, box.width(), box.height() / 2))
        path.setFillRule(Qt.FillRule.WindingFill)
        return path.simplified()


def _without_arguments(act: Callable[[], None]) -> Callable[[bool], None]:
    """Qt passes whether an action is ticked; these have no tick."""

    def triggered(_ticked: bool) -> None:  # noqa: FBT001 - Qt gives it by position
        act()

    return triggered


R = TypeVar("R", bound=Row)


class RowList(QFrame, Generic[R]):
    """A card of rows, each known by a key: what stays keeps its widget, so focus and hover stay."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("card", "plain")
        self._rows: dict[str, R] = {}
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(1, 1, 1, 1)
        self._layout.setSpacing(0)

    def rows(self) -> tuple[R, ...]:
        """The rows in their order."""
        return tuple(self._rows.values())

    def row(self, key: str) -> R:
        """One row. Raises KeyError for a key that is not shown."""
        return self._rows[key]

    def show_keys(self, keys: Sequence[str], make: Callable[[str], R]) -> None:
        """Show exactly these; `make` builds a row for a key that has none."""
        if list(self._rows) != list(keys):
            before = self._rows
            self._rows = {key: before.get(key) or make(key) for key in keys}
            for key, row in before.items():
                self._layout.removeWidget(row)
                if key not in self._rows:
                    row.hide()
                    row.deleteLater()
            for row in self._rows.values():
                self._layout.addWidget(row)
        shown = list(self._rows.values())
        for row in shown:
            row.set_edges(first=row is shown[0], last=row is shown[-1])
