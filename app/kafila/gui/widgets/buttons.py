"""Buttons of the four kinds, and the ones that only show an icon."""

from enum import StrEnum
from html import escape

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.theme.tokens import ColourName
from kafila.gui.widgets.focus import CORNER

DONE_MS = 1500


class Kind(StrEnum):
    """What a button is among the others of its page."""

    PRIMARY = "primary"
    """The one main action."""
    PLAIN = "plain"
    QUIET = "quiet"
    """No frame, muted: cancel, another code."""
    LINK = "link"
    """No frame, petrol: details, more about."""
    DANGER = "danger"
    """No frame, red: leave, end, remove."""
    END = "end"
    """Filled red: only in the dialog that asks."""
    INVERSE = "inverse"
    """No frame, on the toast's inverse ground."""


class Size(StrEnum):
    """How tall a button is: 30, 36 or 44 pixels at 100 percent."""

    SMALL = "small"
    NORMAL = "normal"
    LARGE = "large"


_ICON_COLOURS: dict[Kind, ColourName] = {
    Kind.PRIMARY: "on_accent",
    Kind.PLAIN: "text",
    Kind.QUIET: "text_muted",
    Kind.LINK: "accent_text",
    Kind.DANGER: "lost_text",
    Kind.END: "on_lost",
    Kind.INVERSE: "bg",
}
_CORNERS = {Size.SMALL: 8, Size.NORMAL: 9, Size.LARGE: 11}
_ROLES = {Size.SMALL: Role.SMALL, Size.NORMAL: Role.STRONG, Size.LARGE: Role.SUBHEADING}


def restyle(widget: QWidget) -> None:
    """Let the style sheet see that a dynamic property changed."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)
    widget.update()


class Button(QPushButton):
    """A button with a word, perhaps an icon. Reached by Tab; a click does not take the focus."""

    def __init__(
        self,
        theme: Theme,
        text: str,
        kind: Kind = Kind.PLAIN,
        size: Size = Size.NORMAL,
        icon: Icon | None = None,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._kind = kind
        self._size = size
        self._icon = icon
        self._before: tuple[str, Icon | None] = ("", None)
        self._timer = QTimer(self, singleShot=True, interval=DONE_MS)
        self._timer.timeout.connect(self._undone)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setProperty("kind", kind)
        self.setProperty("scale", size)
        self.setProperty(CORNER, _CORNERS[size])
        self.set_words(text)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_words(self, text: str) -> None:
        """Change the button's word."""
        self.setAccessibleName(text)
        shown = text.replace("&", "&&")
        self.setText(f" {shown}" if self._icon else shown)

    def set_kind(self, kind: Kind) -> None:
        """Change what the button is among the others."""
        if kind is not self._kind:
            self._kind = kind
            self.setProperty("kind", kind)
            restyle(self)
            self._restyle()

    def set_icon(self, icon: Icon | None) -> None:
        """Change the button's icon."""
        if icon is not self._icon:
            self._icon = icon
            self.set_words(self.accessibleName())
            self._restyle()

    def flash(self, text: str) -> None:
        """Show that it is done ("Copied") for a moment; the width stays."""
        if not self._timer.isActive():
            self._before = (self.accessibleName(), self._icon)
            self.setFixedWidth(self.width())
            self._icon = Icon.CHECK
            self.set_words(text)
            self.setProperty("done", "true")
            restyle(self)
            self._restyle()
        self._timer.start()

    def _undone(self) -> None:
        text, self._icon = self._before
        self.setProperty("done", None)
        self.set_words(text)
        self.setMinimumWidth(0)
        self.setMaximumWidth((1 << 24) - 1)
        restyle(self)
        self._restyle()

    def _restyle(self) -> None:
        self.setFont(self._theme.font(_ROLES[self._size], 600))
        if self._icon is None:
            self.setIcon(QIcon())
            return
        side = 16 if self._size is Size.SMALL else 18
        done = self.property("done") == "true"
        icon = self._theme.icon(self._icon, "accent_text" if done else _ICON_COLOURS[self._kind], side)
        icon.addPixmap(self._theme.pixmap(self._icon, "text_faint", side), QIcon.Mode.Disabled)
        self.setIconSize(QSize(self._theme.px(side), self._theme.px(side)))
        self.setIcon(icon)


class IconButton(QPushButton):
    """A square button that shows only an icon; `name` is read aloud and shown as a tooltip."""

    def __init__(self, theme: Theme, icon: Icon, name: str, kind: Kind = Kind.QUIET, size: Size = Size.NORMAL) -> None:
        super().__init__()
        self._theme = theme
        self._shown = icon
        self._kind = kind
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setProperty("kind", kind)
        self.setProperty("scale", size)
        self.setProperty("shape", "icon")
        self.set_name(name)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_name(self, name: str) -> None:
        """Change what the button is called."""
        self.setAccessibleName(name)
        # Tooltips take markup, and the name may hold what another computer is called.
        self.setToolTip(f"<qt>{escape(name)}</qt>")

    def set_icon(self, icon: Icon) -> None:
        """Change what the button shows."""
        self._shown = icon
        self._restyle()

    def _restyle(self) -> None:
        icon = self._theme.icon(self._shown, _ICON_COLOURS[self._kind])
        icon.addPixmap(self._theme.pixmap(self._shown, "text_faint"), QIcon.Mode.Disabled)
        self.setIconSize(QSize(self._theme.px(18), self._theme.px(18)))
        self.setIcon(icon)
