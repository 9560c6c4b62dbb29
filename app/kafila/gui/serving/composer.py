"""Where a question is written: Enter sends, Shift+Enter begins a line."""

from PySide6.QtCore import QEvent, QMargins, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from kafila.gui.serving.conversations import Settings
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Card, IconButton, Kind, Text, Tone
from kafila.gui.widgets.buttons import restyle
from kafila.gui.widgets.choices import Segments
from kafila.gui.widgets.focus import OWN_FOCUS

MOST_LINES = 8
LENGTHS = (256, 512, 1024)
TEMPERATURES = (0.0, None, 0.8)


class Draft(QPlainTextEdit):
    """The text being written. It grows with its lines, up to a point."""

    entered = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("prose", "true")
        self.setProperty(OWN_FOCUS, True)  # noqa: FBT003 - Qt's own signature
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.textChanged.connect(self.fit)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        font = self._theme.font(Role.MESSAGE)
        self.setFont(font)
        # The placeholder is painted in the font of the viewport.
        self.viewport().setFont(font)
        self.fit()

    def fit(self) -> None:
        """Be as high as the lines need."""
        line = QFontMetricsF(self.font()).lineSpacing()
        lines = min(max(1, int(self.document().size().height())), MOST_LINES)
        self.setFixedHeight(round(lines * line) + 4)

    def keyPressEvent(self, e: QKeyEvent) -> None:  # noqa: N802
        """Enter sends; with Shift it begins a line."""
        enter = e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if enter and not e.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.entered.emit()
        elif e.key() == Qt.Key.Key_Escape:
            e.ignore()
        else:
            super().keyPressEvent(e)


class Composer(QFrame):
    """The draft, its settings and *Send*. `sent` with the question."""

    sent = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._reason = ""
        self._hint = self.tr("Ask the group’s model")
        self.setProperty("composer", "true")
        self.draft = Draft(theme)
        self.draft.setAccessibleName(self.tr("Your question"))
        self.draft.setPlaceholderText(self._hint)
        self.draft.entered.connect(self.send)
        self.draft.textChanged.connect(self._changed)
        self.draft.installEventFilter(self)
        self.settings_button = IconButton(theme, Icon.SLIDERS_HORIZONTAL, self.tr("How answers are made"))
        self.settings_button.clicked.connect(self._open_settings)
        self.why = Text(theme, "", Role.CAPTION, Tone.FAINT)
        self.button = IconButton(theme, Icon.ARROW_UP, self.tr("Send"), Kind.PRIMARY)
        self.button.clicked.connect(self.send)
        self.settings = AnswerSettings(theme, self)
        self.settings.hide()
        # A click on the frame around the draft is meant for the draft.
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setFocusProxy(self.draft)
        low = QHBoxLayout()
        low.setContentsMargins(0, 0, 0, 0)
        low.setSpacing(theme.px(8))
        low.addWidget(self.settings_button)
        low.addWidget(self.why, 1)
        low.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(16), theme.px(12), theme.px(10), theme.px(10))
        layout.setSpacing(theme.px(10))
        layout.addWidget(self.draft)
        layout.addLayout(low)
        self._changed()

    @property
    def text(self) -> str:
        """The question so far, without blank ends."""
        return self.draft.toPlainText().strip()

    def put(self, text: str) -> None:
        """Put a text into the draft, with the cursor at its end."""
        self.draft.setPlainText(text)
        self.draft.moveCursor(self.draft.textCursor().MoveOperation.End)
        self.draft.setFocus(Qt.FocusReason.OtherFocusReason)

    def block(self, reason: str) -> None:
        """Do not send, and say why; an empty reason sends again. The draft can be written on."""
        if reason != self._reason:
            self._reason = reason
            self.why.set_text(reason)
            self._changed()

    def send(self) -> None:
        """Send what is written, if it can be."""
        text = self.text
        if text and not self._reason:
            self.draft.clear()
            self.sent.emit(text)

    def _changed(self) -> None:
        self.button.setEnabled(bool(self.text) and not self._reason)
        said = self._reason or self.tr("Send (Enter)")
        self.button.setToolTip(said)
        self.draft.setAccessibleDescription(self._reason)

    def _open_settings(self) -> None:
        self.settings.open_above(self.settings_button)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """The whole frame shows that the draft has the focus."""
        if isinstance(event, QFocusEvent):
            self.setProperty("focused", "true" if event.gotFocus() else None)
            restyle(self)
        return super().eventFilter(watched, event)


class AnswerSettings(QFrame):
    """How long and how free answers may be. A popup."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setAccessibleName(self.tr("How answers are made"))
        self.length = Segments(
            theme,
            self.tr("Longest answer"),
            (self.tr("Short"), self.tr("Medium"), self.tr("Long")),
            chosen=1,
        )
        self.freedom = Segments(
            theme,
            self.tr("Choice of words"),
            (self.tr("Always the likeliest"), self.tr("Usual"), self.tr("Free")),
            chosen=1,
        )
        self._settings = Settings()
        self.length.chosen.connect(self.choose_length)
        self.freedom.chosen.connect(self.choose_freedom)
        card = Card(theme, margin=16, spacing=6, kind="raised")
        card.body.addWidget(Text(theme, self.tr("Longest answer"), Role.SMALL, Tone.MUTED))
        card.body.addWidget(self.length)
        card.body.addSpacing(theme.px(8))
        card.body.addWidget(Text(theme, self.tr("Choice of words"), Role.SMALL, Tone.MUTED))
        card.body.addWidget(self.freedom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(QMargins(4, 4, 4, 4))
        layout.addWidget(card)

    @property
    def chosen(self) -> Settings:
        """What was chosen."""
        return self._settings

    def open_above(self, button: QWidget) -> None:
        """Show it over its button."""
        self.adjustSize()
        corner = button.mapToGlobal(QPoint(0, 0))
        self.move(corner - QPoint(8, self.height() + 4))
        self.show()

    def choose_length(self, place: int) -> None:
        """Take one of the lengths."""
        self.length.choose(place)
        self._settings = Settings(max_tokens=LENGTHS[place], temperature=self._settings.temperature)

    def choose_freedom(self, place: int) -> None:
        """Take one of the ways to choose words; the first always gives the same answer."""
        self.freedom.choose(place)
        self._settings = Settings(max_tokens=self._settings.max_tokens, temperature=TEMPERATURES[place])
