"""The list of conversations: a popup with a search field, newest first."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)

from kafila.domain.ids import ConversationId
from kafila.gui.serving.conversations import Conversation
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Card, Kind, Size, Text, Tone

WIDTH = 380
ROWS = 9
Find = Callable[[str], tuple[Conversation, ...]]


class ConversationMenu(QFrame):
    """Pick a conversation, or begin one. Arrow keys move in the list while one types."""

    picked = Signal(str)
    begun = Signal()

    def __init__(self, theme: Theme, find: Find, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._theme = theme
        self._find = find
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setAccessibleName(self.tr("Conversations"))
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Search conversations"))
        self.field.setAccessibleName(self.tr("Search conversations"))
        self.field.setClearButtonEnabled(True)
        self.field.textChanged.connect(self.refresh)
        self.field.returnPressed.connect(self._pick_current)
        self.field.installEventFilter(self)
        self.list = QListWidget()
        self.list.setProperty("list", "menu")
        self.list.setAccessibleName(self.tr("Conversations"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.itemClicked.connect(self._pick)
        self.list.itemActivated.connect(self._pick)
        self.nothing = Text(theme, self.tr("Nothing found."), Role.SMALL, Tone.MUTED)
        self.new = Button(theme, self.tr("New conversation"), Kind.LINK, Size.SMALL, Icon.SQUARE_PEN)
        self.new.clicked.connect(self._begin)
        card = Card(theme, margin=12, spacing=8, kind="raised")
        card.setFixedWidth(theme.px(WIDTH))
        for part in (self.field, self.list, self.nothing, self.new):
            card.body.addWidget(part)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(card)

    def open_below(self, button: QWidget) -> None:
        """Show it under its button, with an empty search."""
        self.field.clear()
        self.refresh()
        self.adjustSize()
        corner = button.mapToGlobal(QPoint(0, button.height() + 4))
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            corner += QPoint(button.width() - self.width(), 0)
        self.move(corner)
        self.show()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def refresh(self) -> None:
        """List what the search finds."""
        self.list.clear()
        row = self._theme.px(36)
        for one in self._find(self.field.text()):
            item = QListWidgetItem(one.title)
            item.setData(Qt.ItemDataRole.UserRole, one.id)
            item.setSizeHint(QSize(0, row))
            self.list.addItem(item)
        count = self.list.count()
        self.list.setFont(self._theme.font(Role.BODY))
        self.list.setFixedHeight(row * min(max(count, 1), ROWS) + 4)
        self.list.setVisible(count > 0)
        self.nothing.setVisible(count == 0)
        if count:
            self.list.setCurrentRow(0)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Arrow keys in the field move in the list."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1}.get(Qt.Key(event.key()))
            if step is not None and self.list.count():
                row = min(max(self.list.currentRow() + step, 0), self.list.count() - 1)
                self.list.setCurrentRow(row)
                return True
        return super().eventFilter(watched, event)

    def _pick_current(self) -> None:
        item = self.list.currentItem()
        if self.list.count():
            self._pick(item)

    def _pick(self, item: QListWidgetItem) -> None:
        chosen = ConversationId(str(item.data(Qt.ItemDataRole.UserRole)))
        self.close()
        self.picked.emit(chosen)

    def _begin(self) -> None:
        self.close()
        self.begun.emit()
