"""Draws everything of the ring that does not move: edges, arrows, labels, band and centre."""

from math import sqrt

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPolygonF

from kafila.gui.serving.geometry import Arc, Light, Ring, arrow, qt_degrees
from kafila.gui.serving.ring_labels import paint_edge_label, paint_node_label
from kafila.gui.serving.ring_look import (
    CentreLook,
    EdgeLook,
    EdgeState,
    NodeLook,
    NodeState,
    RingLook,
)
from kafila.gui.theme import Role, Theme
from kafila.gui.theme.tokens import ColourName

BAND = 7.0
ROOMY = 76
"""The inner radius from which the centre has three lines and its large figure."""
LEAST_LETTERS = 3
"""A word cut to fewer says nothing in the centre, and is left out."""
FIGURE = 24
ARROW = 9.0

_LINES: dict[EdgeState, tuple[ColourName, float, tuple[float, float] | None]] = {
    EdgeState.DIRECT: ("direct", 2.25, None),
    EdgeState.RELAYED: ("relayed", 2.5, (9.0, 7.0)),
    EdgeState.CONNECTING: ("border_strong", 2.5, (2.0, 7.0)),
    EdgeState.LOST: ("lost", 2.5, (2.0, 7.0)),
}


def edge_pen(theme: Theme, state: EdgeState, *, used: bool = False) -> QPen:
    """The line of an edge; a little thicker where it is in use and nothing may move."""
    name, width, dash = _LINES[state]
    pen = QPen(theme.colour(name), width + (1.0 if used else 0.0))
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    if dash is not None:
        # Qt counts dashes in pen widths, and a round cap adds one width to each.
        pen.setDashPattern([max(0.1, dash[0] / width - 1), dash[1] / width + 1])
    return pen


class RingPainter:
    """Draws one look in one layout."""

    def __init__(self, painter: QPainter, theme: Theme, ring: Ring, *, labels: bool) -> None:
        self._painter = painter
        self._theme = theme
        self._ring = ring
        self._labels = labels

    def paint(self, look: RingLook, *, glowing: bool, used: bool) -> None:
        """Draw all of it."""
        painter = self._painter
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setOpacity(0.45 if look.dim else 1.0)
        for arc, edge in zip(self._ring.edges, look.edges, strict=True):
            if glowing:
                self._glow(arc, edge)
            self._edge(arc, edge, used=used)
        for arc, node in zip(self._ring.band, look.nodes, strict=True):
            self._segment(arc, node, faded=look.paused)
        self._centre(look.centre)
        if self._labels:
            for at, node in enumerate(look.nodes):
                paint_node_label(painter, self._theme, self._ring, at, node)
            for arc, edge in zip(self._ring.edges, look.edges, strict=True):
                paint_edge_label(painter, self._theme, self._ring, arc, edge)

    def _box(self, arc: Arc) -> QRectF:
        x, y, radius = self._ring.x, self._ring.y, arc.radius
        return QRectF(x - radius, y - radius, 2 * radius, 2 * radius)

    def _draw_arc(self, arc: Arc) -> None:
        start, span = qt_degrees(self._ring, arc)
        self._painter.drawArc(self._box(arc), round(start * 16), round(span * 16))

    def _edge(self, arc: Arc, edge: EdgeLook, *, used: bool) -> None:
        painter = self._painter
        painter.setBrush(Qt.BrushStyle.NoBrush)
        pen = edge_pen(self._theme, edge.state, used=used)
        painter.setPen(pen)
        self._draw_arc(arc)
        if edge.state in {EdgeState.DIRECT, EdgeState.RELAYED} and arc.length > ARROW:
            pen.setStyle(Qt.PenStyle.SolidLine)
            pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
            painter.setPen(pen)
            size = min(ARROW, arc.length * 0.5)
            points = [QPointF(*point) for point in arrow(self._ring, arc, size)]
            painter.drawPolyline(QPolygonF(points))

    def _glow(self, arc: Arc, edge: EdgeLook) -> None:
        if edge.state not in {EdgeState.DIRECT, EdgeState.RELAYED}:
            return
        for width, alpha in ((12.0, 0.10), (7.0, 0.18)):
            colour = QColor(self._theme.colour("lantern"))
            colour.setAlphaF(alpha)
            self._painter.setPen(QPen(colour, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            self._draw_arc(arc)

    def _segment(self, arc: Arc, node: NodeLook, *, faded: bool) -> None:
        painter = self._painter
        if node.state is NodeState.AWAY:
            pen = edge_pen(self._theme, EdgeState.LOST)
            pen.setWidthF(2.0)
        else:
            colour = QColor(self._theme.series(node.series).colour)
            if faded:
                colour.setAlphaF(0.4)
            pen = QPen(colour, BAND, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        self._draw_arc(arc)

    def _centre(self, centre: CentreLook) -> None:
        theme = self._theme
        inside = self._ring.band[0].radius - BAND
        roomy = inside >= theme.px(ROOMY)
        main = theme.font(Role.DISPLAY if centre.figure and roomy else Role.HEADING)
        if centre.figure and not roomy:
            main.setPixelSize(theme.px(FIGURE))
        lines: list[tuple[str, QFont, ColourName]] = [(centre.main, main, "text")]
        if centre.above and roomy:
            lines.insert(0, (centre.above, theme.font(Role.CAPTION, 600), "text_muted"))
        if below := centre.below if roomy else centre.below_short:
            lines.append((below, theme.font(Role.SMALL), "text_muted"))
        heights = [QFontMetricsF(font).height() for _, font, _ in lines]
        top = self._ring.y - sum(heights) / 2
        for (text, font, ink), height in zip(lines, heights, strict=True):
            # A circle is narrower above and below its middle.
            away = max(abs(top - self._ring.y), abs(top + height - self._ring.y))
            room = 2 * sqrt(max(0.0, inside * inside - away * away))
            self._painter.setFont(font)
            self._painter.setPen(theme.colour(ink))
            shown = QFontMetricsF(font).elidedText(text, Qt.TextElideMode.ElideRight, room)
            if shown == text or len(shown) > LEAST_LETTERS:
                box = QRectF(self._ring.x - room / 2, top, room, height)
                self._painter.drawText(box, Qt.AlignmentFlag.AlignCenter, shown)
            top += height


def paint_lights(painter: QPainter, theme: Theme, lights: tuple[Light, ...]) -> None:
    """Draw one pulse: a light with its glow and its followers."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    for light in lights:
        colour = QColor(theme.colour("lantern"))
        if light is lights[-1]:
            colour.setAlphaF(0.25)
            painter.setBrush(colour)
            painter.drawEllipse(QPointF(light.x, light.y), light.radius + 5, light.radius + 5)
            if not theme.dark:
                painter.setPen(QPen(theme.colour("lantern_text"), 1.25))
        colour.setAlphaF(light.opacity)
        painter.setBrush(colour)
        painter.drawEllipse(QPointF(light.x, light.y), light.radius, light.radius)
