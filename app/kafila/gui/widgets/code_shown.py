"""The code on the host's screen: large, selectable, spelled aloud word by word; and its QR code."""

from html import escape

import segno
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from kafila.gui.theme import Role, Theme

LEAST_PERCENT = 75
QUIET_ZONE = 10
INK = "#14201F"
PAPER = "#FFFFFF"


class CodeShown(QLabel):
    """A code that can be read across a room, with its hyphens faint."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._code = ""
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        theme.changed.connect(self._restyle)
        self._restyle()

    @property
    def code(self) -> str:
        """The code."""
        return self._code

    def set_code(self, code: str) -> None:
        """Show a code."""
        if code != self._code:
            self._code = code
            self.setAccessibleName(code.replace("-", ", "))
            self._restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """A long code is set a little smaller before it is broken."""
        super().resizeEvent(event)
        self._restyle()

    def _restyle(self) -> None:
        font = self._theme.font(Role.CODE)
        least = font.pixelSize() * LEAST_PERCENT // 100
        while font.pixelSize() > least and QFontMetrics(font).horizontalAdvance(self._code) > self.width() - 4:
            font.setPixelSize(font.pixelSize() - 1)
        self.setFont(font)
        faint = self._theme.colours.text_faint
        hyphen = f'<span style="font-weight:400; color:{faint}">-</span>'
        self.setText(hyphen.join(escape(part) for part in self._code.split("-")))


class QrCode(QWidget):
    """A link as a QR code: always dark on light, so that every camera reads it."""

    def __init__(self, theme: Theme, side: int = 124) -> None:
        super().__init__()
        self._theme = theme
        self._side = side
        self._link = ""
        self._modules: tuple[tuple[int, ...], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(self.tr("The invitation as a QR code"))
        theme.changed.connect(self.updateGeometry)

    def set_link(self, link: str) -> None:
        """Show a link."""
        if link != self._link:
            self._link = link
            code = segno.make(link, error="m", micro=False) if link else None
            self._modules = tuple(tuple(line) for line in code.matrix) if code else ()
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """A square."""
        return QSize(self._theme.px(self._side), self._theme.px(self._side))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw paper and modules."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.colour("border"))
        painter.setBrush(QColor(PAPER))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 12, 12)
        if self._modules:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(INK))
            inner = self.width() - 2 * QUIET_ZONE
            count = len(self._modules)
            edges = [QUIET_ZONE + round(inner * line / count) for line in range(count + 1)]
            for top, line in enumerate(self._modules):
                for left, dark in enumerate(line):
                    if dark:
                        wide, high = edges[left + 1] - edges[left], edges[top + 1] - edges[top]
                        painter.drawRect(edges[left], edges[top], wide, high)
        painter.end()
