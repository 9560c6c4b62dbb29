"""A bar that compares a rate with others, or says that there is none."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.gui.theme import Theme
from kafila.gui.theme.tokens import ColourName

HEIGHT = 8


class RateBar(QWidget):
    """Filled to its share of the highest rate; hollow and dashed where it cannot be."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._share: float | None = None
        self._colour: ColourName = "accent"
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def show_rate(self, share: float | None, colour: ColourName) -> None:
        """Fill it to a share from 0 to 1; None: hollow."""
        if (share, colour) != (self._share, self._colour):
            self._share, self._colour = share, colour
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Thin."""
        return QSize(self._theme.px(60), self._theme.px(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            painter.translate(self.width(), 0)
            painter.scale(-1, 1)
        box = QRectF(self.rect())
        round_by = box.height() / 2
        if self._share is None:
            pen = QPen(self._theme.colour("border_strong"), 1)
            pen.setDashPattern([3, 2])
            painter.setPen(pen)
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), round_by, round_by)
        else:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.colour("busy_track"))
            painter.drawRoundedRect(box, round_by, round_by)
            painter.setBrush(self._theme.colour(self._colour))
            filled = max(box.width() * min(self._share, 1), box.height())
            painter.drawRoundedRect(QRectF(0, 0, filled, box.height()), round_by, round_by)
        painter.end()
