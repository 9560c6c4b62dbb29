"""Text in one of the sizes of the look, in one of its tones."""

from enum import StrEnum
from html import escape

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocumentFragment
from PySide6.QtWidgets import QLabel, QSizePolicy

from kafila.gui.theme import Role, Theme


class Tone(StrEnum):
    """The colour of a text by meaning."""

    NORMAL = "normal"
    MUTED = "muted"
    FAINT = "faint"
    ACCENT = "accent"
    LANTERN = "lantern"
    DIRECT = "direct"
    RELAYED = "relayed"
    LOST = "lost"
    INVERSE = "inverse"


def fill(sentence: str, **values: str) -> str:
    """Put values (names, sentences of others) into our own HTML; they are escaped.

    >>> fill("Without <b>{name}</b> it fits.", name="A & B")
    'Without <b>A &amp; B</b> it fits.'
    """
    return sentence.format(**{name: escape(value) for name, value in values.items()})


class Text(QLabel):
    """A label. Plain text by default; `set_html` takes our own markup, filled by `fill`.

    With `wrap` it breaks into lines with the line height of its size.
    """

    def __init__(
        self,
        theme: Theme,
        text: str = "",
        role: Role = Role.BODY,
        tone: Tone = Tone.NORMAL,
        *,
        wrap: bool = False,
        weight: int | None = None,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._role = role
        self._weight = weight
        self._wrap = wrap
        self._html = ""
        self.setProperty("tone", tone)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        self.setWordWrap(wrap)
        if wrap:
            policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
            policy.setHeightForWidth(True)
            self.setSizePolicy(policy)
        else:
            self.setTextFormat(Qt.TextFormat.PlainText)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_text(text)

    def set_text(self, text: str) -> None:
        """Show plain text."""
        if self._wrap:
            self.set_html(escape(text).replace("\n", "<br>"))
        elif text != self.text() or self.textFormat() is not Qt.TextFormat.PlainText:
            self.setTextFormat(Qt.TextFormat.PlainText)
            self.setText(text)
            self.setAccessibleName(text)

    def set_html(self, html: str) -> None:
        """Show our own markup: <b> is the weight of names and values."""
        if html == self._html and self.textFormat() is Qt.TextFormat.RichText:
            return
        self._html = html
        html = html.replace("<b>", '<span style="font-weight:600">').replace("</b>", "</span>")
        line = self._theme.line(self._role)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setAccessibleName(QTextDocumentFragment.fromHtml(html).toPlainText())
        self.setText(f'<p style="margin:0; line-height:{line}px">{html}</p>' if self._wrap else html)

    def words(self) -> str:
        """What is shown, without markup."""
        if self.textFormat() is Qt.TextFormat.PlainText:
            return self.text()
        document = QTextDocumentFragment.fromHtml(self.text())
        return document.toPlainText()

    def set_tone(self, tone: Tone) -> None:
        """Change the colour by meaning."""
        if self.property("tone") != tone:
            self.setProperty("tone", tone)
            self.style().unpolish(self)
            self.style().polish(self)

    def _restyle(self) -> None:
        self.setFont(self._theme.font(self._role, self._weight))
        if self._wrap:
            html, self._html = self._html, ""
            if html:
                self.set_html(html)
        else:
            self.setMinimumHeight(self._theme.line(self._role))
