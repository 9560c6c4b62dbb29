"""The left side of the page: the ring, its legend, and below it graphs, a list or what is wrong."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Serving
from kafila.gui.serving.action_card import ActionCard
from kafila.gui.serving.graphs import SmallGraphs
from kafila.gui.serving.member_card import MemberCard, facts
from kafila.gui.serving.member_list import MemberList
from kafila.gui.serving.ring_look import EdgeState, RingLook, look
from kafila.gui.serving.ring_view import RingView
from kafila.gui.serving.series import SeriesBook
from kafila.gui.serving.small import EdgeLine, HeadBadge
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Text, Tone
from kafila.gui.widgets.layouts import Scroll

NARROW_WIDTH = 312
NARROW_RING = 312
LEAST_RING = 220
LEAST_LIST = 80
GAP = 24


class Legend(QWidget):
    """What the lines and the badge mean: those that are on the ring now."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._parts: dict[EdgeState, QWidget] = {}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(20))
        layout.addStretch(1)
        for state, word in (
            (EdgeState.DIRECT, self.tr("Direct")),
            (EdgeState.RELAYED, self.tr("Relayed")),
            (EdgeState.CONNECTING, self.tr("Connecting")),
        ):
            part = _entry(theme, EdgeLine(theme, state, short=True), word)
            self._parts[state] = part
            layout.addWidget(part)
        layout.addWidget(_entry(theme, HeadBadge(theme), self.tr("Leads")))
        layout.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_ring(self, shown: RingLook) -> None:
        """Explain what is on the ring."""
        states = {edge.state for edge in shown.edges}
        for state, part in self._parts.items():
            part.setVisible(state in states)


class RingPane(QWidget):
    """Shows a serving ring in the wide or in the narrow form."""

    def __init__(self, theme: Theme, book: SeriesBook) -> None:
        super().__init__()
        self._theme = theme
        self._book = book
        self._narrow = False
        self._serving: Serving | None = None
        self._me = MemberId("")
        self._rooms: dict[MemberId, int] = {}
        self._over = False
        self.ring = RingView(theme)
        self.legend = Legend(theme)
        self.graphs = SmallGraphs(theme, book)
        self.action = ActionCard(theme)
        self.list = MemberList(theme)
        self.card: MemberCard | None = None
        self.ring.pressed.connect(self._open_at_node)
        self.list.pressed.connect(self._open_at_row)
        self._low = QWidget()
        low = QVBoxLayout(self._low)
        side = theme.px(20)
        low.setContentsMargins(side, 0, side, theme.px(18))
        low.setSpacing(theme.px(12))
        low.addWidget(self.graphs)
        low.addWidget(self.action)
        self._column = QVBoxLayout()
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.list)
        column = QWidget()
        column.setLayout(self._column)
        self._scroll = Scroll(column)
        self._scroll.setMinimumHeight(theme.px(LEAST_LIST))
        layout = self._rows = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.ring, 4)
        layout.addWidget(self.legend)
        layout.addSpacing(GAP)
        layout.addWidget(self._low)
        layout.addWidget(self._scroll, 1)
        self.action.hide()
        self._scroll.hide()

    def set_narrow(self, *, narrow: bool) -> None:
        """Change the form: a list of members instead of names and graphs."""
        if narrow != self._narrow:
            self._narrow = narrow
            self.ring.setMaximumHeight(self._theme.px(NARROW_RING) if narrow else (1 << 24) - 1)
            # What is wrong has its place in the list there, so that it can be scrolled to.
            if narrow:
                self._column.insertWidget(0, self._low)
            else:
                self._rows.insertWidget(self._rows.count() - 1, self._low)
            self._arrange()

    def show_serving(self, serving: Serving, me: MemberId, rooms: dict[MemberId, int], *, over: bool) -> None:
        """Show a snapshot."""
        self._serving, self._me, self._rooms, self._over = serving, me, rooms, over
        shown = look(serving, self._book, over=over)
        self.ring.show_ring(shown, serving.pace)
        self.list.show_ring(shown, serving)
        self.legend.show_ring(shown)
        self.graphs.show_serving(serving, over=over)
        self.action.show_paused(serving)
        self._arrange()

    def _arrange(self) -> None:
        paused = self._serving is not None and self._serving.paused is not None and not self._over
        self.legend.setVisible(not self._narrow and not paused)
        self.graphs.setVisible(not self._narrow and not paused)
        self.action.setVisible(paused)
        self._low.setVisible(paused or not self._narrow)
        self._scroll.setVisible(self._narrow)

    def _open_at_node(self, at: int) -> None:
        node = self.ring.nodes[at]
        self._open(at, node.mapToGlobal(QPoint(node.width() // 2, node.height() - 8)), node)

    def _open_at_row(self, at: int) -> None:
        row = self.list.rows[at]
        self._open(at, row.mapToGlobal(QPoint(row.width() // 2, row.height())), row)

    def _open(self, at: int, place: QPoint, opener: QWidget) -> None:
        serving = self._serving
        if serving is None or at >= len(serving.ring):
            return
        member = serving.ring[at].member
        shown = facts(
            serving,
            member,
            me=self._me,
            room_bytes=self._rooms.get(member),
            series=self._book.place(member),
        )
        if shown is not None:
            card = MemberCard(self._theme, shown, self)
            card.destroyed.connect(self._closed)
            self.card = card
            card.open_at(place)
            card.closed.connect(lambda: opener.setFocus(Qt.FocusReason.PopupFocusReason))

    def _closed(self) -> None:
        self.card = None


def _entry(theme: Theme, drawn: QWidget, word: str) -> QWidget:
    entry = QWidget()
    layout = QHBoxLayout(entry)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(theme.px(8))
    layout.addWidget(drawn)
    layout.addWidget(Text(theme, word, Role.SMALL, Tone.MUTED))
    return entry
