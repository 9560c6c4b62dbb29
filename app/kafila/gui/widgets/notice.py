"""What is said in place (notices), in passing (the toast), and before something is lost (asking)."""

from collections.abc import Callable
from enum import StrEnum

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.errors import Problem
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.theme.tokens import ColourName
from kafila.gui.widgets.buttons import Button, IconButton, Kind, Size, restyle
from kafila.gui.widgets.cards import IconLabel, row
from kafila.gui.widgets.focus import FocusFrame
from kafila.gui.widgets.text import Text, Tone, fill

TOAST_BOTTOM = 24
TOAST_SIDE = 12


class NoticeKind(StrEnum):
    """What a notice is about; the colour follows."""

    OK = "ok"
    ACCENT = "accent"
    LANTERN = "lantern"
    RELAYED = "relayed"
    LOST = "lost"


_LOOKS: dict[NoticeKind, tuple[Icon, ColourName]] = {
    NoticeKind.OK: (Icon.CIRCLE_CHECK, "direct"),
    NoticeKind.ACCENT: (Icon.INFO, "accent_text"),
    NoticeKind.LANTERN: (Icon.CLIPBOARD_CHECK, "lantern_text"),
    NoticeKind.RELAYED: (Icon.CLOCK, "relayed"),
    NoticeKind.LOST: (Icon.CIRCLE_ALERT, "lost"),
}


class Notice(QFrame):
    """A sentence on a soft ground, with an icon; perhaps buttons at its end."""

    def __init__(self, theme: Theme, kind: NoticeKind, icon: Icon | None = None) -> None:
        super().__init__()
        self._theme = theme
        self._icon = IconLabel(theme, icon or _LOOKS[kind][0], _LOOKS[kind][1])
        self._text = Text(theme, wrap=True)
        self.setProperty("notice", kind)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._layout = QHBoxLayout(self)
        self._layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        self._layout.addWidget(self._text, 1, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._restyle)
        self._restyle()

    def say(self, html: str) -> None:
        """Show our own markup, filled by `fill`; first words bold."""
        self._text.set_html(html)

    def say_problem(self, problem: Problem) -> None:
        """Show what happened, and what to do."""
        self.say(fill("<b>{title}.</b> {advice}", title=problem.title, advice=problem.advice))

    def words(self) -> str:
        """What it says, without markup."""
        return self._text.words()

    def add(self, button: QWidget) -> None:
        """Put a button at the end."""
        self._layout.setAlignment(self._icon, Qt.AlignmentFlag.AlignVCenter)
        self._layout.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)

    def _restyle(self) -> None:
        px = self._theme.px
        self._layout.setContentsMargins(px(16), px(12), px(12), px(12))
        self._layout.setSpacing(px(12))


class Toast(QFrame):
    """One sentence at the bottom of the window for some seconds, with at most one action."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parent = parent
        self._act: Callable[[], None] | None = None
        self.setProperty("notice", "toast")
        self._text = Text(theme, tone=Tone.INVERSE)
        self.button = Button(theme, "", Kind.INVERSE, Size.SMALL)
        self.button.clicked.connect(self._acted)
        self._close = IconButton(theme, Icon.X, self.tr("Close"), Kind.INVERSE, Size.SMALL)
        self._close.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 6, 8, 6)
        layout.setSpacing(12)
        for part in (self._text, self.button, self._close):
            layout.addWidget(part)
        stay_ms = theme.tokens.motion.durations_ms.toast_stay
        self._timer = QTimer(self, singleShot=True, interval=stay_ms)
        self._timer.timeout.connect(self._over)
        parent.installEventFilter(self)
        self.hide()

    def say(self, sentence: str, action: str = "", act: Callable[[], None] | None = None) -> None:
        """Show a sentence in place of what may be shown."""
        self._text.set_text(sentence)
        self.setAccessibleName(sentence)
        self._act = act
        self.button.set_words(action)
        self.button.setVisible(bool(action))
        self._place()
        self.show()
        self.raise_()
        self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Stay at the bottom centre of the window."""
        if event.type() is QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        parent = self._parent
        self._text.setWordWrap(False)
        whole = self.sizeHint()
        most = parent.width() - 2 * self._theme.px(TOAST_SIDE)
        self._text.setWordWrap(whole.width() > most)
        width = min(whole.width(), most)
        self.resize(width, max(whole.height(), self.heightForWidth(width)))
        left = (parent.width() - self.width()) // 2
        self.move(max(left, 0), parent.height() - self.height() - self._theme.px(TOAST_BOTTOM))

    def _over(self) -> None:
        if self.underMouse() or self.button.hasFocus():
            self._timer.start()
        else:
            self.hide()

    def _acted(self) -> None:
        self.hide()
        if self._act is not None:
            self._act()


class Asking(QDialog):
    """Asks before something is lost: the safe choice has the focus, the other is a verb."""

    def __init__(self, theme: Theme, parent: QWidget, question: str, who: str, *, stay: str, go: str) -> None:
        super().__init__(parent)
        self.setModal(True)
        self.setWindowTitle(question)
        self._width = theme.px(440)
        self.stay = Button(theme, stay)
        self.go = Button(theme, go, Kind.END)
        layout = QVBoxLayout(self)
        # Else it would be as high as its sentences are at their narrowest.
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        side = theme.px(24)
        layout.setContentsMargins(side, side, side, side)
        layout.setSpacing(theme.px(8))
        layout.addWidget(Text(theme, question, Role.HEADING, wrap=True))
        layout.addWidget(Text(theme, who, tone=Tone.MUTED, wrap=True))
        layout.addSpacing(theme.px(16))
        layout.addLayout(row(1, self.stay, self.go))
        self.stay.clicked.connect(self.reject)
        self.go.clicked.connect(self.accept)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        layout.addStretch(1)
        FocusFrame(theme, self)
        restyle(self)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """As high as its sentences need."""
        layout = self.layout()
        if layout is not None:
            self.resize(self._width, layout.totalHeightForWidth(self._width))
        super().showEvent(event)
        self.stay.setFocus()
