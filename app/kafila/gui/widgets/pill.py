"""Pills: one word of state, with an icon or a dot where the word alone is not obvious."""

from enum import StrEnum

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.theme.tokens import ColourName

HEIGHT = 24
ICON = 14
SIDE = 10
GAP = 6
LEAST = 56
LEADING = Qt.AlignmentFlag.AlignLeading | Qt.AlignmentFlag.AlignVCenter
"""Qt mirrors it by itself where one writes from right to left."""


class PillKind(StrEnum):
    """What a pill says."""

    OK = "ok"
    RELAYED = "relayed"
    LOST = "lost"
    LEADS = "leads"
    NEEDS = "needs"
    OUTLINE = "outline"
    PLAIN = "plain"


_COLOURS: dict[PillKind, tuple[ColourName, ColourName | None, ColourName]] = {
    PillKind.OK: ("direct_text", "direct_soft", "direct"),
    PillKind.RELAYED: ("relayed_text", "relayed_soft", "relayed"),
    PillKind.LOST: ("lost_text", "lost_soft", "lost"),
    PillKind.LEADS: ("lantern_text", "lantern_soft", "lantern"),
    PillKind.NEEDS: ("accent_text", "accent_soft", "accent"),
    PillKind.OUTLINE: ("text_muted", None, "border_strong"),
    PillKind.PLAIN: ("text_muted", "sunken", "border_strong"),
}


class Pill(QWidget):
    """A word in a round shape. Never shown without the word."""

    def __init__(
        self,
        theme: Theme,
        text: str,
        kind: PillKind = PillKind.PLAIN,
        icon: Icon | None = None,
        *,
        dot: bool = False,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._text = text
        self._kind = kind
        self._icon = icon
        self._dot = dot
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(text)
        theme.changed.connect(self.updateGeometry)

    def text(self) -> str:
        """The word."""
        return self._text

    def show_as(self, text: str, kind: PillKind, icon: Icon | None = None, *, dot: bool = False) -> None:
        """Change all of it."""
        if (text, kind, icon, dot) != (self._text, self._kind, self._icon, self._dot):
            self._text, self._kind, self._icon, self._dot = text, kind, icon, dot
            self.setAccessibleName(text)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide enough for its word."""
        px = self._theme.px
        before = ICON + GAP if self._icon else (8 + GAP if self._dot else 0)
        metrics = QFontMetrics(self._theme.font(Role.CAPTION, 600))
        width = metrics.horizontalAdvance(self._text) + px(2 * SIDE + before) + 1
        return QSize(width, px(HEIGHT))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Where there is too little room, the word is cut short; it is still read aloud whole."""
        return QSize(min(self.sizeHint().width(), self._theme.px(LEAST)), self._theme.px(HEIGHT))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw shape, icon or dot, and word."""
        px = self._theme.px
        ink, fill, mark = _COLOURS[self._kind]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        shape = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.setPen(self._theme.colour("border") if fill is None else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(0, 0, 0, 0) if fill is None else self._theme.colour(fill))
        painter.drawRoundedRect(shape, shape.height() / 2, shape.height() / 2)
        rtl = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        used = px(SIDE)
        if self._icon:
            pixmap = self._theme.pixmap(self._icon, ink, ICON, self.devicePixelRatio())
            left = self.width() - used - px(ICON) if rtl else used
            painter.drawPixmap(left, (self.height() - px(ICON)) // 2, pixmap)
            used += px(ICON + GAP)
        elif self._dot:
            painter.setPen(QPen(Qt.PenStyle.NoPen))
            painter.setBrush(self._theme.colour(mark))
            middle = used + px(4)
            centre = QPointF(self.width() - middle if rtl else middle, self.height() / 2)
            painter.drawEllipse(centre, px(4), px(4))
            used += px(8 + GAP)
        painter.setPen(self._theme.colour(ink))
        painter.setFont(self._theme.font(Role.CAPTION, 600))
        box = self.rect().adjusted(0 if rtl else used, 0, -used if rtl else 0, 0)
        room = box.width() - px(SIDE) + 2
        text = painter.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, room)
        painter.drawText(box, LEADING, text)
        painter.end()
