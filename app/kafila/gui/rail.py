"""The rail: where one can go, at the side of the window."""

from enum import IntEnum

from PySide6.QtCore import QByteArray, QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QFrame, QSizePolicy, QVBoxLayout, QWidget

from kafila.assets import asset
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.focus import CORNER

WIDE, NARROW = 76, 56


class Place(IntEnum):
    """Where one can go, in the order of the rail."""

    HOME = 0
    SESSION = 1
    GRAPHS = 2
    HELP = 3
    SETTINGS = 4


class Mark(QWidget):
    """Kafila's own sign."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._drawing = QSvgRenderer(QByteArray(asset("icons/kafila-icon-medium.svg").read_bytes()), self)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A small square."""
        return QSize(self._theme.px(32), self._theme.px(32))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._drawing.render(painter, QRectF(self.rect()))
        painter.end()


class RailButton(QAbstractButton):
    """An icon with its word below; only the icon where the rail is narrow."""

    def __init__(self, theme: Theme, icon: Icon, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._icon = icon
        self._narrow = False
        self._over = False
        self.setText(name)
        self.setProperty(CORNER, 12)
        self.setAccessibleName(name)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def set_narrow(self, *, narrow: bool) -> None:
        """Without the word: it moves into the tooltip."""
        self._narrow = narrow
        self.setToolTip(self.text() if narrow else "")
        self.updateGeometry()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for icon and word."""
        px = self._theme.px
        return QSize(px(44), px(44)) if self._narrow else QSize(px(60), px(52))

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """The pointer is over it."""
        self._over = self.isEnabled()
        super().enterEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """The pointer left."""
        self._over = False
        super().leaveEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw ground, icon and word."""
        px, colour = self._theme.px, self._theme.colour
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.isChecked() or self._over:
            painter.setPen(colour("border") if self.isChecked() else Qt.PenStyle.NoPen)
            painter.setBrush(colour("surface" if self.isChecked() else "hover"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), px(12), px(12))
        ink = "accent_text" if self.isChecked() else "text_muted"
        painter.setOpacity(1 if self.isEnabled() else 0.5)
        icon = self._theme.pixmap(self._icon, ink, 20, self.devicePixelRatio())
        top = (self.height() - px(20)) // 2 if self._narrow else px(8)
        painter.drawPixmap((self.width() - px(20)) // 2, top, icon)
        if not self._narrow:
            painter.setPen(colour(ink))
            painter.setFont(self._theme.font(Role.AXIS, 600 if self.isChecked() else 500))
            box = QRectF(0, px(30), self.width(), px(18))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.text())
        painter.end()


class Rail(QFrame):
    """Home, Session, Graphs; Help and Settings at the bottom."""

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._narrow = False
        self.setProperty("surface", "rail")
        self._group = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, theme.px(15), 0, theme.px(12))
        layout.setSpacing(theme.px(4))
        centre = Qt.AlignmentFlag.AlignHCenter
        layout.addWidget(Mark(theme), 0, centre)
        layout.addSpacing(theme.px(14))
        names = (
            (Place.HOME, Icon.HOUSE, self.tr("Home")),
            (Place.SESSION, Icon.MESSAGE_CIRCLE, self.tr("Session")),
            (Place.GRAPHS, Icon.ACTIVITY, self.tr("Graphs")),
            (Place.HELP, Icon.LIFE_BUOY, self.tr("Help")),
            (Place.SETTINGS, Icon.SETTINGS, self.tr("Settings")),
        )
        for place, icon, name in names:
            if place is Place.HELP:
                layout.addStretch(1)
            button = RailButton(theme, icon, name)
            self._group.addButton(button, place)
            layout.addWidget(button, 0, centre)
        self._group.idClicked.connect(self.chosen)
        theme.changed.connect(self._restyle)
        self._restyle()

    def button(self, place: Place) -> QAbstractButton:
        """The button of a place."""
        return self._group.button(place)

    def show_place(self, place: Place) -> None:
        """Mark where one is."""
        self.button(place).setChecked(True)

    def allow(self, place: Place, *, allowed: bool) -> None:
        """Whether one can go there now."""
        self.button(place).setEnabled(allowed)

    def set_narrow(self, *, narrow: bool) -> None:
        """Without words."""
        self._narrow = narrow
        self._restyle()

    def _restyle(self) -> None:
        for button in self._group.buttons():
            if isinstance(button, RailButton):
                button.set_narrow(narrow=self._narrow)
        self.setFixedWidth(self._theme.px(NARROW if self._narrow else WIDE))
