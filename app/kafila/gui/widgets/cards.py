"""Surfaces that hold other things: cards, icon tiles, thin lines, the empty state."""

from typing import TypeVar

from PySide6.QtCore import QMargins, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.theme.tokens import ColourName
from kafila.gui.widgets.buttons import Button
from kafila.gui.widgets.text import Text, Tone

L = TypeVar("L", QHBoxLayout, QVBoxLayout)


class Card(QFrame):
    """A bordered surface. `body` is its vertical layout; `kind` is a `card` of the style sheet."""

    def __init__(self, theme: Theme, margin: int = 20, spacing: int = 12, kind: str = "plain") -> None:
        super().__init__()
        self._theme = theme
        self._margin = margin
        self._spacing = spacing
        self.setProperty("card", kind)
        self.body = QVBoxLayout(self)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        side = self._theme.px(self._margin)
        self.body.setContentsMargins(QMargins(side, side, side, side))
        self.body.setSpacing(self._theme.px(self._spacing))


class Line(QFrame):
    """A thin line between two things."""

    def __init__(self, *, upright: bool = False) -> None:
        super().__init__()
        self.setProperty("surface", "line")
        if upright:
            self.setFixedWidth(1)
        else:
            self.setFixedHeight(1)


class IconLabel(QLabel):
    """An icon by itself, tinted; says nothing aloud."""

    def __init__(self, theme: Theme, icon: Icon, colour: ColourName = "text_muted", size: int = 18) -> None:
        super().__init__()
        self._theme = theme
        self._shown = (icon, colour, size)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_as(self, icon: Icon, colour: ColourName) -> None:
        """Change icon and colour."""
        shown = (icon, colour, self._shown[2])
        if shown != self._shown:
            self._shown = shown
            self._restyle()

    def _restyle(self) -> None:
        self.setPixmap(self._theme.pixmap(*self._shown))


class Dot(QWidget):
    """A small round mark in a colour by name or value; None: hollow, of what is missing."""

    def __init__(self, theme: Theme, colour: ColourName | None) -> None:
        super().__init__()
        self._theme = theme
        self._name: ColourName | None = colour
        self._value = ""
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def set_colour(self, value: str) -> None:
        """Use a colour of the series."""
        self._value = value
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Small."""
        return QSize(self._theme.px(10), self._theme.px(10))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        if self._value or self._name is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            name = self._name or "text_muted"
            painter.setBrush(QColor(self._value) if self._value else self._theme.colour(name))
        else:
            pen = QPen(self._theme.colour("border_strong"), 1.25)
            pen.setDashPattern([2, 1.6])
            painter.setPen(pen)
        painter.drawEllipse(box)
        painter.end()


class Tile(QFrame):
    """An icon on a soft square: the picture at the start of a row or a card."""

    def __init__(
        self,
        theme: Theme,
        icon: Icon,
        colour: ColourName = "text_muted",
        ground: ColourName = "sunken",
        side: int = 36,
        *,
        disc: bool = False,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._ground: ColourName = ground
        self._side = side
        self._disc = disc
        self._icon = IconLabel(theme, icon, colour, round(side / 2))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignCenter)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)
        self._restyle()

    def show_as(self, icon: Icon, colour: ColourName, ground: ColourName) -> None:
        """Change icon and colours."""
        self._icon.show_as(icon, colour)
        if ground != self._ground:
            self._ground = ground
            self._restyle()

    def _restyle(self) -> None:
        side = self._theme.px(self._side)
        self.setFixedSize(side, side)
        ground = self._theme.colours.named(self._ground)
        radius = side // 2 if self._disc else self._theme.px(9)
        self.setStyleSheet(f"Tile {{ background: {ground}; border-radius: {radius}px; }}")


class Empty(Card):
    """What stands where nothing is yet: an icon, what to do first, one button."""

    def __init__(self, theme: Theme, icon: Icon, title: str, sentence: str, button: Button | None) -> None:
        super().__init__(theme, margin=24, spacing=8, kind="empty")
        centre = Qt.AlignmentFlag.AlignHCenter
        self.body.addWidget(IconLabel(theme, icon, size=28), 0, centre)
        self.body.addWidget(Text(theme, title, Role.SUBHEADING), 0, centre)
        self.body.addWidget(Text(theme, sentence, Role.SMALL, Tone.MUTED), 0, centre)
        if button is not None:
            self.body.addWidget(button, 0, centre)


def row(*items: QWidget | int | QLayout, spacing: int = 8) -> QHBoxLayout:
    """A horizontal layout; a number is stretch."""
    return _line(QHBoxLayout(), items, spacing)


def column(*items: QWidget | int | QLayout, spacing: int = 8) -> QVBoxLayout:
    """A vertical layout; a number is stretch."""
    return _line(QVBoxLayout(), items, spacing)


def _line(layout: L, items: tuple[QWidget | int | QLayout, ...], spacing: int) -> L:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, int):
            layout.addStretch(item)
        elif isinstance(item, QLayout):
            layout.addLayout(item)
        else:
            layout.addWidget(item)
    return layout
