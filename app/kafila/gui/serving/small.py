"""Small things that the pages of a session share: dots, dashes, thin bars, the status pill."""

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.domain.snapshot import Serving
from kafila.gui.serving.plots import dashes
from kafila.gui.serving.ring_look import EdgeState
from kafila.gui.serving.ring_paint import edge_pen
from kafila.gui.theme import Icon, Theme
from kafila.gui.widgets import Pill, PillKind


class Dot(QWidget):
    """The colour of one computer."""

    def __init__(self, theme: Theme, series: int) -> None:
        super().__init__()
        self._theme = theme
        self._series = series
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A small dot."""
        return QSize(self._theme.px(10), self._theme.px(10))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.series(self._series).colour))
        painter.drawEllipse(QPointF(self.width() / 2, self.height() / 2), 4, 4)
        painter.end()


class SeriesLine(QWidget):
    """A short piece of a computer's curve, for a legend."""

    def __init__(self, theme: Theme, series: int) -> None:
        super().__init__()
        self._theme = theme
        self._series = series
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Long enough to show the dash."""
        return QSize(self._theme.px(22), self._theme.px(12))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        series = self._theme.series(self._series)
        pen = QPen(QColor(series.colour), 1.75)
        if pattern := dashes(series.dash, 1.75):
            pen.setDashPattern(pattern)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(pen)
        middle = self.height() / 2
        painter.drawLine(QPointF(1, middle), QPointF(self.width() - 1, middle))
        painter.end()


class EdgeLine(QWidget):
    """A straight piece of an edge in its state."""

    def __init__(self, theme: Theme, state: EdgeState, *, short: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._state = state
        self._short = short
        across = QSizePolicy.Policy.Fixed if short else QSizePolicy.Policy.Expanding
        self.setSizePolicy(across, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """As long as there is room, or as a sample."""
        return QSize(self._theme.px(26 if self._short else 60), self._theme.px(12))

    def set_state(self, state: EdgeState) -> None:
        """Change the state."""
        if state is not self._state:
            self._state = state
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(edge_pen(self._theme, self._state))
        middle = self.height() / 2
        painter.drawLine(QPointF(2, middle), QPointF(self.width() - 2, middle))
        painter.end()


class Bar(QWidget):
    """A thin bar that is full to a share."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._share = 0.0
        self._colour = ""
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """As long as there is room."""
        return QSize(self._theme.px(80), self._theme.px(8))

    def show_share(self, share: float, colour: str) -> None:
        """How full it is, and in which colour."""
        share = min(max(share, 0.0), 1.0)
        if (share, colour) != (self._share, self._colour):
            self._share, self._colour = share, colour
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        round_by = self.height() / 2
        painter.setBrush(self._theme.colour("busy_track"))
        painter.drawRoundedRect(self.rect(), round_by, round_by)
        if self._share > 0:
            width = max(float(self.height()), self.width() * self._share)
            rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
            left = self.width() - width if rtl else 0.0
            painter.setBrush(QColor(self._colour))
            painter.drawRoundedRect(QRectF(left, 0, width, self.height()), round_by, round_by)
        painter.end()


def show_status(pill: Pill, serving: Serving, *, over: bool, short: bool) -> None:
    """Say on a pill how the session is."""
    count = len(serving.ring)
    if over:
        pill.show_as(QCoreApplication.translate("Status", "Ended"), PillKind.PLAIN)
        return
    if serving.paused is not None:
        away = [one.machine.name for one in serving.ring if one.away_s is not None]
        if len(away) == 1:
            text = QCoreApplication.translate("Status", "Paused · {name} is away")
            text = text.format(name=away[0])
        elif away:
            text = QCoreApplication.translate("Status", "Paused · {number} are away")
            text = text.format(number=len(away))
        else:
            text = QCoreApplication.translate("Status", "Paused")
        pill.show_as(text, PillKind.LOST, Icon.PAUSE)
        return
    if short:
        text = QCoreApplication.translate("Status", "Serving · {number}").format(number=count)
    elif count == 1:
        text = QCoreApplication.translate("Status", "Serving · 1 computer")
    else:
        text = QCoreApplication.translate("Status", "Serving · {number} computers")
        text = text.format(number=count)
    pill.show_as(text, PillKind.OK, dot=True)
