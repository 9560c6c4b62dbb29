"""Draws the words round the ring: names beside the nodes, round trips beside the edges."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from kafila.gui.serving.geometry import (
    DOT_ROOM,
    LABEL_WIDTH,
    Arc,
    Box,
    Label,
    Ring,
    beside,
    edge_label,
    node_label,
)
from kafila.gui.serving.ring_look import EdgeLook, EdgeState, NodeLook, NodeState
from kafila.gui.theme import Role, Theme
from kafila.gui.theme.tokens import ColourName

NAME_LINE = 18
FACT_LINE = 17
DOT = 4.0
PILL_HEIGHT = 22
PILL_SIDE = 10
LABEL_SIDE = 3

_INKS: dict[EdgeState, tuple[ColourName, ColourName | None]] = {
    EdgeState.DIRECT: ("direct_text", None),
    EdgeState.RELAYED: ("relayed_text", "relayed_soft"),
    EdgeState.CONNECTING: ("text_faint", None),
    EdgeState.LOST: ("lost_text", "lost_soft"),
}


def paint_node_label(painter: QPainter, theme: Theme, ring: Ring, at: int, look: NodeLook) -> Box:
    """Draw a computer's name with its dot, and what is under it; where it lies."""
    node = ring.nodes[at]
    away = look.state is NodeState.AWAY
    facts = look.lines
    if not beside(ring, node):
        facts = ((" " if away else " · ").join(look.lines),)
    name_font, fact_font = theme.font(Role.SMALL, 600), theme.font(Role.SMALL)
    metrics = QFontMetricsF(name_font)
    name = metrics.elidedText(look.name, Qt.TextElideMode.ElideRight, theme.px(LABEL_WIDTH))
    wide = metrics.horizontalAdvance(name) + 1
    line, fact_line = theme.px(NAME_LINE), theme.px(FACT_LINE)
    spot = node_label(ring, node, lines=1 + len(facts), line_height=fact_line)
    left, dot = _name_place(ring, spot, wide)
    colour = theme.colour("lost") if away else QColor(theme.series(look.series).colour)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawEllipse(QPointF(dot, spot.y + line / 2 + 0.5), DOT, DOT)
    _words(painter, name, name_font, theme.colour("text"), QRectF(left, spot.y, wide, line))
    ink = theme.colour("lost_text" if away else "text_muted")
    reach = Box(x=left, y=spot.y, width=wide, height=line + len(facts) * fact_line)
    for n, text in enumerate(facts):
        width = QFontMetricsF(fact_font).horizontalAdvance(text) + 1
        x = {0: left + (wide - width) / 2, 1: left, -1: left + wide - width}[spot.align]
        row = QRectF(x, spot.y + line + n * fact_line, width, fact_line)
        _words(painter, text, fact_font, ink, row)
        reach = Box(
            x=min(reach.x, x),
            y=reach.y,
            width=max(reach.right, x + width) - min(reach.x, x),
            height=reach.height,
        )
    return reach


def paint_edge_label(painter: QPainter, theme: Theme, ring: Ring, arc: Arc, edge: EdgeLook) -> Box | None:
    """Draw what an edge says, in a pill where its state must not be missed; where it lies."""
    if not edge.label:
        return None
    font = theme.font(Role.CAPTION, 500)
    ink, ground = _INKS[edge.state]
    width = QFontMetricsF(font).horizontalAdvance(edge.label) + 1
    width += 2 * theme.px(PILL_SIDE if ground else LABEL_SIDE)
    box = edge_label(ring, arc, width, theme.px(PILL_HEIGHT))
    area = QRectF(box.x, box.y, box.width, box.height)
    if ground is not None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(ground))
        painter.drawRoundedRect(area, area.height() / 2, area.height() / 2)
    painter.setFont(font)
    painter.setPen(QPen(theme.colour(ink)))
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter, edge.label)
    return box


def _name_place(ring: Ring, spot: Label, wide: float) -> tuple[float, float]:
    """Where a name begins and where its dot is: towards the disc, or before a centred name."""
    if spot.align > 0:
        return spot.x + DOT_ROOM, spot.x + DOT
    if spot.align < 0:
        return spot.x - DOT_ROOM - wide, spot.x - DOT
    if ring.mirrored:
        left = spot.x - (wide + DOT_ROOM) / 2
        return left, left + wide + DOT_ROOM - DOT
    left = spot.x - (wide - DOT_ROOM) / 2
    return left, left - DOT_ROOM + DOT


def _words(painter: QPainter, text: str, font: QFont, ink: QColor, box: QRectF) -> None:
    painter.setFont(font)
    painter.setPen(ink)
    flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip | Qt.TextFlag.TextSingleLine
    painter.drawText(box, flags, text)
