"""Rows of figures beside the graphs: a table with something drawn, and the values under the pointer."""

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout, QWidget

from kafila.gui.serving.small import Dot
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Card, Text, Tone


class Table(Card):
    """Rows of a name, something drawn, and a figure."""

    def __init__(self, theme: Theme, title: str) -> None:
        super().__init__(theme, margin=18, spacing=8)
        self._own = theme
        self._rows: list[tuple[Text, QWidget, Text]] = []
        self.body.addWidget(Text(theme, title, Role.SUBHEADING))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.px(20))
        self._grid.setVerticalSpacing(theme.px(4))
        self._grid.setColumnStretch(1, 1)
        self.body.addLayout(self._grid)
        self.body.addStretch(1)

    def start(self) -> None:
        """Forget all rows."""
        for parts in self._rows:
            for part in parts:
                self._grid.removeWidget(part)
                part.deleteLater()
        self._rows.clear()

    def add(self, name: str, drawn: QWidget) -> None:
        """Add a row."""
        left = Text(self._own, name, Role.SMALL)
        right = Text(self._own, "", Role.SMALL, Tone.MUTED)
        line = len(self._rows)
        self._rows.append((left, drawn, right))
        self._grid.addWidget(left, line, 0)
        self._grid.addWidget(drawn, line, 1, Qt.AlignmentFlag.AlignVCenter)
        self._grid.addWidget(right, line, 2, Qt.AlignmentFlag.AlignRight)
        for part in (left, drawn, right):
            part.show()

    def middle(self, line: int) -> QWidget | None:
        """What is drawn in a row."""
        return self._rows[line][1] if line < len(self._rows) else None

    def say(self, line: int, figure: str, said: str = "") -> None:
        """Change the figure of a row, and what is read aloud for it."""
        if line < len(self._rows):
            name, drawn, right = self._rows[line]
            right.set_text(figure)
            drawn.setAccessibleName(said or f"{name.text()}, {figure}")


class HoverCard(QFrame):
    """A line at one time of a plot, and a card with the values there."""

    def __init__(self, theme: Theme, plot: QWidget) -> None:
        super().__init__(plot)
        self._theme = theme
        self._plot = plot
        self.setProperty("card", "raised")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._line = QFrame(plot)
        self._line.setProperty("surface", "line")
        self._line.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._line.hide()
        self._body = QVBoxLayout(self)
        self._body.setContentsMargins(theme.px(12), theme.px(8), theme.px(12), theme.px(8))
        self._when = Text(theme, "", Role.CAPTION, Tone.MUTED)
        self._body.addWidget(self._when)
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(theme.px(2))
        self._body.addLayout(self._grid)
        self._rows: list[tuple[Dot, Text, Text]] = []
        plot.installEventFilter(self)
        self.hide()

    def show_values(self, when: str, lines: list[tuple[int, str, str]], x: int) -> None:
        """Show the values of a time, beside its place in the plot."""
        self._when.set_text(when)
        if len(lines) != len(self._rows):
            self._start(lines)
        for (_, name, value), (place, text, figure) in zip(self._rows, lines, strict=True):
            del place
            name.set_text(text)
            value.set_text(figure)
        self.adjustSize()
        beside = x + self._theme.px(12)
        if beside + self.width() > self._plot.width():
            beside = x - self._theme.px(12) - self.width()
        self.move(QPoint(beside, self._theme.px(4)))
        self._line.setGeometry(x, 0, 1, self._plot.height() - self._theme.px(18))
        self._line.show()
        self._line.raise_()
        self.show()
        self.raise_()

    def _start(self, lines: list[tuple[int, str, str]]) -> None:
        for parts in self._rows:
            for part in parts:
                self._grid.removeWidget(part)
                part.deleteLater()
        self._rows = [
            (
                Dot(self._theme, place),
                Text(self._theme, "", Role.CAPTION),
                Text(self._theme, "", Role.CAPTION, weight=600),
            )
            for place, _, _ in lines
        ]
        for line, (dot, name, value) in enumerate(self._rows):
            self._grid.addWidget(dot, line, 0)
            self._grid.addWidget(name, line, 1)
            self._grid.addWidget(value, line, 2, Qt.AlignmentFlag.AlignRight)

    def hide(self) -> None:
        """Hide card and line."""
        self._line.hide()
        super().hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Hide when the plot does."""
        if event.type() is QEvent.Type.Hide:
            self.hide()
        return super().eventFilter(watched, event)
