"""A model's Markdown on the screen. What it writes stays text: no pictures, no HTML, no files."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSize, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableCellFormat,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser

from kafila.gui.serving.markdown import link_allowed
from kafila.gui.theme import Role, Theme

if TYPE_CHECKING:
    from collections.abc import Iterator

FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
PARAGRAPH_GAP = 9
INDENT = 24
HEADINGS = {1: Role.HEADING, 2: Role.LEAD, 3: Role.SUBHEADING}
DOT = 5.0


class Prose(QTextBrowser):
    """Markdown without fenced code. As high as its text; no scroll bars of its own."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._source = ""
        self._writing = False
        self.setProperty("prose", "true")
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setUndoRedoEnabled(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.anchorClicked.connect(follow)
        theme.changed.connect(self._restyle)

    @property
    def shown(self) -> str:
        """The Markdown that is shown."""
        return self._source

    def show_markdown(self, text: str, *, writing: bool) -> None:
        """Show a text; a light stands at its end while more is being written."""
        if text != self._source:
            self._source = text
            self._render()
        if writing != self._writing:
            self._writing = writing
            self.viewport().update()

    def loadResource(self, type: int, name: QUrl | str) -> object:  # noqa: A002, ARG002, N802
        """Nothing is ever fetched for a model's text, from here or from elsewhere."""
        return None

    def _render(self) -> None:
        document = self.document()
        document.setDefaultFont(self._theme.font(Role.MESSAGE))
        document.setDocumentMargin(0)
        document.setIndentWidth(self._theme.px(INDENT))
        document.setMarkdown(self._source, FEATURES)
        disarm(document)
        dress(document, self._theme)
        self._fit()

    def _restyle(self) -> None:
        if self._source:
            self._render()

    def _fit(self) -> None:
        document = self.document()
        document.setTextWidth(self.viewport().width())
        height = max(self._theme.line(Role.MESSAGE), int(document.size().height()) + 1)
        if height != self.height():
            self.setFixedHeight(height)

    def sizeHint(self) -> QSize:  # noqa: N802
        """As high as the text."""
        return QSize(200, self.height())

    def resizeEvent(self, e: QResizeEvent) -> None:  # noqa: N802
        """Another width breaks lines elsewhere."""
        super().resizeEvent(e)
        if e.size().width() != e.oldSize().width():
            self._fit()

    def wheelEvent(self, e: QWheelEvent) -> None:  # noqa: N802
        """Scrolling is for the whole conversation."""
        e.ignore()

    def paintEvent(self, e: QPaintEvent) -> None:  # noqa: N802
        """Draw the text, and the light at its end."""
        super().paintEvent(e)
        if not self._writing:
            return
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        place = self.cursorRect(end)
        painter = QPainter(self.viewport())
        side = -1 if place.x() > 0 and self._ends_right_to_left(end) else 1
        paint_writing_light(painter, self._theme, QPointF(place.center()) + QPointF(side * self._theme.px(9), 0))
        painter.end()

    @staticmethod
    def _ends_right_to_left(end: QTextCursor) -> bool:
        return end.block().textDirection() is Qt.LayoutDirection.RightToLeft


def paint_writing_light(painter: QPainter, theme: Theme, centre: QPointF) -> None:
    """The light at the end of a text that is being written."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("lantern_soft"))
    painter.drawEllipse(centre, theme.px(DOT + 2.5), theme.px(DOT + 2.5))
    painter.setBrush(theme.colour("lantern"))
    painter.drawEllipse(centre, theme.px(DOT), theme.px(DOT))


def follow(address: QUrl) -> None:
    """Open a web or mail address outside; nothing else."""
    if link_allowed(address.toString()):
        QDesktopServices.openUrl(address)


def disarm(document: QTextDocument) -> None:
    """Turn pictures into their descriptions, and links that may not be followed into text."""
    cursor = QTextCursor(document)
    for start, length, style in reversed(_fragments(document)):
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        if style.isImageFormat():
            described = style.property(QTextFormat.Property.ImageAltText)
            cursor.insertText(str(described or ""), QTextCharFormat())
        elif style.isAnchor() and not link_allowed(style.anchorHref()):
            plain = QTextCharFormat(style)
            for stale in (
                QTextFormat.Property.IsAnchor,
                QTextFormat.Property.AnchorHref,
                QTextFormat.Property.AnchorName,
                QTextFormat.Property.ForegroundBrush,
                QTextFormat.Property.TextUnderlineStyle,
                QTextFormat.Property.FontUnderline,
            ):
                plain.clearProperty(stale)
            cursor.setCharFormat(plain)


def dress(document: QTextDocument, theme: Theme) -> None:
    """Give the document our sizes, gaps and colours."""
    block = document.begin()
    while block.isValid():
        _dress_block(block, theme, last=not block.next().isValid())
        block = block.next()
    cursor = QTextCursor(document)
    for start, length, style in _fragments(document):
        code = style.fontFixedPitch()
        if not code and not style.isAnchor():
            continue
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        extra = QTextCharFormat()
        if code:
            mono = theme.mono()
            extra.setFontFamilies(mono.families())
            extra.setProperty(QTextFormat.Property.FontPixelSize, mono.pixelSize())
            extra.setBackground(theme.colour("code_bg"))
        else:
            extra.setForeground(theme.colour("accent_text"))
            extra.setToolTip(style.anchorHref().replace("<", "&lt;"))
        cursor.mergeCharFormat(extra)
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            _dress_table(frame, theme)


def _fragments(document: QTextDocument) -> list[tuple[int, int, QTextCharFormat]]:
    """Every piece of text in one style. Collected first, since changes would upset the walk."""
    return list(_walk(document))


def _walk(document: QTextDocument) -> "Iterator[tuple[int, int, QTextCharFormat]]":
    block = document.begin()
    while block.isValid():
        pieces = block.begin()
        while not pieces.atEnd():
            piece = pieces.fragment()
            yield piece.position(), piece.length(), piece.charFormat()
            pieces += 1
        block = block.next()


def _dress_block(block: QTextBlock, theme: Theme, *, last: bool) -> None:
    cursor = QTextCursor(block)
    shape = QTextBlockFormat()
    level = block.blockFormat().headingLevel()
    listed = _there(block.textList())
    gap = theme.px(PARAGRAPH_GAP)
    shape.setTopMargin(gap if level and block.previous().isValid() else 0)
    tight = listed and _there(block.next().textList())
    shape.setBottomMargin(0 if last else theme.px(3) if tight else gap)
    if _there(QTextCursor(block).currentTable()):
        shape.setTopMargin(0)
        shape.setBottomMargin(0)
    role = HEADINGS.get(level, Role.SUBHEADING) if level else Role.MESSAGE
    shape.setLineHeight(theme.line(role), QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
    quoted = block.blockFormat().intProperty(QTextFormat.Property.BlockQuoteLevel)
    if quoted:
        shape.setLeftMargin(theme.px(16) * quoted)
    cursor.mergeBlockFormat(shape)
    if level or quoted:
        cursor.select(QTextCursor.SelectionType.BlockUnderCursor)
        style = QTextCharFormat()
        if level:
            style.setProperty(QTextFormat.Property.FontPixelSize, theme.font(role).pixelSize())
            style.setProperty(QTextFormat.Property.FontSizeAdjustment, 0)
            style.setFontWeight(QFont.Weight.DemiBold)
        else:
            style.setForeground(theme.colour("text_muted"))
        cursor.mergeCharFormat(style)


def _there(part: object) -> bool:
    """Qt gives None where there is no list or table, which its type hints do not say."""
    return part is not None


def _dress_table(table: QTextTable, theme: Theme) -> None:
    """Lines between rows, small faint heads, and the whole width."""
    shape = table.format()
    shape.setBorder(0)
    shape.setBorderCollapse(True)
    shape.setCellSpacing(0)
    shape.setCellPadding(0)
    shape.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_None)
    shape.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
    shape.setTopMargin(0)
    shape.setBottomMargin(theme.px(PARAGRAPH_GAP))
    table.setFormat(shape)
    line = theme.colour("border")
    for row in range(table.rows()):
        for column in range(table.columns()):
            cell = table.cellAt(row, column)
            style = QTextTableCellFormat()
            style.setBottomBorder(1)
            style.setBottomBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            style.setBottomBorderBrush(line)
            style.setTopPadding(theme.px(6))
            style.setBottomPadding(theme.px(6))
            style.setLeftPadding(theme.px(10))
            style.setRightPadding(theme.px(10))
            cell.setFormat(style)
            if row == 0:
                cursor = cell.firstCursorPosition()
                cursor.setPosition(cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
                head = QTextCharFormat()
                head.setForeground(theme.colour("text_muted"))
                head.setFontWeight(QFont.Weight.DemiBold)
                head.setProperty(QTextFormat.Property.FontPixelSize, theme.font(Role.SMALL).pixelSize())
                cursor.mergeCharFormat(head)
