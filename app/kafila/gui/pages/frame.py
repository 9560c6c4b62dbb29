"""What all pages have in common: a head, content that scrolls, a foot with the one main action."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.commands import Command
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import IconButton, Text, Tone, column
from kafila.gui.widgets.layouts import Centred, Scroll, flow
from kafila.gui.widgets.lights import WizardSteps

Send = Callable[[Command], None]
"""How a page asks the engine for something."""

CONTENT_MOST = 1124
TEXT_MOST = 640
HEAD = 64
FOOT = 72
SPARE_FROM = 620
START_LEAST = 180


class Bar(QFrame):
    """The head or foot of a page: things at its start, things at its end.

    `turned` with whether they stand below one another.
    """

    turned = Signal(bool)

    def __init__(self, theme: Theme, surface: str, height: int) -> None:
        super().__init__()
        self._theme = theme
        self._height = height
        self._spare: list[QWidget] = []
        self.setProperty("surface", surface)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        inner = QWidget()
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, inner)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(12))
        self._start = QHBoxLayout()
        self._start.setSpacing(theme.px(14))
        self._ending = flow(theme, gap=16)
        self._layout.addLayout(self._start, 1)
        self._layout.addWidget(self._ending, 0, Qt.AlignmentFlag.AlignVCenter)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        middle = Qt.AlignmentFlag.AlignVCenter
        outer.addWidget(Centred(theme, inner, CONTENT_MOST, top=10, bottom=10, upright=middle))
        theme.changed.connect(self._restyle)
        self._restyle()

    def add_start(self, widget: QWidget, stretch: int = 0) -> None:
        """Put something after what is at the start."""
        self._start.addWidget(widget, stretch, Qt.AlignmentFlag.AlignVCenter)

    def add_end(self, widget: QWidget, *, spare: bool = False) -> None:
        """Put something after what is at the end. `spare`: left out where there is no room."""
        layout = self._ending.layout()
        if layout is not None:
            layout.addWidget(widget)
        if spare:
            self._spare.append(widget)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """What does not fit beside the start goes below it, or away."""
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Find the form for the present content and width."""
        room = self.width() - self._theme.px(80)
        for widget in self._spare:
            widget.setVisible(room >= self._theme.px(SPARE_FROM))
        needed = self._ending.sizeHint().width() + self._theme.px(START_LEAST)
        kinds = QBoxLayout.Direction
        upright = not self._spare and needed > room
        self._layout.setDirection(kinds.TopToBottom if upright else kinds.LeftToRight)
        self.turned.emit(upright)

    def _restyle(self) -> None:
        self.setMinimumHeight(self._theme.px(self._height))


class Page(QWidget):
    """A page with head, content and foot. `back` when the arrow in the head is pressed."""

    back = Signal()

    def __init__(self, theme: Theme, send: Send, *, steps: bool = False, title: str = "", back: bool = True) -> None:
        super().__init__()
        self.theme = theme
        self.send = send
        self.setProperty("surface", "bg")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.head = Bar(theme, "head", HEAD)
        self.back_button = IconButton(theme, Icon.ARROW_LEFT, self.tr("Back"))
        self.back_button.clicked.connect(self.back)
        self.back_button.setVisible(back)
        self.head.add_start(self.back_button)
        self.steps: WizardSteps | None = None
        self.heading = Text(theme, title, Role.SUBHEADING)
        if steps:
            names = (self.tr("Model"), self.tr("Conversations"), self.tr("People"), self.tr("Start"))
            self.steps = WizardSteps(theme, names)
            self.head.add_start(self.steps, 1)
            self.heading.hide()
        self.head.add_start(self.heading, 1)
        self._second = True
        self.foot = Bar(theme, "foot", FOOT)
        self.foot.turned.connect(self._foot_turned)
        self.summary = Text(theme, "", Role.STRONG, wrap=True)
        self.summary_second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        holder = QWidget()
        lines = column(1, self.summary, self.summary_second, 1, spacing=0)
        holder.setLayout(lines)
        self.foot.add_start(holder, 1)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)

    def set_content(self, content: QWidget, most: int = CONTENT_MOST, *, top: int = 24) -> None:
        """Build the page around its content."""
        self._layout.addWidget(self.head)
        self._layout.addWidget(Scroll(Centred(self.theme, content, most, top=top, bottom=24)), 1)
        self._layout.addWidget(self.foot)

    def _foot_turned(self, upright: bool) -> None:  # noqa: FBT001 - Qt gives it by position
        """Where the foot is high already, only its first line stays."""
        self.summary_second.setVisible(self._second and not (upright and not self.summary.isHidden()))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Esc goes back, where there is a way back."""
        if event.key() == Qt.Key.Key_Escape and not self.back_button.isHidden():
            self.back.emit()
            return
        super().keyPressEvent(event)

    def head_for(self, *, steps: bool, heading: str) -> None:
        """The host sees the steps that it takes; the others, where they are."""
        if self.steps is not None:
            self.steps.setVisible(steps)
            self.heading.setVisible(not steps)
        self.heading.set_text(heading)

    def summarise(self, first: str, second: str = "") -> None:
        """What the foot says: how things stand, or why the main action is not possible yet."""
        self.summary.set_text(first)
        self.summary.setVisible(bool(first))
        self.summary_second.set_text(second)
        self._second = bool(second)
        self.foot.fit()
