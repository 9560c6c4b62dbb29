"""Bars that show how much of something is there, used or missing."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QProgressBar, QSizePolicy, QWidget

from kafila.gui.theme import Theme

STEPS = 1000


class Progress(QProgressBar):
    """How far something of known length is."""

    def __init__(self, name: str, *, large: bool = False) -> None:
        super().__init__()
        self.setTextVisible(False)
        self.setRange(0, STEPS)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        if large:
            self.setProperty("scale", "large")

    def set_part(self, part: float) -> None:
        """The share that is done, 0 to 1."""
        self.setValue(round(min(max(part, 0), 1) * STEPS))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar: its share of the whole, and its colour (None: hatched, still missing)."""

    share: float
    colour: str | None


class PiecesBar(QWidget):
    """A bar of several parts, each in its own colour."""

    def __init__(self, theme: Theme, height: int = 14) -> None:
        super().__init__()
        self._theme = theme
        self._height = height
        self._pieces: tuple[Piece, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def show_pieces(self, pieces: Sequence[Piece], said: str) -> None:
        """Change the parts; `said` is read aloud."""
        self.setAccessibleName(said)
        if tuple(pieces) != self._pieces:
            self._pieces = tuple(pieces)
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """As high as it was asked to be."""
        return QSize(80, self._theme.px(self._height))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw track and parts, with a gap of two pixels between."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QPainterPath()
        bounds = QRectF(self.rect())
        shape.addRoundedRect(bounds, bounds.height() / 2, bounds.height() / 2)
        painter.setClipPath(shape)
        painter.fillRect(bounds, self._theme.colour("busy_track"))
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        x = 0.0
        for piece in self._pieces:
            width = piece.share * bounds.width()
            left = bounds.width() - x - width if rtl else x
            self._paint_piece(painter, piece, QRectF(left, 0, max(width - 2, 1), bounds.height()))
            x += width
        painter.end()

    def _paint_piece(self, painter: QPainter, piece: Piece, box: QRectF) -> None:
        if piece.colour is not None:
            painter.fillRect(box, QColor(piece.colour))
            return
        painter.fillRect(box, self._theme.colour("surface"))
        mark = self._theme.colour("border_strong")
        x = box.left()
        while x < box.right():
            painter.fillRect(QRectF(x, box.top() + 2, 2, box.height() - 4), mark)
            x += 6
        painter.setPen(QPen(self._theme.colour("border"), 1))
        painter.setBrush(QBrush())
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), box.height() / 2, box.height() / 2)


class ShareBar(QWidget):
    """How much of a computer's room is used, in that computer's colour; dashed where it lacks."""

    def __init__(self, theme: Theme, height: int = 6) -> None:
        super().__init__()
        self._theme = theme
        self._height = height
        self._used = 0.0
        self._wide = 1.0
        self._over = 0.0
        self._colour = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def show_share(self, used: float, *, colour: str, wide: float = 1.0, over: float = 0.0) -> None:
        """`wide`: its room, as a share of the widget; `used` of it; `over`: what is missing."""
        self._used, self._wide, self._over, self._colour = used, wide, over, colour
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """As high as it was asked to be."""
        return QSize(self._theme.px(80), self._theme.px(self._height))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw track, used part and what is missing."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            painter.translate(self.width(), 0)
            painter.scale(-1, 1)
        full, high = self.width(), self.height()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("busy_track"))
        room = QRectF(0, 0, full * self._wide, high)
        painter.drawRoundedRect(room, high / 2, high / 2)
        if self._colour:
            painter.setBrush(QColor(self._colour))
            painter.drawRoundedRect(QRectF(0, 0, room.width() * min(self._used, 1), high), high / 2, high / 2)
        if self._over > 0:
            pen = QPen(self._theme.colour("lost"), 1)
            pen.setDashPattern([3, 2])
            painter.setPen(pen)
            painter.setBrush(self._theme.colour("surface"))
            missing = QRectF(room.width() - high / 2, 0.5, full * self._over + high / 2 - 1, high - 1)
            painter.drawRoundedRect(missing, high / 2, high / 2)
        painter.end()
