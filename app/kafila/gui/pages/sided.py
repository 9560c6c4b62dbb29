"""A page with a list of topics at its side: settings, and help."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QFrame,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Text
from kafila.gui.widgets.buttons import restyle
from kafila.gui.widgets.layouts import Centred, Scroll, flow

SIDE = 232
TURN_BELOW = 640
TOPIC_MOST = 800


class TopicButton(QPushButton):
    """One topic of the list."""

    def __init__(self, theme: Theme, icon: Icon, name: str) -> None:
        super().__init__(f"  {name}")
        self._theme = theme
        self._short = False
        self._shown = icon
        self.setAccessibleName(name)
        self.setCheckable(True)
        self.setProperty("shape", "side")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.toggled.connect(self._restyle)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_short(self, *, short: bool) -> None:
        """Only the icon, unless it is chosen: the name moves into the tooltip."""
        self._short = short
        self.setToolTip(self.accessibleName() if short else "")
        self._restyle()

    def _restyle(self) -> None:
        self.setText(f"  {self.accessibleName()}" if self.isChecked() or not self._short else "")
        self.setFont(self._theme.font(Role.STRONG if self.isChecked() else Role.BODY, 600 if self.isChecked() else 500))
        colour = "accent_text" if self.isChecked() else "text_muted"
        self.setIcon(QIcon(self._theme.pixmap(self._shown, colour)))
        self.setIconSize(QSize(self._theme.px(18), self._theme.px(18)))
        restyle(self)


class SidedPage(QWidget):
    """Topics at the side, the chosen one beside them; above it where it is narrow. `shown` with its place."""

    shown = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self._group = QButtonGroup(self)
        self._pages = QStackedWidget()
        self._side = QFrame()
        self._side.setProperty("surface", "side")
        self._title = Text(theme, "", Role.HEADING)
        self._list = flow(theme, gap=4)
        side = QVBoxLayout(self._side)
        side.setContentsMargins(theme.px(16), theme.px(28), theme.px(16), theme.px(12))
        side.setSpacing(theme.px(14))
        side.addWidget(self._title)
        side.addWidget(self._list)
        side.addStretch(1)
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addWidget(self._side)
        self._layout.addWidget(self._pages, 1)
        self._group.idClicked.connect(self.choose)
        theme.changed.connect(self._arrange)
        self._arrange()

    def set_title(self, title: str) -> None:
        """What stands above the list."""
        self._title.set_text(title)

    def add_topic(self, icon: Icon, name: str, content: QWidget) -> None:
        """Add a topic below the others."""
        button = TopicButton(self.theme, icon, name)
        place = self._pages.count()
        self._group.addButton(button, place)
        layout = self._list.layout()
        if layout is not None:
            layout.addWidget(button)
        self._pages.addWidget(Scroll(Centred(self.theme, content, TOPIC_MOST, top=32, bottom=32)))
        button.setChecked(place == 0)
        self._arrange()

    def choose(self, place: int) -> None:
        """Show a topic."""
        self._group.button(place).setChecked(True)
        self._pages.setCurrentIndex(place)
        self.shown.emit(place)

    @property
    def topics(self) -> Sequence[TopicButton]:
        """The buttons of the list."""
        return [button for button in self._group.buttons() if isinstance(button, TopicButton)]

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """The list goes above where it is narrow."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        px, kinds = self.theme.px, QBoxLayout.Direction
        upright = self.width() < px(TURN_BELOW)
        self._layout.setDirection(kinds.TopToBottom if upright else kinds.LeftToRight)
        self._side.setMinimumWidth(0 if upright else px(SIDE))
        self._side.setMaximumWidth((1 << 24) - 1 if upright else px(SIDE))
        for button in self.topics:
            button.setMinimumWidth(0 if upright else px(SIDE - 34))
            button.setMinimumHeight(px(30 if upright else 38))
            button.set_short(short=upright)
