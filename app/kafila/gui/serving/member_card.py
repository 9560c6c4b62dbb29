"""The card of one computer, opened from its node: what it holds, how fast, how it is reached."""

from dataclasses import dataclass

from PySide6.QtCore import QMargins, QPoint, Qt, Signal
from PySide6.QtGui import QCloseEvent, QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QVBoxLayout, QWidget

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import RingEdge, RingMember, Serving
from kafila.gui import numbers
from kafila.gui.machines import path_pill, whose
from kafila.gui.serving import figures
from kafila.gui.serving.ring_look import connection_word
from kafila.gui.serving.small import Dot
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Card, Kind, Pill, PillKind, Size, Text, Tone, row

WIDTH = 340
NAMES = 140
SHADOW = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFacts:
    """What a card shows of one computer."""

    one: RingMember
    serving: Serving
    arriving: RingEdge | None
    sender: str
    """The name of the computer before it."""
    room_bytes: int | None
    is_me: bool
    series: int


def facts(serving: Serving, member: MemberId, *, me: MemberId, room_bytes: int | None, series: int) -> CardFacts | None:
    """Gather them; None for a computer that is not in the ring."""
    found = [one for one in serving.ring if one.member == member]
    if not found:
        return None
    arriving = next((edge for edge in serving.edges if edge.to_member == member), None)
    names = {one.member: one.machine.name for one in serving.ring}
    return CardFacts(
        one=found[0],
        serving=serving,
        arriving=arriving,
        sender=names.get(arriving.from_member, "") if arriving else "",
        room_bytes=room_bytes,
        is_me=member == me,
        series=series,
    )


class MemberCard(QFrame):
    """A popup with the facts of one computer. Escape or a click elsewhere closes it."""

    closed = Signal()

    def __init__(self, theme: Theme, shown: CardFacts, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self._theme = theme
        self._shown = shown
        self._line = 0
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(shown.one.machine.name)
        side = theme.px(SHADOW)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(QMargins(side, side, side, side))
        self._card = Card(theme, margin=16, spacing=10, kind="raised")
        outer.addWidget(self._card)
        self._card.setFixedWidth(theme.px(WIDTH))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(theme.px(12))
        self._grid.setVerticalSpacing(theme.px(6))
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnMinimumWidth(0, theme.px(NAMES))
        self._more = QWidget()
        self._more_grid = QGridLayout(self._more)
        self.details = Button(theme, self.tr("Details"), Kind.LINK, Size.SMALL, Icon.CHEVRON_RIGHT)
        self._fill()

    def _fill(self) -> None:
        theme, shown = self._theme, self._shown
        one, machine = shown.one, shown.one.machine
        name = Text(theme, machine.name, Role.STRONG)
        owner = whose(machine, mine=shown.is_me)
        head = row(Dot(theme, shown.series), name, Text(theme, owner, Role.SMALL, Tone.MUTED), 1)
        if one.head:
            head.addWidget(Pill(theme, self.tr("Leads"), PillKind.LEADS, Icon.LANTERN))
        if pill := self._connection():
            head.addWidget(pill)
        self._card.body.addLayout(head)
        total = max((each.end for each in shown.serving.ring), default=one.end)
        self._fact(
            self.tr("Parts"),
            self.tr("{first}–{last} of {total}").format(first=one.first + 1, last=one.end, total=total),
        )
        if one.stage_ms is not None:
            words = self.tr("{time}, busy {busy}").format(
                time=figures.milliseconds(one.stage_ms), busy=figures.percent(one.busy)
            )
            self._fact(self.tr("Its share of each word"), words)
        if shown.arriving is not None and shown.arriving.rtt_ms is not None:
            way = self.tr("{time} there and back, {flow}").format(
                time=figures.milliseconds(shown.arriving.rtt_ms),
                flow=figures.bytes_per_second(shown.arriving.bytes_per_s),
            )
            self._fact(self.tr("From {name}").format(name=shown.sender), way)
        self._fact(self.tr("Memory"), memory(one.resident_weight_bytes, shown.room_bytes))
        self._card.body.addLayout(self._grid)
        self._add_details()

    def _connection(self) -> Pill | None:
        shown = self._shown
        if shown.one.away_s is not None:
            word = connection_word(shown.arriving, away=True)
            return Pill(self._theme, word, PillKind.LOST, Icon.UNPLUG)
        if shown.arriving is None:
            return None
        return Pill(self._theme, *path_pill(shown.arriving.path))

    def _add_details(self) -> None:
        self.details.setCheckable(True)
        self.details.setProperty("flush", "true")
        self.details.toggled.connect(self._show_details)
        self._card.body.addLayout(row(self.details, 1))
        self._more_grid.setContentsMargins(0, 0, 0, 0)
        self._more_grid.setColumnStretch(1, 1)
        self._more_grid.setHorizontalSpacing(self._theme.px(12))
        self._more_grid.setColumnMinimumWidth(0, self._theme.px(NAMES))
        one = self._shown.one
        for line, (name, value) in enumerate(
            (
                (self.tr("Blocks"), f"[{one.first}, {one.end})"),
                (self.tr("Process"), str(one.process_id)),
                (self.tr("Weights held"), numbers.size(one.resident_weight_bytes)),
                (self.tr("System"), one.machine.system),
                (self.tr("Computer’s key"), one.member),
            )
        ):
            if value:
                self._put(self._more_grid, line, name, value)
        self._more.hide()
        self._card.body.addWidget(self._more)

    def _fact(self, name: str, value: str) -> None:
        self._put(self._grid, self._line, name, value)
        self._line += 1

    def _put(self, grid: QGridLayout, line: int, name: str, value: str) -> None:
        left = Text(self._theme, name, Role.SMALL, Tone.MUTED)
        right = Text(self._theme, value, Role.SMALL, wrap=True)
        right.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        grid.addWidget(left, line, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(right, line, 1, Qt.AlignmentFlag.AlignTop)

    def _show_details(self) -> None:
        opened = self.details.isChecked()
        self._more.setVisible(opened)
        self.details.set_icon(Icon.CHEVRON_DOWN if opened else Icon.CHEVRON_RIGHT)
        self.adjustSize()

    def open_at(self, place: QPoint) -> None:
        """Show the card with its top centre below this point, inside the screen."""
        self.adjustSize()
        room = self.screen().availableGeometry()
        left = min(max(place.x() - self.width() // 2, room.left()), room.right() - self.width())
        top = min(place.y(), room.bottom() - self.height())
        self.move(max(left, room.left()), max(top, room.top()))
        self.show()
        self.details.setFocus(Qt.FocusReason.PopupFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        """Tell, so that the focus can go back to where it was."""
        super().closeEvent(event)
        self.closed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the soft shadow round the card."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        card = self._card.geometry()
        steps = self._theme.px(SHADOW) // 2
        for n in range(steps, 0, -1):
            shade = QColor(0, 0, 0, 4 if self._theme.dark else 2)
            painter.setBrush(shade)
            around = card.adjusted(-n, -n + 3, n, n + 3)
            painter.drawRoundedRect(around, self._theme.px(14) + n, self._theme.px(14) + n)
        painter.end()


def memory(held_bytes: int, room_bytes: int | None) -> str:
    """What is held, of what was lent where that is known."""
    if room_bytes is None:
        return numbers.size(held_bytes)
    return numbers.size_of(held_bytes, room_bytes)
