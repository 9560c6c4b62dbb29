"""One plot: curves by pyqtgraph, axes by us. All that is known of pyqtgraph is in this module.

x is time in seconds before now (so from some negative number to 0) and always runs left to right;
y runs from 0 to a top that the caller chooses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyqtgraph as _pyqtgraph  # pyright: ignore[reportMissingTypeStubs] - it has none
from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.gui.theme import Role, Theme

pg = cast("Any", _pyqtgraph)

MARK_EVERY = 12
_MARKERS = {"circle": "o", "square": "s", "triangle": "t1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values over time. None in `values` leaves a gap. `fill` is the opacity below the curve."""

    seconds: Sequence[float]
    values: Sequence[float | None]
    colour: str
    dash: str = "solid"
    marker: str = "none"
    fill: float = 0.0
    line: bool = True
    end_dot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """What the axes say: the numbers from 0 to the top, and words along the time."""

    top: float
    numbers: Sequence[tuple[float, str]]
    times: Sequence[tuple[float, str]]
    span_s: float


def dashes(dash: str, width: float) -> list[float]:
    """A token's dash, "6 3" in pixels, in pen widths as Qt wants it; empty for solid."""
    return [] if dash == "solid" else [float(part) / width for part in dash.split()]


class Plot(QWidget):
    """Curves on a plain ground. `pointed` says over which second the pointer is, or None."""

    pointed = Signal(object)

    def __init__(self, theme: Theme, *, line_width: float) -> None:
        super().__init__()
        self._theme = theme
        self._width = line_width
        self._axes = Axes(top=1.0, numbers=(), times=(), span_s=60.0)
        self._items: list[tuple[Any, Any]] = []
        self._view: Any = pg.PlotWidget(self, background=None)
        self._set_up()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, on=False)
        # Times read left to right everywhere.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)

    def _set_up(self) -> None:
        item = self._view.getPlotItem()
        item.hideAxis("left")
        item.hideAxis("bottom")
        item.hideButtons()
        item.setMenuEnabled(False)
        item.layout.setContentsMargins(0, 0, 0, 0)
        item.getViewBox().setMouseEnabled(x=False, y=False)
        item.getViewBox().setDefaultPadding(0)
        self._view.setFrameShape(self._view.Shape.NoFrame)
        self._view.setStyleSheet("background: transparent")
        self._view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._view.setMouseTracking(True)
        viewport: QWidget = self._view.viewport()
        viewport.setMouseTracking(True)
        viewport.installEventFilter(self)

    def draw(self, curves: Sequence[Curve], axes: Axes) -> None:
        """Show other data."""
        self._axes = axes
        item = self._view.getPlotItem()
        box = item.getViewBox()
        box.setXRange(-axes.span_s, 0.0, padding=0)
        box.setYRange(0.0, axes.top, padding=0)
        while len(self._items) > len(curves):
            for old in self._items.pop():
                item.removeItem(old)
        while len(self._items) < len(curves):
            line = pg.PlotDataItem(antialias=True, connect="finite")
            marks = pg.ScatterPlotItem()
            item.addItem(line)
            item.addItem(marks)
            self._items.append((line, marks))
        for (line, marks), curve in zip(self._items, curves, strict=True):
            self._draw_one(line, marks, curve)
        self._place()
        self.update()

    def _draw_one(self, line: Any, marks: Any, curve: Curve) -> None:
        # pyqtgraph's pens are cosmetic: their width counts device pixels.
        width = self._width * self.devicePixelRatioF()
        colour = QColor(curve.colour)
        pen = pg.mkPen(colour, width=width) if curve.line else pg.mkPen(None)
        if curve.line and (pattern := dashes(curve.dash, self._width)):
            pen.setStyle(Qt.PenStyle.CustomDashLine)
            pen.setDashPattern(pattern)
        fill = QColor(colour)
        fill.setAlphaF(curve.fill)
        line.setData(
            np.array(curve.seconds, dtype=float),
            np.array([np.nan if v is None else v for v in curve.values], dtype=float),
            pen=pen,
            # Areas are filled piece by piece, and smooth edges would show where pieces meet.
            antialias=curve.line,
            fillLevel=0.0 if curve.fill else None,
            fillBrush=fill if curve.fill else None,
        )
        seconds, values = self._marked(curve)
        marks.setData(
            seconds,
            values,
            symbol=_MARKERS.get(curve.marker, "o"),
            size=(6.0 if curve.marker == "none" else 5.0) * self.devicePixelRatioF(),
            pen=pg.mkPen(None),
            brush=colour,
        )

    @staticmethod
    def _marked(curve: Curve) -> tuple[list[float], list[float]]:
        """The points that carry a mark: some of a marked series, or the last one."""
        points = [(s, v) for s, v in zip(curve.seconds, curve.values, strict=True) if v is not None]
        if curve.marker != "none":
            points = points[::MARK_EVERY]
        elif curve.end_dot:
            points = points[-1:]
        else:
            points = []
        return [s for s, _ in points], [v for _, v in points]

    @property
    def area(self) -> QRectF:
        """Where the curves are, inside this widget."""
        font = QFontMetricsF(self._theme.font(Role.AXIS))
        widest = max((font.horizontalAdvance(text) for _, text in self._axes.numbers), default=0.0)
        left = widest + 8 if self._axes.numbers else 0.0
        bottom = font.height() + 5 if self._axes.times else 0.0
        half = font.height() / 2
        return QRectF(left, half, max(1.0, self.width() - left - 4), self.height() - half - bottom)

    def _place(self) -> None:
        area = self.area
        # Marks and line ends at the edges need a little room, which clipping would take.
        self._view.setGeometry(area.toAlignedRect())

    def at(self, x: float) -> float:
        """The second before now that a horizontal place stands for."""
        area = self.area
        return (x - area.left()) / area.width() * self._axes.span_s - self._axes.span_s

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the curves inside the axes."""
        super().resizeEvent(event)
        self._place()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw grid and axes; the curves lie above."""
        painter = QPainter(self)
        area = self.area
        painter.setFont(self._theme.font(Role.AXIS))
        metrics = QFontMetricsF(painter.font())
        for value, text in self._axes.numbers:
            y = round(area.bottom() - value / self._axes.top * area.height()) - 0.5
            painter.setPen(QPen(self._theme.colour("border"), 1))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(self._theme.colour("text_faint"))
            box = QRectF(0, y - metrics.height() / 2, area.left() - 8, metrics.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        for second, text in self._axes.times:
            wide = metrics.horizontalAdvance(text)
            x = area.left() + (1 + second / self._axes.span_s) * area.width() - wide / 2
            x = min(max(x, area.left()), area.right() - wide)
            painter.drawText(QPointF(x, self.height() - metrics.descent()), text)
        painter.end()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Tell over which second the pointer is."""
        if event.type() is QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            x: float = self._view.x() + event.position().x()
            self.pointed.emit(min(0.0, self.at(x)))
        elif event.type() is QEvent.Type.Leave:
            self.pointed.emit(None)
        return super().eventFilter(watched, event)
