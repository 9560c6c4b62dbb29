"""The ring as a widget: one cached picture below, nodes as buttons above, lights between."""

from time import monotonic

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QHideEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.domain.snapshot import Pace
from kafila.gui.serving import geometry
from kafila.gui.serving.pulse import Pulses, count, in_use, phases, rest
from kafila.gui.serving.ring_look import RingLook
from kafila.gui.serving.ring_node import RingNode
from kafila.gui.serving.ring_paint import RingPainter, paint_lights
from kafila.gui.theme import Theme

FRAME_MS = 50
"""20 frames a second while a light is on the ring, none otherwise."""
REDRAW_MS = 250
"""The picture is made anew four times a second at most."""
LIGHTS = 6
GLOW = 6.0
ROOM_FOR_LABELS = 520
HEIGHT_FOR_LABELS = 360
_STEPS = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}


class RingView(QWidget):
    """Draws a `RingLook`; `pressed` with the place of a node that was clicked or entered.

    Labels are drawn where there is room for them; without them the ring fills its square.
    """

    pressed = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._look: RingLook | None = None
        self._ring: geometry.Ring | None = None
        self._picture: QPixmap | None = None
        self._drawn_s = -1.0
        self._nodes: list[RingNode] = []
        self._pulses = Pulses()
        self._lights: tuple[tuple[geometry.Light, ...], ...] = ()
        self._frames = QTimer(self, interval=FRAME_MS)
        self._frames.timeout.connect(self._frame)
        self._later = QTimer(self, singleShot=True, interval=REDRAW_MS)
        self._later.timeout.connect(self._redraw)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(QSize(220, 220))
        theme.changed.connect(self._restyle)

    @property
    def nodes(self) -> tuple[RingNode, ...]:
        """The buttons, in ring order."""
        return tuple(self._nodes)

    @property
    def moving(self) -> bool:
        """Whether a timer runs."""
        return self._frames.isActive()

    def show_ring(self, look: RingLook, pace: Pace) -> None:
        """Show a ring as it is now."""
        before, self._look = self._look, look
        if before is None or [n.blocks for n in before.nodes] != [n.blocks for n in look.nodes]:
            self._arrange()
        for node, shown in zip(self._nodes, look.nodes, strict=True):
            node.show_look(shown, dim=look.dim)
        self._say()
        self._follow(pace, still=look.paused or look.dim or not look.edges)
        if look != before:
            self._redraw_soon()

    def _say(self) -> None:
        look = self._look
        if look is None:
            return
        computers = (
            self.tr("Ring of one computer")
            if len(look.nodes) == 1
            else self.tr("Ring of {number} computers").format(number=len(look.nodes))
        )
        self.setAccessibleName(computers)
        centre = " ".join(part for part in (look.centre.above, look.centre.main, look.centre.below) if part)
        self.setAccessibleDescription(". ".join((centre, *(edge.hint for edge in look.edges))))

    def _arrange(self) -> None:
        """Make as many nodes as there are computers, and put them in their places."""
        look = self._look
        if look is None:
            return
        while len(self._nodes) > len(look.nodes):
            gone = self._nodes.pop()
            gone.hide()
            gone.deleteLater()
        while len(self._nodes) < len(look.nodes):
            node = RingNode(self._theme, self)
            node.clicked.connect(self._node_pressed)
            self._nodes.append(node)
            node.show()
        self._place()

    def _place(self) -> None:
        look = self._look
        if look is None or not look.nodes:
            return
        self._ring = geometry.lay_out(
            self.width(),
            self.height(),
            [node.blocks for node in look.nodes],
            labels=self._labels,
            mirrored=self.layoutDirection() is Qt.LayoutDirection.RightToLeft,
        )
        for node, at in zip(self._nodes, self._ring.nodes, strict=True):
            node.place(at.x, at.y, at.radius)
        self._picture = None
        self._lights = ()
        self.update()

    @property
    def _labels(self) -> bool:
        wide = self.width() >= self._theme.px(ROOM_FOR_LABELS)
        return wide and self.height() >= self._theme.px(HEIGHT_FOR_LABELS)

    def _follow(self, pace: Pace, *, still: bool) -> None:
        """Send off lights for new tokens, unless there is nowhere to go."""
        now_s = monotonic()
        glowed = self._pulses.glowing
        if still:
            self._pulses = Pulses(tokens=pace.tokens)
            self._lights = ()
            return
        self._pulses = count(
            self._pulses,
            tokens=pace.tokens,
            tokens_per_second=pace.tokens_per_second,
            circuit_ms=pace.circuit_ms_p50,
            now_s=now_s,
        )
        if self._pulses.glowing != glowed:
            self._redraw_soon()
        self._start()

    def _start(self) -> None:
        if self._pulses.leaving_s and self.isVisible() and not self._theme.still:
            self._frames.start()

    def _frame(self) -> None:
        """Move the lights; repaint where they were and where they are, and nothing else."""
        now_s = monotonic()
        glowed = self._pulses.glowing
        self._pulses = rest(self._pulses, now_s)
        ring = self._ring
        if ring is None or self._theme.still:
            self._frames.stop()
            return
        before = self._lights
        self._lights = tuple(geometry.pulse(ring, phase, LIGHTS) for phase in phases(self._pulses, now_s))
        for lights in (*before, *self._lights):
            box = geometry.bounds(lights, GLOW)
            self.update(QRect(int(box.x), int(box.y), int(box.width), int(box.height)))
        if glowed and not self._pulses.glowing:
            self._redraw_soon()
        if not self._pulses.leaving_s:
            self._frames.stop()
            if self._pulses.glowing:
                # The next snapshot says whether the glow goes on; this ends it if none comes.
                self._later.start()

    def _redraw_soon(self) -> None:
        """Make the picture anew, but not more often than `REDRAW_MS`."""
        if self._later.isActive():
            return
        waited_ms = (monotonic() - self._drawn_s) * 1000
        if self._drawn_s < 0 or waited_ms >= REDRAW_MS:
            self._redraw()
        else:
            self._later.start(max(1, round(REDRAW_MS - waited_ms)))

    def _redraw(self) -> None:
        self._pulses = rest(self._pulses, monotonic())
        self._picture = None
        self.update()

    def _draw(self, ring: geometry.Ring, look: RingLook) -> QPixmap:
        ratio = self.devicePixelRatioF()
        picture = QPixmap(self.size() * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        glowing = self._pulses.glowing and not look.paused and not look.dim
        RingPainter(painter, self._theme, ring, labels=self._labels).paint(
            look,
            glowing=glowing and not self._theme.still,
            used=self._theme.still and in_use(self._pulses, monotonic()),
        )
        painter.end()
        self._drawn_s = monotonic()
        return picture

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the picture, made anew where it is stale, and the lights over it."""
        if self._ring is None or self._look is None:
            return
        picture = self._picture
        if picture is None or picture.devicePixelRatio() != self.devicePixelRatioF():
            picture = self._picture = self._draw(self._ring, self._look)
        painter = QPainter(self)
        painter.setClipRegion(event.region())
        painter.drawPixmap(0, 0, picture)
        for lights in self._lights:
            paint_lights(painter, self._theme, lights)
        painter.end()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Arrow keys move round the ring, in its direction."""
        focused = [at for at, node in enumerate(self._nodes) if node.hasFocus()]
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or not focused:
            super().keyPressEvent(event)
            return
        sideways = event.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right}
        if sideways and self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            step = -step
        there = geometry.neighbour(len(self._nodes), focused[0], step=step)
        self._nodes[there].setFocus(Qt.FocusReason.TabFocusReason)

    def _node_pressed(self) -> None:
        for at, node in enumerate(self._nodes):
            if node is self.sender():
                self.pressed.emit(at)

    def _restyle(self) -> None:
        self._place()
        for node in self._nodes:
            node.update()

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802
        """Mirror the ring when the reading direction changes."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.LayoutDirectionChange:
            self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Lay the ring out anew."""
        super().resizeEvent(event)
        self._place()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Go on moving."""
        super().showEvent(event)
        self._start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing moves where nobody looks."""
        super().hideEvent(event)
        self._frames.stop()
        self._later.stop()
        self._lights = ()
        self._picture = None
