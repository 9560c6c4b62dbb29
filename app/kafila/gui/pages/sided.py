"""A page with a list of topics at its side: settings, and help."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Text
from kafila.gui.widgets.buttons import restyle
from kafila.gui.widgets.layouts import Centred, Scroll

SIDE = 232
TOPIC_MOST = 800


class TopicButton(QPushButton):
    """One topic of the list."""

    def __init__(self, theme: Theme, icon: Icon, name: str) -> None:
        super().__init__(f"  {name}")
        self._theme = theme
        self._shown = icon
        self.setAccessibleName(name)
        self.setCheckable(True)
        self.setProperty("shape", "side")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.toggled.connect(self._restyle)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _restyle(self) -> None:
        self.setFont(self._theme.font(Role.STRONG if self.isChecked() else Role.BODY, 600 if self.isChecked() else 500))
        colour = "accent_text" if self.isChecked() else "text_muted"
        self.setIcon(QIcon(self._theme.pixmap(self._shown, colour)))
        self.setIconSize(QSize(self._theme.px(18), self._theme.px(18)))
        restyle(self)


class SidedPage(QWidget):
    """Topics at the side, the chosen one beside them. `shown` with its place."""

    shown = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.theme = theme
        self._group = QButtonGroup(self)
        self._topics = QStackedWidget()
        side = QFrame()
        side.setProperty("surface", "side")
        side.setFixedWidth(theme.px(SIDE))
        self._list = QVBoxLayout(side)
        self._list.setContentsMargins(theme.px(16), theme.px(28), theme.px(16), theme.px(20))
        self._list.setSpacing(theme.px(4))
        self._title = Text(theme, "", Role.HEADING, wrap=True)
        self._title.setContentsMargins(theme.px(12), 0, 0, theme.px(14))
        self._list.addWidget(self._title)
        self._list.addStretch(1)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(side)
        layout.addWidget(self._topics, 1)
        self._group.idClicked.connect(self.choose)

    def set_title(self, title: str) -> None:
        """What stands above the list."""
        self._title.set_text(title)

    def add_topic(self, icon: Icon, name: str, content: QWidget) -> None:
        """Add a topic below the others."""
        button = TopicButton(self.theme, icon, name)
        place = self._topics.count()
        self._group.addButton(button, place)
        self._list.insertWidget(place + 1, button)
        self._topics.addWidget(Scroll(Centred(self.theme, content, TOPIC_MOST, top=32, bottom=32)))
        if place == 0:
            button.setChecked(True)

    def choose(self, place: int) -> None:
        """Show a topic."""
        self._group.button(place).setChecked(True)
        self._topics.setCurrentIndex(place)
        self.shown.emit(place)

    @property
    def topics(self) -> Sequence[TopicButton]:
        """The buttons of the list."""
        return [button for button in self._group.buttons() if isinstance(button, TopicButton)]
