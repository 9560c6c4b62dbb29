"""The messages of the conversation in view, one below the other, the last one at the bottom."""

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from kafila.domain.errors import Problem
from kafila.gui.serving.conversations import Conversation
from kafila.gui.serving.message import Message
from kafila.gui.theme import Icon, Theme
from kafila.gui.widgets import Empty

NEAR_END = 60
PARK_BEYOND_VIEWS = 3
SPACE = 18


class Messages(QScrollArea):
    """Scrolls; stays at the end while an answer is written, unless one scrolled up to read."""

    again = Signal(int)
    edit = Signal(int)
    go_on = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = ""
        self._turns: list[Message] = []
        self._follow = True
        self._inner = QWidget()
        self._inner.setProperty("surface", "clear")
        self._inner.installEventFilter(self)
        self._layout = QVBoxLayout(self._inner)
        side = theme.px(20)
        self._layout.setContentsMargins(side, side, side, theme.px(12))
        self._layout.setSpacing(theme.px(SPACE))
        self._layout.addStretch(1)
        self._empty = Empty(
            theme,
            Icon.MESSAGE_CIRCLE,
            self.tr("Nothing said yet"),
            self.tr("Ask the group’s model something. Only you see it in your list."),
            None,
        )
        self._layout.addWidget(self._empty)
        self._gap = QWidget()
        self._layout.addWidget(self._gap, 1)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Conversation"))
        self.setWidget(self._inner)
        self._tidy = QTimer(self, singleShot=True, interval=150)
        self._tidy.timeout.connect(self._park)
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._range_changed)

    @property
    def all(self) -> tuple[Message, ...]:
        """The messages on the screen, in order."""
        return tuple(self._turns)

    def show_conversation(self, conversation: Conversation, *, paused: Problem | None, can_ask: bool) -> None:
        """Show a conversation as it is now; only turns that changed are rendered again."""
        if conversation.id != self._shown:
            self._shown = conversation.id
            self._cut(0)
            self._follow = True
        turns = conversation.turns
        self._cut(len(turns))
        for at, turn in enumerate(turns):
            if at == len(self._turns):
                self._add(at)
            self._turns[at].show_turn(turn, paused=paused, can_ask=can_ask)
        self._empty.setVisible(not turns)
        self._gap.setVisible(not turns)

    def to_end(self) -> None:
        """Scroll to the last word, and stay there."""
        self._follow = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _add(self, at: int) -> None:
        message = Message(self._theme)
        message.again.connect(lambda: self.again.emit(at))
        message.edit.connect(lambda: self.edit.emit(at))
        message.go_on.connect(self.go_on)
        self._turns.append(message)
        self._layout.addWidget(message)
        message.show()

    def _cut(self, count: int) -> None:
        while len(self._turns) > count:
            gone = self._turns.pop()
            self._layout.removeWidget(gone)
            gone.hide()
            gone.deleteLater()

    def _scrolled(self, value: int) -> None:
        self._follow = self.verticalScrollBar().maximum() - value <= NEAR_END
        self._tidy.start()

    def _range_changed(self, _least: int, most: int) -> None:
        if self._follow:
            self.verticalScrollBar().setValue(most)

    def _park(self) -> None:
        """Drop the documents of messages far from the view; bring near ones back."""
        view = self.viewport().height()
        top = self.verticalScrollBar().value()
        for message in self._turns[:-1]:
            away = max(top - message.geometry().bottom(), message.y() - (top + view))
            if away > PARK_BEYOND_VIEWS * view:
                message.answer.park()
            else:
                message.answer.unpark()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Messages are as wide as the view; another width makes other heights."""
        super().resizeEvent(event)
        self._inner.setFixedWidth(self.viewport().width())
        self._tidy.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Content that grows keeps its end in view."""
        if event.type() is QEvent.Type.LayoutRequest and self._follow:
            self._tidy.start()
        return super().eventFilter(watched, event)
