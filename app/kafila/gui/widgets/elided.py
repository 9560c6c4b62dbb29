"""One line of text that is cut short where there is no room for all of it."""

from html import escape
from math import ceil

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from kafila.gui.theme import Role, Theme
from kafila.gui.widgets.text import Text, Tone

LEAST = 32


class Elided(Text):
    """Takes the room that there is. Cut short, it is whole in its tooltip, and is read aloud whole."""

    def __init__(
        self,
        theme: Theme,
        text: str = "",
        role: Role = Role.BODY,
        tone: Tone = Tone.NORMAL,
        *,
        weight: int | None = None,
    ) -> None:
        self._whole = ""
        super().__init__(theme, text, role, tone, weight=weight)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str) -> None:
        """Show plain text."""
        if text != self._whole:
            self._whole = text
            self.setAccessibleName(text)
            self.updateGeometry()
            self._fit()

    def words(self) -> str:
        """All of the text."""
        return self._whole

    def sizeHint(self) -> QSize:  # noqa: N802
        """All of it."""
        return QSize(ceil(QFontMetricsF(self.font()).horizontalAdvance(self._whole)) + 1, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Enough to tell that there is more."""
        return QSize(min(self._theme.px(LEAST), self.sizeHint().width()), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Cut elsewhere."""
        super().resizeEvent(event)
        self._fit()

    def _restyle(self) -> None:
        super()._restyle()
        self._fit()

    def _fit(self) -> None:
        shown = QFontMetricsF(self.font()).elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width())
        self.setText(shown)
        # Tooltips take markup, and the text may hold what another computer is called.
        self.setToolTip(f"<qt>{escape(self._whole)}</qt>" if shown != self._whole else "")
