"""One computer on the ring: a round button with its arc, its halo, its icon and its badge."""

from html import escape

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimeLine
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen, QRadialGradient
from PySide6.QtWidgets import QAbstractButton, QWidget

from kafila.gui.serving import figures
from kafila.gui.serving.ring_look import NodeLook, NodeState
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.focus import OWN_FOCUS

REACH = 16
"""Room round the disc for halo, badge and focus ring."""
FOCUS_GAP = 7
ARC = 5.0
EASE_STEP_MS = 50
ROOM_FOR_PERCENT = 19.0
BADGE = 12.0


class RingNode(QAbstractButton):
    """A computer. Enter and a click open its card; arrow keys are the ring's to handle."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._look: NodeLook | None = None
        self._radius = 30.0
        self._busy = 0.0
        self._from_busy = 0.0
        self._dim = False
        self._ease = QTimeLine(theme.tokens.motion.durations_ms.busy_arc, self)
        self._ease.setUpdateInterval(EASE_STEP_MS)
        self._ease.valueChanged.connect(self._eased)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setProperty(OWN_FOCUS, True)  # noqa: FBT003 - Qt's own signature

    @property
    def look(self) -> NodeLook | None:
        """What it shows."""
        return self._look

    def show_look(self, look: NodeLook, *, dim: bool) -> None:
        """Show a computer as it is now; the busy arc eases to its new length."""
        before, self._look = self._look, look
        if (look, dim) == (before, self._dim):
            return
        self._dim = dim
        self.setAccessibleName(look.said)
        # A tooltip would take a name with tags in it for HTML.
        self.setToolTip(f"<p>{escape(look.name)}<br>{escape(', '.join(look.lines))}</p>")
        self._ease.stop()
        self._from_busy = self._busy
        if self._theme.still or not self.isVisible() or before is None:
            self._busy = look.busy
        elif abs(look.busy - self._busy) >= 0.01:
            self._ease.start()
        self.update()

    def place(self, x: float, y: float, radius: float) -> None:
        """Put the disc's centre here."""
        self._radius = radius
        half = round(radius) + REACH
        self.setGeometry(round(x) - half, round(y) - half, 2 * half + 1, 2 * half + 1)

    def hitButton(self, pos: QPoint) -> bool:  # noqa: N802
        """Only the disc can be pressed."""
        middle = QPointF(self.rect().center())
        away = QPointF(pos) - middle
        return away.x() ** 2 + away.y() ** 2 <= max(self._radius, 16.0) ** 2

    def keyPressEvent(self, e: QKeyEvent) -> None:  # noqa: N802
        """Enter presses; arrow keys go on to the ring."""
        if e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.click()
        elif e.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down}:
            e.ignore()
        else:
            super().keyPressEvent(e)

    def _eased(self, value: float) -> None:
        if self._look is not None:
            self._busy = self._from_busy + (self._look.busy - self._from_busy) * value
            self.update()

    def paintEvent(self, e: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw halo, disc, arc, icon, percent, badge and focus ring."""
        look = self._look
        if look is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPointF(self.width() / 2, self.height() / 2)
        painter.setOpacity(0.45 if self._dim else 1.0)
        if look.state is NodeState.AWAY:
            self._paint_away(painter, centre)
        else:
            self._paint_disc(painter, centre, look)
        self._paint_inside(painter, centre, look)
        if look.head:
            self._paint_badge(painter, centre)
        if self.hasFocus():
            painter.setOpacity(1.0)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.colour("focus"), 2))
            reach = self._radius + FOCUS_GAP
            painter.drawEllipse(centre, reach, reach)
        painter.end()

    def _paint_disc(self, painter: QPainter, centre: QPointF, look: NodeLook) -> None:
        colour, radius = self._theme.colour, self._radius
        if self._busy > 0.01 and look.state is NodeState.WORKS:
            self._paint_halo(painter, centre)
        arc = min(ARC, radius * 0.16)
        inner = radius - arc / 2
        painter.setBrush(colour("raised"))
        painter.setPen(QPen(colour("busy_track"), arc))
        painter.drawEllipse(centre, inner, inner)
        if self._busy > 0.005:
            painter.setPen(QPen(colour("busy"), arc, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            box = QRectF(centre.x() - inner, centre.y() - inner, 2 * inner, 2 * inner)
            turn = 1 if self.layoutDirection() is Qt.LayoutDirection.RightToLeft else -1
            painter.drawArc(box, 90 * 16, round(turn * 360 * 16 * self._busy))

    def _paint_halo(self, painter: QPainter, centre: QPointF) -> None:
        reach = self._radius + REACH
        glow = QColor(self._theme.colour("lantern"))
        gradient = QRadialGradient(centre, reach)
        glow.setAlphaF(min(1.0, 0.08 + 0.4 * self._busy))
        gradient.setColorAt(self._radius / reach * 0.98, glow)
        glow.setAlphaF(glow.alphaF() * 0.3)
        gradient.setColorAt((self._radius + REACH * 0.5) / reach, glow)
        glow.setAlphaF(0.0)
        gradient.setColorAt(1.0, glow)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(gradient)
        painter.drawEllipse(centre, reach, reach)

    def _paint_away(self, painter: QPainter, centre: QPointF) -> None:
        pen = QPen(self._theme.colour("lost"), 2, Qt.PenStyle.CustomDashLine)
        pen.setDashPattern([1.2, 2.2])
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.setBrush(self._theme.colour("lost_soft"))
        painter.drawEllipse(centre, self._radius - 1, self._radius - 1)

    def _paint_inside(self, painter: QPainter, centre: QPointF, look: NodeLook) -> None:
        ink = "lost" if look.state is NodeState.AWAY else "text_muted"
        percent = look.state is NodeState.WORKS and self._radius >= ROOM_FOR_PERCENT
        side = 20.0 if self._radius >= 32 else max(11.0, self._radius * 0.56)
        icon = self._theme.pixmap(look.icon, ink, side * 100 / self._theme.px(100), self.devicePixelRatio())
        shown = icon.deviceIndependentSize()
        lift = self._radius * 0.2 + 2 if percent else 0.0
        painter.drawPixmap(QPointF(centre.x() - shown.width() / 2, centre.y() - shown.height() / 2 - lift), icon)
        if percent:
            font = self._theme.font(Role.CAPTION, 700)
            font.setPixelSize(round(min(font.pixelSize(), max(9.0, self._radius * 0.34))))
            painter.setFont(font)
            painter.setPen(self._theme.colour("text"))
            box = QRectF(0, centre.y() + self._radius * 0.1, self.width(), self._radius * 0.5)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, figures.percent(look.busy))

    def _paint_badge(self, painter: QPainter, centre: QPointF) -> None:
        side = -1 if self.layoutDirection() is Qt.LayoutDirection.RightToLeft else 1
        radius = min(BADGE, self._radius * 0.36)
        away = self._radius * 0.71
        middle = QPointF(centre.x() + side * away, centre.y() - away)
        painter.setPen(QPen(self._theme.colour("bg"), 2))
        painter.setBrush(self._theme.colour("head"))
        painter.drawEllipse(middle, radius + 1, radius + 1)
        icon = self._theme.pixmap(
            Icon.LANTERN,
            "on_lantern",
            radius * 1.3 * 100 / self._theme.px(100),
            self.devicePixelRatio(),
        )
        half = icon.deviceIndependentSize() / 2
        painter.drawPixmap(middle - QPointF(half.width(), half.height()), icon)
