"""Steps below one another: done with a tick, the present one lit, the others ahead."""

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.cards import row
from kafila.gui.widgets.text import Text, Tone

SIDE = 22


class _Mark(QWidget):
    """A tick, a light, or a dashed circle."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._place = 1
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def set_place(self, place: int) -> None:
        """Done (< 0), now (0) or ahead (> 0)."""
        self._place = place
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """A small square."""
        return QSize(self._theme.px(SIDE), self._theme.px(SIDE))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        px, colour = self._theme.px, self._theme.colour
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        centre = QPointF(self.width() / 2, self.height() / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        if self._place < 0:
            painter.setBrush(colour("accent"))
            painter.drawEllipse(centre, px(11), px(11))
            tick = self._theme.pixmap(Icon.CHECK, "on_accent", 14, self.devicePixelRatio())
            painter.drawPixmap(centre - QPointF(px(7), px(7)), tick)
        elif self._place == 0:
            painter.setBrush(colour("lantern_soft"))
            painter.drawEllipse(centre, px(11), px(11))
            painter.setBrush(colour("lantern"))
            painter.drawEllipse(centre, px(5.5), px(5.5))
        else:
            pen = QPen(colour("border_strong"), 1.25)
            pen.setDashPattern([2.6, 2])
            painter.setPen(pen)
            painter.drawEllipse(centre, px(10), px(10))
        painter.end()


class _Step(QWidget):
    """One step: mark, name, what is said of it."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.name = Text(theme, name, weight=500, wrap=True)
        self.second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._mark = _Mark(theme)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.name)
        words.addWidget(self.second)
        line = row(self._mark, words, spacing=theme.px(14))
        line.setStretch(1, 1)
        self.setLayout(line)

    def show_step(self, place: int, second: str) -> None:
        """Done (< 0), now (0) or ahead (> 0)."""
        self._mark.set_place(place)
        self.name.set_tone(Tone.MUTED if place > 0 else Tone.NORMAL)
        self.name.setFont(self._theme.font(Role.BODY, 600 if place == 0 else 500))
        self.second.set_text(second)
        self.second.setVisible(bool(second))
        state = self.tr("done") if place < 0 else self.tr("now") if place == 0 else self.tr("later")
        self.setAccessibleName(f"{self.name.words()}, {state}. {second}")


class Checklist(QWidget):
    """Steps in their order."""

    def __init__(self, theme: Theme, names: tuple[str, ...]) -> None:
        super().__init__()
        self._steps = [_Step(theme, name) for name in names]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(10))
        for step in self._steps:
            layout.addWidget(step)

    def show_steps(self, present: int, seconds: tuple[str, ...]) -> None:
        """Which step is being done, and the second line of each."""
        for place, (step, second) in enumerate(zip(self._steps, seconds, strict=True)):
            step.show_step(place - present, second)
