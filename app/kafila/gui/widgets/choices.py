"""Things to choose with: choice cards, segments, check boxes, switches, a stepper."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.buttons import IconButton, Kind, restyle
from kafila.gui.widgets.focus import CORNER
from kafila.gui.widgets.pill import LEADING
from kafila.gui.widgets.text import Text

RADIO = 18


class ChoiceCard(QAbstractButton):
    """A whole card that can be chosen: one tab stop, the radio at its top corner.

    Add content to `body`; what it holds is not clickable by itself.
    """

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._over = False
        self.setCheckable(True)
        self.setProperty(CORNER, 14)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.body = QVBoxLayout(self)
        theme.changed.connect(self._restyle)
        self._restyle()

    def add(self, widget: QWidget) -> None:
        """Add something below what is there."""
        widget.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.body.addWidget(widget)

    def _restyle(self) -> None:
        side = self._theme.px(16)
        self.body.setContentsMargins(side, side, side, side)
        self.body.setSpacing(self._theme.px(4))

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """The pointer is over it."""
        self._over = True
        super().enterEvent(event)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """The pointer left."""
        self._over = False
        super().leaveEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw surface, border and radio."""
        colour, px = self._theme.colour, self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chosen = self.isChecked()
        pen = QPen(colour("accent"), 2) if chosen else QPen(colour("border"), 1)
        if self._over and not chosen and self.isEnabled():
            pen.setColor(colour("border_strong"))
        half = pen.widthF() / 2
        painter.setPen(pen)
        painter.setBrush(colour("surface" if self.isEnabled() else "bg"))
        shape = QRectF(self.rect()).adjusted(half, half, -half, -half)
        painter.drawRoundedRect(shape, px(14), px(14))
        radius = px(RADIO) / 2
        inset = px(16) + radius
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        centre = QPointF(inset if rtl else self.width() - inset, px(18) + radius)
        if chosen:
            painter.setPen(QPen(colour("accent"), px(5)))
            painter.setBrush(colour("surface"))
            painter.drawEllipse(centre, radius - px(5) / 2, radius - px(5) / 2)
        else:
            painter.setPen(QPen(colour("border_strong"), 1.25))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(centre, radius - 1, radius - 1)
        painter.end()


class Segments(QFrame):
    """A few words of which one is chosen."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, name: str, words: Sequence[str], chosen: int = 0) -> None:
        super().__init__()
        self._theme = theme
        self.setProperty("group", "segments")
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._group = QButtonGroup(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2, 2, 2, 2)
        layout.setSpacing(0)
        for place, word in enumerate(words):
            button = QPushButton(word)
            button.setCheckable(True)
            button.setProperty("shape", "segment")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setAccessibleName(word)
            button.setChecked(place == chosen)
            self._group.addButton(button, place)
            layout.addWidget(button)
        self._group.idClicked.connect(self.chosen)
        theme.changed.connect(self._restyle)
        self._restyle()

    def choose(self, place: int) -> None:
        """Choose without telling."""
        self._group.button(place).setChecked(True)

    def _restyle(self) -> None:
        for button in self._group.buttons():
            restyle(button)
            # Restyling brings back the font that the button had when it was first styled.
            button.setFont(self._theme.font(Role.SMALL, 600))


class Check(QAbstractButton):
    """A box to tick, with its sentence."""

    def __init__(self, theme: Theme, text: str) -> None:
        super().__init__()
        self._theme = theme
        self.setText(text)
        self.setAccessibleName(text)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:  # noqa: N802
        """The box, a gap and the sentence."""
        width = QFontMetrics(self._theme.font(Role.BODY)).horizontalAdvance(self.text())
        return QSize(width + self._theme.px(18 + 8) + 2, self._theme.px(24))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw box, tick and sentence."""
        px, colour = self._theme.px, self._theme.colour
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        left = self.width() - px(18) if rtl else 0
        box = QRectF(left, (self.height() - px(18)) / 2, px(18), px(18))
        if self.isChecked():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour("accent"))
            painter.drawRoundedRect(box, px(5), px(5))
            tick = self._theme.pixmap(Icon.CHECK, "on_accent", 14, self.devicePixelRatio())
            painter.drawPixmap(box.topLeft() + QPointF(px(2), px(2)), tick)
        else:
            painter.setPen(QPen(colour("border_strong"), 1.25))
            painter.setBrush(colour("raised"))
            painter.drawRoundedRect(box.adjusted(0.6, 0.6, -0.6, -0.6), px(5), px(5))
        painter.setFont(self._theme.font(Role.BODY))
        painter.setPen(colour("text_muted"))
        words = self.rect().adjusted(0 if rtl else px(26), 0, -px(26) if rtl else 0, 0)
        painter.drawText(words, LEADING, self.text())
        painter.end()


class Switch(QAbstractButton):
    """On or off, at once. `name` is read aloud."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(name)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A pill with a knob."""
        return QSize(self._theme.px(38), self._theme.px(22))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw track and knob."""
        px, colour = self._theme.px, self._theme.colour
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour("accent" if self.isChecked() else "border_strong"))
        painter.drawRoundedRect(self.rect(), self.height() / 2, self.height() / 2)
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        at_end = self.isChecked() is not rtl
        painter.setBrush(colour("surface"))
        middle = self.width() - px(11) if at_end else px(11)
        painter.drawEllipse(QPointF(middle, self.height() / 2), px(8), px(8))
        painter.end()


class Stepper(QWidget):
    """Fewer, a number, more."""

    changed = Signal(int)

    def __init__(self, theme: Theme, name: str, least: int, most: int) -> None:
        super().__init__()
        self._least, self._most, self._value = least, most, least
        self._name = name
        self.fewer = IconButton(theme, Icon.MINUS, self.tr("Fewer"), Kind.PLAIN)
        self.more = IconButton(theme, Icon.PLUS, self.tr("More"), Kind.PLAIN)
        self._number = Text(theme, str(least), Role.HEADING)
        self._number.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._number.setMinimumWidth(theme.px(36))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(12))
        for part in (self.fewer, self._number, self.more):
            layout.addWidget(part)
        self.fewer.clicked.connect(self._step_down)
        self.more.clicked.connect(self._step_up)
        self.set_value(least)

    @property
    def value(self) -> int:
        """The number."""
        return self._value

    def set_value(self, value: int) -> None:
        """Change the number; tells if it changed."""
        before, self._value = self._value, min(max(value, self._least), self._most)
        self._number.set_text(self.locale().toString(self._value))
        self.setAccessibleName(f"{self._name}: {self._value}")
        self.fewer.setEnabled(self._value > self._least)
        self.more.setEnabled(self._value < self._most)
        if before != self._value:
            self.changed.emit(self._value)

    def _step_down(self) -> None:
        self.set_value(self._value - 1)

    def _step_up(self) -> None:
        self.set_value(self._value + 1)
