"""Live graphs: what all of them share, and the three small ones under the ring."""

from collections.abc import Sequence
from time import monotonic

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Serving
from kafila.gui.serving import charts, figures
from kafila.gui.serving.plots import Axes, Curve, Plot
from kafila.gui.serving.sampling import SAMPLE_EVERY_S, History, Sample, sample
from kafila.gui.serving.series import SeriesBook
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Card, Text, Tone, row

TICK_MS = round(SAMPLE_EVERY_S * 1000)
"""Samples and drawings, twice a second while somebody looks."""
SMALL_SPAN_S = 60.0
SMALL_POINTS = 120
LINE = 1.75
LINE_SMALL = 1.5


class LiveGraphs(QWidget):
    """Samples the newest snapshot and draws; its timer stops when hidden, paused or over."""

    def __init__(self, theme: Theme, book: SeriesBook) -> None:
        super().__init__()
        self.theme = theme
        self.book = book
        self.history = History()
        self.serving: Serving | None = None
        self._live = False
        self._frozen_s: float | None = None
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        theme.changed.connect(self._redraw)

    @property
    def running(self) -> bool:
        """Whether the timer runs."""
        return self._timer.isActive()

    @property
    def now_s(self) -> float:
        """The present, or the moment at which the ring stopped."""
        return monotonic() if self._frozen_s is None else self._frozen_s

    @property
    def members(self) -> list[tuple[MemberId, int]]:
        """The computers in ring order, with their places among the series."""
        ring = self.serving.ring if self.serving else ()
        return [(one.member, self.book.place(one.member)) for one in ring]

    def show_serving(self, serving: Serving, *, over: bool = False) -> None:
        """Take in a snapshot. A paused or ended ring adds nothing; the last values stay."""
        self.serving = serving
        self.book.meet(one.member for one in serving.ring)
        self._live = serving.paused is None and not over
        if self._live:
            self._frozen_s = None
            self.history.offer(sample(serving, monotonic()))
        elif self._frozen_s is None:
            self._frozen_s = monotonic()
        self._run()
        if self.isVisible() and not self._live:
            self.draw()

    def draw(self) -> None:
        """Show what the history holds."""
        raise NotImplementedError

    def hint(self, *, begun: bool) -> str:
        """What stands over a graph: that it has not begun, or that it stands still."""
        if not begun:
            return self.tr("Starts with the first word.")
        return self.tr("paused") if self.serving is not None and self.serving.paused is not None else ""

    def _tick(self) -> None:
        if self.serving is not None:
            self.history.offer(sample(self.serving, monotonic()))
        self.draw()

    def _run(self) -> None:
        if self._live and self.isVisible():
            if not self._timer.isActive():
                self._timer.start()
                self.draw()
        else:
            self._timer.stop()

    def _redraw(self) -> None:
        if self.isVisible() and self.serving is not None:
            self.draw()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Draw again."""
        super().showEvent(event)
        self._run()
        self._redraw()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Stop drawing."""
        super().hideEvent(event)
        self._timer.stop()


class GraphCard(Card):
    """A graph with its title and present value. Before the first word it says so."""

    def __init__(self, theme: Theme, title: str, *, small: bool) -> None:
        super().__init__(theme, margin=12 if small else 18, spacing=6, kind="plain")
        self._name = title
        self.title = Text(theme, title, Role.SMALL if small else Role.SUBHEADING, Tone.MUTED if small else Tone.NORMAL)
        self.value = Text(theme, "", Role.SMALL if small else Role.SUBHEADING, weight=600)
        self.plot = Plot(theme, line_width=LINE_SMALL if small else LINE)
        self.plot.setMinimumHeight(theme.px(84 if small else 130))
        self._hint = Text(theme, "", Role.CAPTION, Tone.FAINT)
        self._hint.setParent(self.plot)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._hint.hide()
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        head = row(self.title, self.value)
        head.setStretch(0, 1)
        self.body.addLayout(head)
        self.body.addWidget(self.plot, 1)

    def show_chart(self, curves: Sequence[Curve], axes: Axes, value: str, hint: str) -> None:
        """Show curves with the present value; a hint where there is nothing to see or to come."""
        self.value.set_text(value)
        self.plot.draw(curves, axes)
        self._hint.set_text(hint)
        self._hint.setVisible(bool(hint))
        self._place_hint()
        self.setAccessibleName(f"{self._name}: {value or hint}")

    def _place_hint(self) -> None:
        self._hint.adjustSize()
        area = self.plot.area
        centre = area.center() - self._hint.rect().toRectF().center()
        self._hint.move(round(max(0.0, centre.x())), round(centre.y()))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the hint in the middle."""
        super().resizeEvent(event)
        self._place_hint()


class SmallGraphs(LiveGraphs):
    """How busy, words a second, a token's trip: the last minute of each, under the ring."""

    def __init__(self, theme: Theme, book: SeriesBook) -> None:
        super().__init__(theme, book)
        self.busy = GraphCard(theme, self.tr("How busy"), small=True)
        self.pace = GraphCard(theme, self.tr("Words a second"), small=True)
        self.trip = GraphCard(theme, self.tr("A token’s trip"), small=True)
        layout = row(self.busy, self.pace, self.trip, spacing=theme.px(12))
        self.setLayout(layout)
        for place in range(3):
            layout.setStretch(place, 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def draw(self) -> None:
        """Draw the last minute."""
        serving = self.serving
        if serving is None:
            return
        window = charts.Window(
            samples=self.history.last(SMALL_SPAN_S, now_s=self.now_s, points=SMALL_POINTS),
            now_s=self.now_s,
            span_s=SMALL_SPAN_S,
            fine=False,
        )
        newest = window.samples[-1] if window.samples else None
        seen, hint = self.hint(begun=newest is not None), self.hint(begun=self.history.begun)
        self.busy.show_chart(*charts.busy_chart(window, self.theme, self.members), mean_busy(newest), seen)
        pace = charts.pace_of(newest) if newest else None
        value = figures.rate(pace) if pace is not None else ""
        quiet = all(charts.pace_of(one) is None for one in window.samples)
        silence = self.tr("No words in this minute.") if quiet else ""
        self.pace.show_chart(*charts.pace_chart(window, self.theme), value, hint or silence)
        self.trip.show_chart(*charts.trip_chart(window, self.theme), whole_trip(newest), hint)


def mean_busy(newest: Sample | None) -> str:
    """How busy the ring is as a whole."""
    if newest is None or not newest.busy:
        return ""
    return figures.percent(sum(newest.busy.values()) / len(newest.busy))


def whole_trip(newest: Sample | None) -> str:
    """How long a token takes to go round."""
    if newest is None or newest.compute_ms is None:
        return ""
    return figures.milliseconds(newest.compute_ms + (newest.in_flight_ms or 0.0))
