"""An answer: prose, code cards and folded thinking, one below the other.

Only segments that changed are rendered again, so a long answer costs no more per word than a
short one.
"""

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from kafila.gui.serving import markdown
from kafila.gui.serving.markdown import Segment
from kafila.gui.serving.prose import Prose, paint_writing_light
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Kind, Size, Text, Tone

GAP = 10


class CodeCard(QFrame):
    """A piece of code with its language and *Copy*. Long lines scroll, they do not wrap."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._writing = False
        self.setProperty("card", "code")
        self._language = Text(theme, "", Role.CAPTION, Tone.FAINT, weight=600)
        self.copy = Button(theme, self.tr("Copy"), Kind.QUIET, Size.SMALL, Icon.COPY)
        self.copy.clicked.connect(self._copied)
        self.code = QPlainTextEdit()
        self.code.setReadOnly(True)
        self.code.setProperty("prose", "true")
        self.code.setFrameShape(QFrame.Shape.NoFrame)
        self.code.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.code.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.code.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.code.setTabChangesFocus(True)
        # Code reads left to right whatever the interface's direction.
        self.code.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.code.document().setDocumentMargin(0)
        self.code.wheelEvent = self._wheel
        head = QHBoxLayout()
        head.setContentsMargins(theme.px(14), theme.px(4), theme.px(6), 0)
        head.addWidget(self._language)
        head.addStretch(1)
        head.addWidget(self.copy)
        body = QVBoxLayout(self)
        body.setContentsMargins(0, 0, 0, theme.px(10))
        body.setSpacing(theme.px(2))
        body.addLayout(head)
        inner = QHBoxLayout()
        inner.setContentsMargins(theme.px(14), 0, theme.px(14), 0)
        inner.addWidget(self.code)
        body.addLayout(inner)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._fit)

    def show_code(self, code: markdown.Code, *, writing: bool) -> None:
        """Show a piece of code."""
        self._language.set_text(code.language)
        self._writing = writing
        name = self.tr("Code, {language}").format(language=code.language)
        self.code.setAccessibleName(name if code.language else self.tr("Code"))
        if code.text != self.code.toPlainText():
            self.code.setPlainText(code.text)
            self._fit()
        self.update()

    def _fit(self) -> None:
        font = self._theme.mono()
        self.code.setFont(font)
        metrics = QFontMetricsF(font)
        lines = self.code.toPlainText().split("\n")
        widest = max(metrics.horizontalAdvance(line) for line in lines)
        bar = self._theme.px(14) if widest > self.code.viewport().width() > 100 else 0
        self.code.setFixedHeight(round(metrics.lineSpacing() * len(lines)) + 6 + bar)

    def _copied(self) -> None:
        QGuiApplication.clipboard().setText(self.code.toPlainText())
        self.copy.flash(self.tr("Copied"))

    def _wheel(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the card, and a light while it is being written."""
        super().paintEvent(event)
        if self._writing:
            painter = QPainter(self)
            side = self._theme.px(9)
            rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
            x = side if rtl else self.width() - side
            paint_writing_light(painter, self._theme, QPointF(x, self.height() - side))
            painter.end()


class Thinking(QWidget):
    """What the model wrote to itself, folded away."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._fold = Button(theme, "", Kind.LINK, Size.SMALL, Icon.CHEVRON_RIGHT)
        self._fold.setCheckable(True)
        self._text = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._text.hide()
        self._fold.toggled.connect(self._text.setVisible)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(4))
        layout.addWidget(self._fold)
        layout.addWidget(self._text)

    def show_thought(self, thought: markdown.Thought) -> None:
        """Show a thought, finished or not."""
        words = self.tr("Thought before answering") if thought.closed else self.tr("Thinking")
        self._fold.set_words(words)
        self._text.set_text(thought.text)


class AnswerView(QWidget):
    """The segments of one answer."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._text = ""
        self._writing = False
        self._segments: tuple[Segment, ...] = ()
        self._parts: list[QWidget] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(GAP))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def text(self) -> str:
        """The Markdown of the whole answer."""
        return self._text

    @property
    def parts(self) -> tuple[QWidget, ...]:
        """The widgets of the segments; none while parked."""
        return tuple(self._parts)

    def show_text(self, text: str, *, writing: bool) -> None:
        """Show an answer as far as it has come."""
        if (text, writing) == (self._text, self._writing) and self._parts:
            return
        self._text = text
        self._writing = writing
        segments = markdown.split(text)
        for at, segment in enumerate(segments):
            last = at == len(segments) - 1
            stale = at >= len(self._segments) or segment != self._segments[at]
            was_last = at == len(self._segments) - 1
            if stale or last or was_last:
                self._show_segment(at, segment, writing=writing and last)
        while len(self._parts) > len(segments):
            self._drop(self._parts.pop())
        self._segments = segments
        self.setVisible(bool(segments))

    def _show_segment(self, at: int, segment: Segment, *, writing: bool) -> None:
        kind = {markdown.Prose: Prose, markdown.Code: CodeCard, markdown.Thought: Thinking}
        if at < len(self._parts) and not isinstance(self._parts[at], kind[type(segment)]):
            for old in self._parts[at:]:
                self._drop(old)
            del self._parts[at:]
        if at == len(self._parts):
            part = self._make(segment)
            self._parts.append(part)
            self._layout.addWidget(part)
            part.show()
        part = self._parts[at]
        if isinstance(part, Prose) and isinstance(segment, markdown.Prose):
            part.show_markdown(segment.text, writing=writing)
        elif isinstance(part, CodeCard) and isinstance(segment, markdown.Code):
            part.show_code(segment, writing=writing)
        elif isinstance(part, Thinking) and isinstance(segment, markdown.Thought):
            part.show_thought(segment)

    def _make(self, segment: Segment) -> QWidget:
        match segment:
            case markdown.Prose():
                return Prose(self._theme, self.tr("Answer"))
            case markdown.Code():
                return CodeCard(self._theme)
            case markdown.Thought():
                return Thinking(self._theme)

    def _drop(self, part: QWidget) -> None:
        self._layout.removeWidget(part)
        part.hide()
        part.deleteLater()

    def park(self) -> None:
        """Keep the height and drop the documents, far from what is in view."""
        if self._parts:
            self.setFixedHeight(self.height())
            for part in self._parts:
                self._drop(part)
            self._parts.clear()
            self._segments = ()

    def unpark(self) -> None:
        """Render again."""
        if not self._parts and self._text:
            self.setMinimumHeight(0)
            self.setMaximumHeight((1 << 24) - 1)
            self.show_text(self._text, writing=self._writing)
