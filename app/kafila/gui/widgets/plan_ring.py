"""The ring as it is planned: who holds how many parts, who leads, who stands outside and asks."""

from dataclasses import dataclass
from itertools import pairwise
from math import cos, degrees, radians, sin, sqrt

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.gui.serving.geometry import slots
from kafila.gui.theme import Role, Theme

SIDE = 150
LEAST_DISC = 11.0
MOST_DISC = 16.0
EDGE_GAP = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disc:
    """One computer in the ring, in ring order, the leading one first."""

    member: str
    parts: int
    relayed: bool
    """How it reaches the next one."""


class PlanRing(QWidget):
    """Discs on a circle. Everything it shows stands in words beside it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._discs: tuple[Disc, ...] = ()
        self._asking = 0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def show_ring(self, discs: tuple[Disc, ...], asking: int) -> None:
        """Change who is in, and how many ask."""
        words = self.tr("Ring of %n computer(s)", "", len(discs))
        self.setAccessibleName(words)
        if (discs, asking) != (self._discs, self._asking):
            self._discs, self._asking = discs, asking
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """A square."""
        return QSize(self._theme.px(SIDE), self._theme.px(SIDE))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw edges, discs, the lead's light and who asks."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(self.width() / 2, self.height() / 2)
        scale = self._theme.px(100) / 100
        painter.scale(scale, scale)
        reach = SIDE / 2 - MOST_DISC - 8
        if self._discs:
            self._paint_edges(painter, reach)
            self._paint_discs(painter, reach)
        self._paint_asking(painter, reach)
        self._paint_centre(painter)
        painter.end()

    def _turns(self) -> list[float]:
        spans = slots([disc.parts for disc in self._discs])
        turns, begin = [0.0], -spans[0] / 2
        for span, following in pairwise(spans):
            begin += span
            turns.append(begin + following / 2)
        return turns

    def _at(self, turn: float, reach: float) -> QPointF:
        sign = -1 if self.layoutDirection() is Qt.LayoutDirection.RightToLeft else 1
        return QPointF(sign * reach * sin(radians(turn)), -reach * cos(radians(turn)))

    def _radius(self, disc: Disc) -> float:
        most = max(other.parts for other in self._discs)
        return LEAST_DISC + (MOST_DISC - LEAST_DISC) * sqrt(disc.parts / max(most, 1))

    def _paint_edges(self, painter: QPainter, reach: float) -> None:
        turns = self._turns()
        if len(turns) < 2:
            painter.setPen(QPen(self._theme.colour("border"), 2))
            painter.drawEllipse(QPointF(0, 0), reach, reach)
            return
        sign = -1 if self.layoutDirection() is Qt.LayoutDirection.RightToLeft else 1
        box = QRectF(-reach, -reach, 2 * reach, 2 * reach)
        for place, disc in enumerate(self._discs):
            following = (place + 1) % len(turns)
            begin = turns[place] + _degrees(self._radius(disc) + EDGE_GAP, reach)
            end = turns[following] - _degrees(self._radius(self._discs[following]) + EDGE_GAP, reach)
            span = (end - begin) % 360
            pen = QPen(self._theme.colour("relayed" if disc.relayed else "direct"), 2)
            if disc.relayed:
                pen.setDashPattern([4, 3])
            painter.setPen(pen)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawArc(box, round((90 - sign * begin) * 16), round(-sign * span * 16))

    def _paint_discs(self, painter: QPainter, reach: float) -> None:
        font = self._theme.font(Role.AXIS, 600)
        font.setPixelSize(11)
        painter.setFont(font)
        for place, (disc, turn) in enumerate(zip(self._discs, self._turns(), strict=True)):
            series = self._theme.series_of(disc.member)
            centre, radius = self._at(turn, reach), self._radius(disc)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(series.colour))
            painter.drawEllipse(centre, radius, radius)
            painter.setPen(self._theme.colour(series.ink_on.token))
            box = QRectF(centre.x() - radius, centre.y() - radius, 2 * radius, 2 * radius)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, str(disc.parts))
            if place == 0:
                painter.setPen(QPen(self._theme.colour("surface"), 1.5))
                painter.setBrush(self._theme.colour("head"))
                painter.drawEllipse(centre + QPointF(radius * 0.72, -radius * 0.72), 5.5, 5.5)

    def _paint_asking(self, painter: QPainter, reach: float) -> None:
        turns = self._turns() if self._discs else [0.0]
        last = turns[-1] if len(turns) > 1 else 180.0
        middle = (last + 360) / 2
        for place in range(min(self._asking, 3)):
            centre = self._at(middle + 16 * place, reach + 14.5)
            pen = QPen(self._theme.colour("text_muted"), 1.5)
            pen.setDashPattern([2.4, 2])
            painter.setPen(pen)
            painter.setBrush(self._theme.colour("surface"))
            painter.drawEllipse(centre, 8.5, 8.5)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.colour("lantern"))
            painter.drawEllipse(centre, 3.2, 3.2)

    def _paint_centre(self, painter: QPainter) -> None:
        font = self._theme.font(Role.HEADING)
        font.setPixelSize(20)
        painter.setFont(font)
        painter.setPen(self._theme.colour("text"))
        centre = Qt.AlignmentFlag.AlignHCenter
        painter.drawText(QRectF(-40, -18, 80, 22), centre, str(len(self._discs)))
        font = self._theme.font(Role.CAPTION)
        font.setPixelSize(12)
        painter.setFont(font)
        painter.setPen(self._theme.colour("text_muted"))
        painter.drawText(QRectF(-40, 6, 80, 18), centre, self.tr("computer(s)", "", len(self._discs)))


def _degrees(length: float, reach: float) -> float:
    return degrees(length / reach)
