"""What a message is made of: the bubble, the line about its state, icons that show when wanted."""

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from kafila.gui.serving import conversations as talk
from kafila.gui.serving import figures
from kafila.gui.serving.conversations import Answer
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, IconButton, IconLabel, Kind, Size, Text, Tone
from kafila.gui.widgets.lights import MovingLights

RADIUS = 14.0
TAIL = 4.0
BUBBLE_SIDE = 14
BUBBLE_ABOVE = 10


class QuietIcon(IconButton):
    """An icon that is seen while the pointer is over its message, or when it has the focus."""

    def __init__(self, theme: Theme, icon: Icon, name: str) -> None:
        super().__init__(theme, icon, name, Kind.QUIET, Size.SMALL)
        self._seen = False

    def set_seen(self, *, seen: bool) -> None:
        """Whether the pointer is near."""
        if seen != self._seen:
            self._seen = seen
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw it only where it is wanted; its place is kept."""
        if self._seen or self.hasFocus():
            super().paintEvent(event)


class Bubble(QWidget):
    """A question: plain text in a soft shape with a small tail at its lower corner."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setWordWrap(True)
        self._label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._label.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self._layout = QHBoxLayout(self)
        self._layout.addWidget(self._label)
        self._most = 400
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def text(self) -> str:
        """The question."""
        return self._label.text()

    def set_text(self, text: str) -> None:
        """Show a question."""
        if text != self._label.text():
            self._label.setText(text)
            self.setAccessibleName(self.tr("You: {text}").format(text=text))
            self._fit()

    def set_most(self, width: int) -> None:
        """How wide it may become."""
        if width != self._most:
            self._most = width
            self._fit()

    def _restyle(self) -> None:
        side, above = self._theme.px(BUBBLE_SIDE), self._theme.px(BUBBLE_ABOVE)
        self._layout.setContentsMargins(side, above, side, above)
        self._label.setFont(self._theme.font(Role.MESSAGE))
        self._fit()

    def _fit(self) -> None:
        """As wide as the longest line, up to the most; as high as the lines then need."""
        metrics = QFontMetricsF(self._label.font())
        lines = self._label.text().split("\n")
        natural = max(metrics.horizontalAdvance(line) for line in lines) + 4
        room = max(40, self._most - 2 * self._theme.px(BUBBLE_SIDE))
        width = round(min(natural, room))
        self._label.setFixedSize(width, max(1, self._label.heightForWidth(width)))
        self.updateGeometry()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the shape."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("user_msg"))
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        painter.drawPath(_bubble(QRectF(self.rect()), tail_left=rtl))
        painter.end()


class StatusLine(QWidget):
    """A line about an answer that is waited for, or was stopped."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._icon = IconLabel(theme, Icon.HOURGLASS, "text_faint", 16)
        self._lights = MovingLights(theme)
        self.words = Text(theme, "", Role.SMALL, Tone.MUTED)
        self.go_on = Button(theme, self.tr("Go on"), Kind.LINK, Size.SMALL)
        self.again = Button(theme, self.tr("Ask again"), Kind.LINK, Size.SMALL)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(8))
        for part in (self._icon, self._lights, self.words, self.go_on, self.again):
            layout.addWidget(part)
        layout.addStretch(1)

    def show_state(self, answer: Answer, *, paused: bool) -> None:
        """Say where an answer is; nothing where it speaks for itself."""
        state = answer.state
        stopped = isinstance(state, talk.Stopped) or state == talk.Done(cut=True)
        waiting = isinstance(state, talk.Waiting) and not paused
        self.go_on.setVisible(stopped and bool(answer.text))
        self.again.setVisible(isinstance(state, talk.Stopped))
        if isinstance(state, talk.Waiting):
            self._icon.show_as(Icon.HOURGLASS, "text_faint")
            self.words.set_text(self._place_in_line(state.ahead))
        elif isinstance(state, talk.Stopped):
            self._icon.show_as(Icon.SQUARE, "text_faint")
            self.words.set_text(self.tr("You stopped this answer."))
        elif stopped:
            self._icon.show_as(Icon.SQUARE, "text_faint")
            self.words.set_text(self.tr("The answer reached the length asked for."))
        self._lights.setVisible(waiting and not (isinstance(state, talk.Waiting) and state.ahead))
        self._icon.setVisible(not self._lights.isVisibleTo(self))
        self.setAccessibleName(self.words.text())
        self.setVisible(waiting or stopped)

    def _place_in_line(self, ahead: int | None) -> str:
        if not ahead:
            return self.tr("Reading your question")
        if ahead == 1:
            return self.tr("One question is ahead of yours")
        text = self.tr("{number} questions are ahead of yours")
        return text.format(number=figures.number(ahead, 0))


def _bubble(box: QRectF, *, tail_left: bool) -> QPainterPath:
    """A rounded rectangle with one small corner at the bottom."""
    path = QPainterPath()
    left, top, right, bottom = box.left(), box.top(), box.right(), box.bottom()
    small_left = TAIL if tail_left else RADIUS
    small_right = RADIUS if tail_left else TAIL
    path.moveTo(QPointF(left + RADIUS, top))
    path.lineTo(right - RADIUS, top)
    path.quadTo(right, top, right, top + RADIUS)
    path.lineTo(right, bottom - small_right)
    path.quadTo(right, bottom, right - small_right, bottom)
    path.lineTo(left + small_left, bottom)
    path.quadTo(left, bottom, left, bottom - small_left)
    path.lineTo(left, top + RADIUS)
    path.quadTo(left, top, left + RADIUS, top)
    return path
