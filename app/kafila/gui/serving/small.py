"""Small things that the pages of a session share: dots, dashes, thin bars, the status pill."""

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from kafila.domain.snapshot import Serving
from kafila.gui.serving.plots import dashes
from kafila.gui.serving.ring_look import EdgeState
from kafila.gui.serving.ring_paint import edge_pen
from kafila.gui.theme import Icon, Role, Theme
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


class HeadBadge(QWidget):
    """The sign of the computer that leads."""

    def __init__(self, theme: Theme, side: int = 18) -> None:
        super().__init__()
        self._theme = theme
        self._side = side
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A small disc."""
        return QSize(self._theme.px(self._side), self._theme.px(self._side))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("head"))
        painter.drawEllipse(QRectF(self.rect()))
        inner = self._side * 0.66
        icon = self._theme.pixmap(Icon.LANTERN, "on_lantern", inner, self.devicePixelRatioF())
        half = icon.deviceIndependentSize() / 2
        middle = QPointF(self.width() / 2, self.height() / 2)
        painter.drawPixmap(middle - QPointF(half.width(), half.height()), icon)
        painter.end()


class TitleButton(QAbstractButton):
    """The name of what is in view, elided, with a mark that more can be chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleDescription(self.tr("Opens the list of conversations"))

    def show_title(self, title: str) -> None:
        """Change the name."""
        if title != self.accessibleName():
            self.setAccessibleName(title)
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """As much room as there is."""
        return QSize(self._theme.px(160), self._theme.px(32))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A word and the mark."""
        return QSize(self._theme.px(80), self._theme.px(32))

    def paintEvent(self, e: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw name and mark."""
        px = self._theme.px
        painter = QPainter(self)
        font = self._theme.font(Role.SUBHEADING)
        painter.setFont(font)
        painter.setPen(self._theme.colour("accent_text" if self.underMouse() else "text"))
        metrics = QFontMetricsF(font)
        room = self.width() - px(26)
        title = metrics.elidedText(self.accessibleName(), Qt.TextElideMode.ElideRight, room)
        wide = metrics.horizontalAdvance(title) + 1
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = self.width() - wide if rtl else 0.0
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
        painter.drawText(QRectF(left, 0, wide, self.height()), flags, title)
        mark = self._theme.pixmap(Icon.CHEVRON_DOWN, "text_muted", 16, self.devicePixelRatioF())
        x = left - px(22) if rtl else left + wide + px(6)
        painter.drawPixmap(QPointF(x, (self.height() - px(16)) / 2), mark)
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
