"""Layouts that know how wide they are: columns that become rows, a grid, a centred column."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from kafila.gui.theme import Theme


class Columns(QWidget):
    """Things side by side where there is room, else one below the other."""

    def __init__(
        self,
        theme: Theme,
        turn_below: int,
        gap: int = 24,
        upright: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignTop,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._turn_below = turn_below
        self._alignment = upright
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(gap))
        self._sides: list[tuple[QWidget, int]] = []

    @property
    def upright(self) -> bool:
        """Whether the things lie one below the other."""
        return self._layout.direction() is QBoxLayout.Direction.TopToBottom

    def add(self, widget: QWidget, stretch: int, width: int = 0) -> None:
        """Add a column; `width` is the most it takes while side by side (0: any)."""
        self._sides.append((widget, width))
        self._layout.addWidget(widget, stretch, self._alignment)
        self._limit()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Turn where it becomes narrow."""
        super().resizeEvent(event)
        upright = event.size().width() < self._theme.px(self._turn_below)
        if upright is not self.upright:
            kinds = QBoxLayout.Direction
            self._layout.setDirection(kinds.TopToBottom if upright else kinds.LeftToRight)
            self._limit()

    def _limit(self) -> None:
        for widget, width in self._sides:
            free = self.upright or not width
            widget.setMaximumWidth((1 << 24) - 1 if free else self._theme.px(width))
            widget.setMinimumWidth(0 if free else min(self._theme.px(width), width))


class CardGrid(QWidget):
    """Cards of equal width, as many side by side as fit."""

    def __init__(self, theme: Theme, least_width: int, most_columns: int = 3) -> None:
        super().__init__()
        self._theme = theme
        self._least_width = least_width
        self._most = most_columns
        self._cards: tuple[QWidget, ...] = ()
        self._count = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(theme.px(16))

    def show_cards(self, cards: Sequence[QWidget]) -> None:
        """Show these, in this order; others are hidden, not destroyed."""
        for card in self._cards:
            self._grid.removeWidget(card)
            card.hide()
        self._cards = tuple(cards)
        self._count = 0
        self._arrange(self.width())
        for card in self._cards:
            card.show()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Arrange anew where another number fits."""
        super().resizeEvent(event)
        self._arrange(event.size().width())

    def _arrange(self, width: int) -> None:
        count = min(max(1, width // self._theme.px(self._least_width)), self._most)
        if count == self._count:
            return
        for column in range(self._most):
            self._grid.setColumnStretch(column, 1 if column < count else 0)
        for place, card in enumerate(self._cards):
            self._grid.addWidget(card, place // count, place % count)
        self._count = count


class Flow(QLayout):
    """Things one after the other, in as many lines as they need."""

    def __init__(self, theme: Theme, gap: int = 8) -> None:
        super().__init__()
        self._theme = theme
        self._gap = gap
        self._entries: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802
        """Qt's way to add something."""
        self._entries.append(item)

    def count(self) -> int:
        """How many there are."""
        return len(self._entries)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802
        """One of them."""
        return self._entries[index] if 0 <= index < len(self._entries) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802
        """Take one out."""
        return self._entries.pop(index) if 0 <= index < len(self._entries) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        """It takes no more than it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:  # noqa: N802
        """The narrower, the higher."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802
        """How high for so wide."""
        return self._place(QRect(0, 0, width, 0), move=False)

    def sizeHint(self) -> QSize:  # noqa: N802
        """All in one line."""
        hints = [item.sizeHint() for item in self._entries if not item.isEmpty()]
        gaps = self._theme.px(self._gap) * max(len(hints) - 1, 0)
        return QSize(sum(hint.width() for hint in hints) + gaps, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:  # noqa: N802
        """The largest one alone."""
        least = [item.minimumSize() for item in self._entries if not item.isEmpty()]
        width, height = max((one.width() for one in least), default=0), max((one.height() for one in least), default=0)
        return QSize(width, height)

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802
        """Place everything."""
        super().setGeometry(rect)
        self._place(rect, move=True)

    def _place(self, rect: QRect, *, move: bool) -> int:
        y = rect.top()
        for line in self._lines(rect.width()):
            height = max(size.height() for _, size in line)
            if move:
                self._place_line(line, rect, y, height)
            y += height + self._theme.px(self._gap)
        return max(y - self._theme.px(self._gap) - rect.top(), 0)

    def _lines(self, width: int) -> list[list[tuple[QLayoutItem, QSize]]]:
        lines: list[list[tuple[QLayoutItem, QSize]]] = []
        used = width + 1
        for item in self._entries:
            if item.isEmpty():
                continue
            size = item.sizeHint().boundedTo(QSize(max(width, 1), 1 << 20))
            if used + size.width() > width:
                lines.append([])
                used = 0
            lines[-1].append((item, size))
            used += size.width() + self._theme.px(self._gap)
        return lines

    def _place_line(self, line: list[tuple[QLayoutItem, QSize]], rect: QRect, y: int, height: int) -> None:
        holder = self.parentWidget()
        rtl = holder is not None and holder.layoutDirection() is Qt.LayoutDirection.RightToLeft
        x = rect.left()
        for item, size in line:
            left = rect.left() + rect.right() + 1 - x - size.width() if rtl else x
            item.setGeometry(QRect(QPoint(left, y + (height - size.height()) // 2), size))
            x += size.width() + self._theme.px(self._gap)


def flow(theme: Theme, *widgets: QWidget, gap: int = 8) -> QWidget:
    """Widgets that break into lines, in a widget of their own."""
    holder = QWidget()
    layout = Flow(theme, gap)
    for widget in widgets:
        layout.addWidget(widget)
    holder.setLayout(layout)
    policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
    policy.setHeightForWidth(True)
    holder.setSizePolicy(policy)
    return holder


class Centred(QWidget):
    """Holds one widget in the middle, at most so wide; with the page's margins."""

    def __init__(
        self,
        theme: Theme,
        inner: QWidget,
        most: int,
        *,
        top: int = 0,
        bottom: int = 0,
        upright: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignTop,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._inner = inner
        self._most = most
        self._ends = (top, bottom)
        self.setProperty("surface", "clear")
        self._layout = QHBoxLayout(self)
        self._layout.setSpacing(0)
        self._layout.addStretch(1)
        self._layout.addWidget(inner, 1000, upright)
        self._layout.addStretch(1)
        inner.setSizePolicy(QSizePolicy.Policy.Expanding, inner.sizePolicy().verticalPolicy())
        theme.changed.connect(self._restyle)
        self._restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Smaller margins where it is narrow."""
        super().resizeEvent(event)
        self._restyle()

    def _restyle(self) -> None:
        px = self._theme.px
        side = px(40) if self.width() >= px(900) else px(24)
        self._layout.setContentsMargins(side, px(self._ends[0]), side, px(self._ends[1]))
        self._inner.setMaximumWidth(px(self._most))


class Scroll(QScrollArea):
    """Lets a page's content be higher than the window."""

    def __init__(self, inner: QWidget) -> None:
        super().__init__()
        self._inner = inner
        inner.installEventFilter(self)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner.setProperty("surface", "clear")
        self.setWidget(inner)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """The content is always as wide as the view."""
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """The content may have become higher or lower."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        # `widgetResizable` would ask for the height that the content had at its least width,
        # because minimum sizes of nested layouts know nothing of height for width.
        room = self.viewport().size()
        self._inner.resize(room.width(), self._inner.height())
        needed = self._inner.heightForWidth(room.width())
        self._inner.resize(
            room.width(), max(needed, self._inner.sizeHint().height() if needed < 0 else 0, room.height())
        )


def stack(*widgets: QWidget | int, spacing: int = 12) -> QWidget:
    """Widgets below one another in a widget of their own; a number is extra space."""
    holder = QWidget()
    layout = QVBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for item in widgets:
        if isinstance(item, int):
            layout.addSpacing(item)
        else:
            layout.addWidget(item)
    return holder
