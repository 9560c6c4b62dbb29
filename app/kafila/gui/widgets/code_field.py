"""The field that a code is typed into: it completes words, and marks the one that is wrong."""

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QLineEdit

from kafila.gui.codes import Reading, Right, Typing, Wrong, read_code
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.buttons import restyle
from kafila.gui.widgets.focus import CORNER
from kafila.protocol.misread import UnknownWord
from kafila.protocol.words import WordList

TEXT = 23
WAVE = 3.0
MARK_ROOM = 44


class CodeField(QLineEdit):
    """A large line that reads a code as it is typed. `read` comes with every change."""

    read = Signal(object)

    def __init__(self, theme: Theme, words: WordList) -> None:
        super().__init__()
        self._theme = theme
        self._words = words
        self._reading: Reading = read_code("", words)
        self.setProperty("field", "code")
        self.setProperty(CORNER, 14)
        self.setPlaceholderText("47-harbor-…")
        self.setAccessibleName(self.tr("Code or invitation link"))
        self.setMaxLength(2000)
        self.textChanged.connect(self._changed)
        self.cursorPositionChanged.connect(self.update)
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def reading(self) -> Reading:
        """What the text is."""
        return self._reading

    def _restyle(self) -> None:
        font = self._theme.font(Role.HEADING, 600)
        font.setPixelSize(self._theme.px(TEXT))
        font.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, 0)
        self.setFont(font)
        self.setTextMargins(0, 0, self._theme.px(MARK_ROOM), 0)
        restyle(self)

    def _changed(self, text: str) -> None:
        before, self._reading = self._reading, read_code(text, self._words)
        # A pasted message becomes the code that is in it; what is typed stays as it was typed.
        if isinstance(self._reading, Right) and len(text.strip()) > len(self._reading.text()):
            self.setText(self._reading.text())
            return
        wrong, right = isinstance(self._reading, Wrong), isinstance(self._reading, Right)
        state = "wrong" if wrong else "right" if right else ""
        if self.property("state") != state:
            self.setProperty("state", state)
            restyle(self)
        self.update()
        if before != self._reading:
            self.read.emit(self._reading)

    def _completion(self) -> str:
        if isinstance(self._reading, Typing) and self.cursorPosition() == len(self.text()):
            return self._reading.rest
        return ""

    def event(self, event: QEvent) -> bool:
        """Tab takes the rest of the word, where one is shown."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.KeyPress
            and event.key() == Qt.Key.Key_Tab
            and (rest := self._completion())
        ):
            self.insert(rest)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw the line, then marks and completion over it."""
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        match self._reading:
            case Wrong(misread=UnknownWord() as word):
                self._paint_wrong(painter, word)
            case Right():
                self._paint_sign(painter, Icon.CHECK)
            case Typing():
                self._paint_completion(painter)
            case _:
                pass
        painter.end()

    def _left_of(self, position: int) -> float:
        metrics = QFontMetricsF(self.font())
        cursor = metrics.horizontalAdvance(self.text()[: self.cursorPosition()])
        here = self.cursorRect().center().x()
        return here - cursor + metrics.horizontalAdvance(self.text()[:position])

    def _baseline(self) -> float:
        metrics = QFontMetricsF(self.font())
        return (self.height() + metrics.ascent() - metrics.descent()) / 2

    def _paint_wrong(self, painter: QPainter, wrong: UnknownWord) -> None:
        word = self.text()[wrong.start : wrong.end]
        left, right = self._left_of(wrong.start), self._left_of(wrong.end)
        if right > self.width() - self._theme.px(MARK_ROOM):
            return
        metrics = QFontMetricsF(self.font())
        baseline = self._baseline()
        box = QRectF(left - 4, baseline - metrics.ascent(), right - left + 8, metrics.height())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("raised"))
        painter.drawRect(box)
        painter.setBrush(self._theme.colour("lost_soft"))
        painter.drawRoundedRect(box, self._theme.px(7), self._theme.px(7))
        painter.setFont(self.font())
        painter.setPen(self._theme.colour("lost_text"))
        painter.drawText(QPointF(left, baseline), word)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self._theme.colour("lost"), 1.75))
        painter.drawPath(_wave(left, right, box.bottom() + 2))

    def _paint_completion(self, painter: QPainter) -> None:
        rest = self._completion()
        if not rest or not self.hasFocus():
            return
        painter.setFont(self.font())
        painter.setPen(self._theme.colour("text_faint"))
        painter.drawText(QPointF(self._left_of(len(self.text())) + 1, self._baseline()), rest)
        painter.setFont(self._theme.font(Role.CAPTION, 600))
        painter.setPen(self._theme.colour("text_muted"))
        box = self.rect().adjusted(0, 0, -self._theme.px(18), 0)
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, "Tab")

    def _paint_sign(self, painter: QPainter, icon: Icon) -> None:
        side = self._theme.px(20)
        pixmap = self._theme.pixmap(icon, "accent", 20, self.devicePixelRatio())
        painter.drawPixmap(self.width() - side - self._theme.px(18), (self.height() - side) // 2, pixmap)


def _wave(left: float, right: float, middle: float) -> QPainterPath:
    path = QPainterPath(QPointF(left, middle))
    x, sign = left, 1
    while x < right:
        path.quadTo(QPointF(x + WAVE, middle + sign * WAVE), QPointF(x + 2 * WAVE, middle))
        x, sign = x + 2 * WAVE, -sign
    return path
