"""Lines of lights: the steps of a wizard, the stages of one computer, work of unknown length."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QFont, QFontMetrics, QHideEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.gui.theme import Role, Theme

TURN_MS = 420
DOT = 5.5
HALO = 9.0
WORD_GAP = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How much of a wizard's steps is shown, by the room there is."""

    all_names: bool
    line: int
    gap: int


WHOLE = _Form(all_names=True, line=40, gap=10)
SHORT = _Form(all_names=False, line=16, gap=8)
TIGHT = _Form(all_names=False, line=0, gap=2)


def paint_light(painter: QPainter, theme: Theme, centre: QPointF, place: int) -> None:
    """One light: done (place < 0), now (0) or ahead (> 0)."""
    scale = theme.px(100) / 100
    painter.setPen(Qt.PenStyle.NoPen)
    if place < 0:
        painter.setBrush(theme.colour("accent"))
        painter.drawEllipse(centre, DOT * scale, DOT * scale)
    elif place == 0:
        painter.setBrush(theme.colour("lantern_soft"))
        painter.drawEllipse(centre, HALO * scale, HALO * scale)
        painter.setBrush(theme.colour("lantern"))
        painter.drawEllipse(centre, DOT * scale, DOT * scale)
    else:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.colour("border_strong"), 1.25))
        painter.drawEllipse(centre, (DOT - 1) * scale, (DOT - 1) * scale)


def paint_line(painter: QPainter, theme: Theme, begin: QPointF, end: QPointF, *, done: bool) -> None:
    """The line between two lights: solid where both are reached, else dotted."""
    pen = QPen(theme.colour("accent" if done else "border_strong"), 2 if done else 1.5)
    if not done:
        pen.setDashPattern([0.1, 2.6])
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.drawLine(begin, end)


class WizardSteps(QWidget):
    """The named steps of a wizard, with the present one lit."""

    def __init__(self, theme: Theme, names: Sequence[str]) -> None:
        super().__init__()
        self._theme = theme
        self._names = tuple(names)
        self._step = 0
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)
        self.set_step(0)

    def set_step(self, step: int) -> None:
        """Light a step; those before it are done."""
        self._step = step
        self.setAccessibleName(
            self.tr("Step {number} of {count}: {name}").format(
                number=step + 1, count=len(self._names), name=self._names[step]
            )
        )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide enough for all names."""
        return QSize(self._width(WHOLE), self._theme.px(28))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Wide enough for the lights and the name of the present step."""
        return QSize(self._width(TIGHT), self._theme.px(28))

    def _shows_name(self, place: int, form: _Form) -> bool:
        return form.all_names or place == self._step

    def _width(self, form: _Form) -> int:
        px = self._theme.px
        names = sum(
            QFontMetrics(self._font(place)).horizontalAdvance(name) + px(WORD_GAP)
            for place, name in enumerate(self._names)
            if self._shows_name(place, form)
        )
        between = (len(self._names) - 1) * px(form.line + 2 * form.gap)
        return px(2 * HALO) * len(self._names) + names + between

    def _font(self, place: int) -> QFont:
        return self._theme.font(Role.SMALL, 600 if place == self._step else 500)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw lights, names and the lines between."""
        form = next((one for one in (WHOLE, SHORT) if self._width(one) <= self.width()), TIGHT)
        px = self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        if rtl:
            painter.translate(self.width(), 0)
        sign = -1 if rtl else 1
        middle = self.height() / 2
        x = px(HALO)
        for place, name in enumerate(self._names):
            paint_light(painter, self._theme, QPointF(sign * x, middle), place - self._step)
            x += px(HALO)
            if self._shows_name(place, form):
                x += px(WORD_GAP - HALO + DOT) // 2
                width = QFontMetrics(self._font(place)).horizontalAdvance(name) + 2
                painter.setFont(self._font(place))
                painter.setPen(self._theme.colour("text" if place == self._step else "text_muted"))
                left = -x - width if rtl else x
                painter.drawText(QRectF(left, 0, width, self.height()), Qt.AlignmentFlag.AlignVCenter, name)
                x += width
            if place + 1 < len(self._names):
                x += px(form.gap)
                if form.line:
                    begin, end = QPointF(sign * x, middle), QPointF(sign * (x + px(form.line)), middle)
                    paint_line(painter, self._theme, begin, end, done=False)
                x += px(form.line + form.gap) + px(HALO) // 2
        painter.end()


class StageLights(QWidget):
    """The stages of one computer, evenly spread: `reached` are done, the next one is lit."""

    def __init__(self, theme: Theme, count: int) -> None:
        super().__init__()
        self._theme = theme
        self._count = count
        self._reached = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_reached(self, reached: int, said: str) -> None:
        """How many stages are done, and what to read aloud."""
        self.setAccessibleName(said)
        if reached != self._reached:
            self._reached = reached
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Some room for every stage."""
        return QSize(self._theme.px(60) * self._count, self._theme.px(24))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the lights in the middle of equal columns."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        step = self.width() / self._count
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        centres = [
            QPointF((self._count - place - 0.5 if rtl else place + 0.5) * step, self.height() / 2)
            for place in range(self._count)
        ]
        gap = self._theme.px(11) * (-1 if rtl else 1)
        for place, (here, there) in enumerate(pairwise(centres)):
            begin, end = here + QPointF(gap, 0), there - QPointF(gap, 0)
            paint_line(painter, self._theme, begin, end, done=place < self._reached)
        for place, centre in enumerate(centres):
            paint_light(painter, self._theme, centre, place - self._reached)
        painter.end()


class MovingLights(QWidget):
    """Three lights in turn: work of unknown length. Still where movement is off, or unseen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._turn = 2
        self._timer = QTimer(self, interval=TURN_MS)
        self._timer.timeout.connect(self._move)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Three dots wide."""
        return QSize(self._theme.px(36), self._theme.px(18))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Move while seen."""
        super().showEvent(event)
        if not self._theme.still:
            self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Stop while unseen."""
        super().hideEvent(event)
        self._timer.stop()

    def _move(self) -> None:
        if self._theme.still:
            self._timer.stop()
            return
        self._turn = (self._turn + 1) % 3
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the lights, the present one bright."""
        px = self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for place in range(3):
            colour = self._theme.colour("lantern")
            colour.setAlphaF((1.0, 0.55, 0.28)[(self._turn - place) % 3])
            painter.setBrush(colour)
            painter.drawEllipse(QPointF(px(5 + 12 * place), self.height() / 2), px(4), px(4))
        painter.end()
