"""The one focus ring of the window: two pixels, with a gap of two, outside of what has focus."""

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QFocusFrame, QProxyStyle, QStyle, QStyleHintReturn, QStyleOption, QWidget

from kafila.gui.theme import Theme

REACH = 4
CORNER = "corner"
"""The radius of a widget's own corners, where it is not that of a button."""
OWN_FOCUS = "ownFocus"
"""A widget with this dynamic property draws its focus itself (nodes of the ring)."""


class _Margins(QProxyStyle):
    """Keeps the frame outside of its widget."""

    def pixelMetric(  # noqa: N802
        self,
        metric: QStyle.PixelMetric,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
    ) -> int:
        if metric in {
            QStyle.PixelMetric.PM_FocusFrameHMargin,
            QStyle.PixelMetric.PM_FocusFrameVMargin,
        }:
            return REACH
        return super().pixelMetric(metric, option, widget)

    def styleHint(  # noqa: N802
        self,
        hint: QStyle.StyleHint,
        option: QStyleOption | None = None,
        widget: QWidget | None = None,
        returnData: QStyleHintReturn | None = None,  # noqa: N803
    ) -> int:
        """Above everything, or a tight parent would clip it; and whole, or its corners would be cut."""
        if hint is QStyle.StyleHint.SH_FocusFrame_AboveWidget:
            return 1
        if hint is QStyle.StyleHint.SH_FocusFrame_Mask:
            return 0
        return super().styleHint(hint, option, widget, returnData)


class FocusFrame(QFocusFrame):
    """Follows the keyboard focus within one window.

    Buttons take focus only from the keyboard, so whatever is focused may be shown as focused.
    """

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self._theme = theme
        self._window = window
        self._radius = 0
        self._margins = _Margins("Fusion")
        self.setStyle(self._margins)
        self.hide()  # or the window would show it with itself, around nothing
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._follow)

    def _follow(self, _old: QWidget | None, new: QWidget | None) -> None:
        inside = new is not None and new.window() is self._window and new is not self._window
        shown = inside and new is not None and new.focusPolicy() is not Qt.FocusPolicy.NoFocus
        if new is None or not shown or new.property(OWN_FOCUS):
            self.hide()
            return
        corner: object = new.property(CORNER)
        self._radius = self._theme.px(corner if isinstance(corner, int) else 9) + REACH - 1
        self.setWidget(new)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the ring."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.colour("focus"), 2))
        inner = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(inner, self._radius, self._radius)
        painter.end()
