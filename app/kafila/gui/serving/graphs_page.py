"""The page of graphs: how busy, how fast, a token's trip, memory, and what each hop carries."""

from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Ended, Forming, Serving, Snapshot
from kafila.gui.serving import charts, figures
from kafila.gui.serving.graphs import GraphCard, LiveGraphs, whole_trip
from kafila.gui.serving.member_card import memory
from kafila.gui.serving.ring_look import EdgeState, look
from kafila.gui.serving.rooms import rooms
from kafila.gui.serving.sampling import Sample
from kafila.gui.serving.series import SeriesBook
from kafila.gui.serving.small import EdgeLine, SeriesLine, show_status
from kafila.gui.serving.tables import HoverCard, Table
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import (
    Empty,
    Pill,
    Text,
    Tone,
    row,
)
from kafila.gui.widgets.choices import Segments
from kafila.gui.widgets.meters import ShareBar

SPANS_S: tuple[float | None, ...] = (60.0, 600.0, None)
POINTS = 150
HEAD = 56
"""The height of the head of a session's pages."""


class GraphsPage(LiveGraphs):
    """Every graph at full size, over the last minute, ten minutes or the whole session."""

    def __init__(self, theme: Theme, book: SeriesBook | None = None) -> None:
        super().__init__(theme, book or SeriesBook())
        self._over = False
        self._span: float | None = 600.0
        self._rooms = dict[MemberId, int]()
        self._shape: tuple[tuple[MemberId, str], ...] = ()
        self.status = Pill(theme, "")
        self.spans = Segments(
            theme,
            self.tr("Time shown"),
            (self.tr("Last minute"), self.tr("10 minutes"), self.tr("Whole session")),
            chosen=1,
        )
        self.spans.chosen.connect(self._choose)
        self.busy = GraphCard(theme, self.tr("How busy each computer is"), small=False)
        self.pace = GraphCard(theme, self.tr("Words a second"), small=False)
        self.trip = GraphCard(theme, self.tr("One token’s trip round the ring"), small=False)
        self.memory = Table(theme, self.tr("Memory"))
        self.hops = Table(theme, self.tr("Sent to the next computer"))
        self._legend = QWidget()
        self._legend_row = QHBoxLayout(self._legend)
        self._trip_words = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._pace_words = Text(theme, self.tr("All conversations together"), Role.SMALL, Tone.MUTED)
        self.hover = HoverCard(theme, self.busy.plot)
        self.busy.plot.pointed.connect(self._point)
        self._empty = Empty(
            theme,
            Icon.ACTIVITY,
            self.tr("No session yet"),
            self.tr("Graphs begin when a group serves a model."),
            None,
        )
        self._content = QWidget()
        self._build()

    def _build(self) -> None:
        theme = self.theme
        head = QFrame()
        head.setProperty("surface", "head")
        head_row = QHBoxLayout(head)
        side = theme.px(40)
        head_row.setContentsMargins(side, 0, side, 0)
        head_row.setSpacing(theme.px(12))
        head.setMinimumHeight(theme.px(HEAD))
        for part in (Text(theme, self.tr("Graphs"), Role.SUBHEADING), self.status):
            head_row.addWidget(part)
        head_row.addStretch(1)
        head_row.addWidget(self.spans)
        self._legend_row.setContentsMargins(0, 0, 0, 0)
        self._legend_row.setSpacing(theme.px(8))
        self.busy.body.insertWidget(1, self._legend)
        self.busy.plot.setMinimumHeight(theme.px(170))
        self.pace.body.insertWidget(1, self._pace_words)
        self.trip.body.insertWidget(1, self._trip_words)
        grid = QGridLayout(self._content)
        grid.setContentsMargins(side, theme.px(16), side, theme.px(24))
        grid.setSpacing(theme.px(16))
        grid.addWidget(self.busy, 0, 0, 1, 2)
        grid.addWidget(self.pace, 1, 0)
        grid.addWidget(self.trip, 1, 1)
        grid.addWidget(self.memory, 2, 0)
        grid.addWidget(self.hops, 2, 1)
        grid.setRowStretch(0, 3)
        grid.setRowStretch(1, 2)
        for place in range(2):
            grid.setColumnStretch(place, 1)
        self._content.setProperty("surface", "clear")
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(self._content)
        self._scroll = scroll
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(head)
        layout.addWidget(scroll, 1)
        layout.addLayout(row(1, self._empty, 1))
        layout.addStretch(0)
        self.spans.hide()
        self.status.hide()
        scroll.hide()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Follow the session. Before it serves this page is empty; when it ends the last stays."""
        self._rooms |= rooms(snapshot)
        session = snapshot.session
        if isinstance(session, Serving):
            self._over = False
            self._show(session)
        elif isinstance(session, Ended) and self.serving is not None:
            self._over = True
            self._show(self.serving)
        elif self.serving is not None and not isinstance(session, Ended | Forming):
            self._forget()

    def _show(self, serving: Serving) -> None:
        self._empty.hide()
        self.spans.show()
        self.status.show()
        self._scroll.show()
        show_status(self.status, serving, over=self._over, short=False)
        self._show_members(serving)
        self.show_serving(serving, over=self._over)

    def _forget(self) -> None:
        """Another session: nothing of the last one is in its graphs."""
        self.serving = None
        self.history.clear()
        self.book.clear()
        self._shape = ()
        self._scroll.hide()
        self.spans.hide()
        self.status.hide()
        self._empty.show()

    def _choose(self, place: int) -> None:
        self._span = SPANS_S[place]
        self.draw()

    def draw(self) -> None:
        """Draw the chosen stretch of time."""
        serving = self.serving
        if serving is None:
            return
        now_s = self.now_s
        span = self._shown_s(now_s)
        samples = self.history.last(span, now_s=now_s, points=POINTS)
        window = charts.Window(samples=samples, now_s=now_s, span_s=span, fine=True)
        newest = samples[-1] if samples else None
        seen, hint = self.hint(begun=newest is not None), self.hint(begun=self.history.begun)
        self.busy.show_chart(*charts.busy_chart(window, self.theme, self.members), "", seen)
        pace = charts.pace_of(newest) if newest else None
        value = figures.rate(pace) if pace is not None else ""
        self.pace.show_chart(*charts.pace_chart(window, self.theme), value, hint)
        self.trip.show_chart(*charts.trip_chart(window, self.theme), whole_trip(newest), hint)
        self._trip_words.set_text(self._trip(newest))
        self._show_figures(serving)

    def _shown_s(self, now_s: float) -> float:
        """The time chosen, or the whole session while it is shorter than that."""
        whole = self.history.length_s(now_s)
        return whole if self._span is None else min(self._span, whole)

    def _trip(self, newest: Sample | None) -> str:
        if newest is None or newest.compute_ms is None:
            return self.tr("computing and in flight")
        return self.tr("computing {compute} · in flight {flight}").format(
            compute=figures.milliseconds(newest.compute_ms),
            flight=figures.milliseconds(newest.in_flight_ms or 0.0),
        )

    def _show_members(self, serving: Serving) -> None:
        """One legend entry and one row for each computer; made anew when the ring changes."""
        shape = tuple((one.member, one.machine.name) for one in serving.ring)
        if shape == self._shape:
            return
        self._shape = shape
        self.book.meet(member for member, _ in shape)
        while (item := self._legend_row.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        for member, name in shape:
            self._legend_row.addWidget(SeriesLine(self.theme, self.book.place(member)))
            self._legend_row.addWidget(Text(self.theme, name, Role.SMALL, Tone.MUTED))
            self._legend_row.addSpacing(self.theme.px(8))
        self._legend_row.addStretch(1)
        self.memory.start()
        self.hops.start()
        names = [name for _, name in shape]
        for _, name in shape:
            self.memory.add(name, ShareBar(self.theme, 8))
        if len(shape) > 1:
            for here, there in zip(names, (*names[1:], names[0]), strict=True):
                self.hops.add(f"{here} → {there}", EdgeLine(self.theme, EdgeState.CONNECTING))

    def _show_figures(self, serving: Serving) -> None:
        largest = max((one.resident_weight_bytes for one in serving.ring), default=1) or 1
        for line, one in enumerate(serving.ring):
            room = self._rooms.get(one.member)
            colour = self.theme.series(self.book.place(one.member)).colour
            bar = self.memory.middle(line)
            if isinstance(bar, ShareBar):
                bar.show_share(one.resident_weight_bytes / (room or largest), colour=colour)
            self.memory.say(line, memory(one.resident_weight_bytes, room))
        flows = {edge.from_member: edge.bytes_per_s for edge in serving.edges}
        for line, edge in enumerate(look(serving, self.book).edges):
            drawn = self.hops.middle(line)
            if isinstance(drawn, EdgeLine):
                drawn.set_state(edge.state)
            flow = flows.get(serving.ring[line].member, 0.0)
            self.hops.say(line, figures.bytes_per_second(flow), edge.hint)

    def _point(self, second: object) -> None:
        """Show all values at the time under the pointer."""
        span = self._shown_s(self.now_s)
        samples = self.history.last(span, now_s=self.now_s, points=POINTS)
        if not isinstance(second, float) or not samples or self.serving is None:
            self.hover.hide()
            return
        at = self.now_s + second
        nearest = min(samples, key=lambda one: abs(one.at_s - at))
        lines = [
            (self.book.place(one.member), one.machine.name, figures.percent(share))
            for one in self.serving.ring
            if (share := nearest.busy.get(one.member)) is not None
        ]
        plot = self.busy.plot
        x = plot.area.left() + (1 + second / span) * plot.area.width()
        self.hover.show_values(figures.ago(self.now_s - nearest.at_s), lines, round(x))
