"""The cross-fade between pages: what was there lies over what is, and goes."""

from PySide6.QtCore import QVariantAnimation
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from kafila.gui.theme import Theme


class Fade(QWidget):
    """Covers `over` with a picture of it that becomes transparent."""

    def __init__(self, theme: Theme, over: QWidget) -> None:
        super().__init__(over)
        self._theme = theme
        self._over = over
        self._picture = QPixmap()
        self._opacity = 0.0
        self._animation = QVariantAnimation(self)
        self._animation.setStartValue(1.0)
        self._animation.setEndValue(0.0)
        self._animation.setDuration(theme.tokens.motion.durations_ms.fade)
        self._animation.valueChanged.connect(self._change)
        self._animation.finished.connect(self._finish)
        self.hide()

    def cover(self) -> None:
        """Call before the page changes; it fades from there."""
        if self._theme.still or not self._over.isVisible():
            return
        self._picture = self._over.grab()
        self._opacity = 1.0
        self.setGeometry(self._over.rect())
        self.raise_()
        self.show()
        self._animation.start()

    def _change(self, value: float) -> None:
        self._opacity = value
        self.update()

    def _finish(self) -> None:
        self.hide()
        self._picture = QPixmap()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw what was there."""
        painter = QPainter(self)
        painter.setOpacity(self._opacity)
        painter.drawPixmap(0, 0, self._picture)
        painter.end()
