from time import monotonic

import msgspec
import pytest

from gui.serving.conftest import Show
from gui.serving.hands import seen, words
from gui.serving.scenes import ended, member_id, paused, serving, snapshot
from kafila.domain.snapshot import Idle, Pace
from kafila.gui.serving import charts
from kafila.gui.serving.graphs import SmallGraphs
from kafila.gui.serving.graphs_page import GraphsPage
from kafila.gui.serving.sampling import Sample, sample
from kafila.gui.serving.series import SeriesBook
from kafila.gui.theme import Theme


def samples(count: int, now_s: float) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            at_s=now_s - count * 0.5 + n * 0.5,
            busy={member_id(0): 0.4, member_id(1): 0.2 if n % 2 else 0.3},
            words_per_second=10.0 + n % 3,
            tokens_per_second=14.0,
            compute_ms=120.0,
            in_flight_ms=60.0,
        )
        for n in range(count)
    )


@pytest.fixture
def page(theme: Theme, show: Show) -> GraphsPage:
    page = GraphsPage(theme)
    show(page, 1204, 800)
    return page


def test_small_graphs_show_the_present_values(theme: Theme, show: Show) -> None:
    graphs = SmallGraphs(theme, SeriesBook())
    show(graphs, 600, 160)
    graphs.show_serving(serving())
    assert graphs.busy.value.text() == "40 %"
    assert graphs.pace.value.text() == "11.9"
    assert graphs.trip.value.text() == "182 ms"
    assert graphs.busy.accessibleName() == "How busy: 40 %"
    assert graphs.running
    graphs.hide()
    assert not graphs.running


def test_before_the_first_word_they_say_so(theme: Theme, show: Show) -> None:
    graphs = SmallGraphs(theme, SeriesBook())
    show(graphs, 600, 160)
    graphs.show_serving(msgspec.structs.replace(serving(), pace=Pace()))
    assert words(graphs).count("Starts with the first word.") == 2


def test_what_is_there_before_the_first_word_has_nothing_written_over_it(theme: Theme, show: Show) -> None:
    graphs, page = SmallGraphs(theme, SeriesBook()), GraphsPage(theme)
    early = msgspec.structs.replace(serving(), pace=Pace())
    show(graphs, 600, 160)
    show(page, 1204, 800)
    graphs.show_serving(early)
    page.show_snapshot(snapshot(early))
    for busy, pace in ((graphs.busy, graphs.pace), (page.busy, page.pace)):
        assert "Starts with the first word." not in words(busy)
        assert "Starts with the first word." in words(pace)


def test_a_minute_without_words_says_so(theme: Theme, show: Show) -> None:
    graphs = SmallGraphs(theme, SeriesBook())
    show(graphs, 600, 160)
    graphs.show_serving(serving())
    assert "No words in this minute." not in words(graphs)
    graphs.history.clear()
    graphs.history.offer(sample(serving(), monotonic() - 300))
    graphs.history.offer(sample(msgspec.structs.replace(serving(), pace=Pace()), monotonic()))
    graphs.draw()
    assert "No words in this minute." in words(graphs.pace)


def test_while_paused_the_last_values_stay_and_nothing_runs(theme: Theme, show: Show) -> None:
    graphs = SmallGraphs(theme, SeriesBook())
    show(graphs, 600, 160)
    graphs.show_serving(serving())
    graphs.show_serving(paused())
    assert not graphs.running
    assert graphs.pace.value.text() == "11.9"
    assert words(graphs).count("paused") == 3
    graphs.show_serving(serving())
    assert graphs.running


def test_the_page_is_empty_before_a_session(page: GraphsPage) -> None:
    page.show_snapshot(snapshot(Idle()))
    assert "No session yet" in words(page)
    assert not page.running


def test_the_page_shows_everything(page: GraphsPage) -> None:
    page.show_snapshot(snapshot(serving()))
    shown = words(page)
    for expected in (
        "How busy each computer is",
        "Words a second",
        "computing 121 ms · in flight 61 ms",
        "Memory",
        "4.5 GB",
        "Sent to the next computer",
        "Office desktop → Attic mini",
        "164 kB/s",
    ):
        assert expected in shown
    relayed = page.hops.middle(2)
    assert relayed is not None
    assert relayed.accessibleName() == "Office desktop to Attic mini: Relayed, 84 ms, 164 kB/s"
    page.grab()


def test_the_page_forgets_an_old_session(page: GraphsPage) -> None:
    page.show_snapshot(snapshot(serving()))
    page.show_snapshot(snapshot(ended()))
    assert page.status.text() == "Ended"
    assert not page.running
    page.show_snapshot(snapshot(Idle()))
    assert "No session yet" in words(page)
    page.show_snapshot(snapshot(serving(2, relayed=None)))
    assert page.status.text() == "Serving · 2 computers"


def test_pointing_shows_all_values_of_a_time(page: GraphsPage) -> None:
    page.show_snapshot(snapshot(serving()))
    page.busy.plot.pointed.emit(-1.0)
    assert seen(page.hover)
    assert "Attic mini" in words(page.hover)
    assert "47 %" in words(page.hover)
    page.busy.plot.pointed.emit(None)
    assert not seen(page.hover)


def test_each_computer_has_its_own_colour_and_dash(theme: Theme) -> None:
    window = charts.Window(samples=samples(20, 100.0), now_s=100.0, span_s=60.0, fine=True)
    curves, axes = charts.busy_chart(window, theme, [(member_id(0), 0), (member_id(1), 1)])
    assert curves[0].colour == theme.series(0).colour
    assert (curves[0].colour, curves[0].dash) != (curves[1].colour, curves[1].dash)
    assert axes.top == 100
    assert curves[0].values == [40.0] * 20
    assert curves[0].seconds[-1] == pytest.approx(-0.5)


def test_between_answers_nothing_was_said(theme: Theme) -> None:
    quiet = (*samples(2, 99.0), Sample(at_s=99.5, busy={}), *samples(1, 100.5))
    window = charts.Window(samples=quiet, now_s=101.0, span_s=60.0, fine=False)
    curves, _ = charts.pace_chart(window, theme)
    assert curves[0].values == [10.0, 11.0, 0.0, 10.0]


def test_a_token_trip_is_stacked(theme: Theme) -> None:
    window = charts.Window(samples=samples(4, 100.0), now_s=100.0, span_s=60.0, fine=False)
    curves, axes = charts.trip_chart(window, theme)
    assert curves[0].values == [180.0] * 4
    assert curves[-1].values == [120.0] * 4
    assert axes.top == 240


def test_axes_name_times_in_minutes(theme: Theme) -> None:
    now = monotonic()
    ten = charts.Window(samples=samples(4, now), now_s=now, span_s=600.0, fine=True)
    _, axes = charts.pace_chart(ten, theme)
    minus = "\N{MINUS SIGN}"
    assert [text for _, text in axes.times] == [
        f"{minus}10 min",
        f"{minus}8",
        f"{minus}6",
        f"{minus}4",
        f"{minus}2",
        "now",
    ]


def test_a_chart_without_a_value_has_no_numbers(theme: Theme) -> None:
    window = charts.Window(samples=(), now_s=0.0, span_s=60.0, fine=False)
    curves, axes = charts.pace_chart(window, theme)
    assert list(curves[0].values) == []
    assert [text for _, text in axes.numbers] == ["0"]
