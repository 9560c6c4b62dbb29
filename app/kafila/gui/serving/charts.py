"""From samples to curves and axes: what each graph shows, apart from how it is drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from kafila.domain.ids import MemberId
from kafila.gui.serving import figures
from kafila.gui.serving.plots import Axes, Curve
from kafila.gui.serving.sampling import Sample, decimals, round_top, ticks
from kafila.gui.theme import Theme

AREA_OPACITY = 0.13
STACK_OPACITY = 0.82
_MINUS = "\N{MINUS SIGN}"
_MINUTE_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The stretch of time that a graph shows."""

    samples: tuple[Sample, ...]
    now_s: float
    span_s: float
    fine: bool
    """Large enough for units and more numbers."""


Chart = tuple[list[Curve], Axes]


def busy_chart(window: Window, theme: Theme, members: Sequence[tuple[MemberId, int]]) -> Chart:
    """How busy each computer is: one curve each, in its own colour and dash."""
    curves: list[Curve] = []
    for member, place in members:
        series = theme.series(place)
        shares = [one.busy.get(member) for one in window.samples]
        curves.append(
            Curve(
                seconds=_seconds(window),
                values=[None if share is None else share * 100 for share in shares],
                colour=series.colour,
                dash=series.dash if window.fine else "solid",
                marker=series.marker if window.fine else "none",
            )
        )
    unit = QCoreApplication.translate("Graphs", "{number} %") if window.fine else "{number}"
    return curves, _axes(window, 100.0, 4 if window.fine else 2, unit)


def pace_chart(window: Window, theme: Theme) -> Chart:
    """Words (or tokens, where nobody counts words) a second."""
    spoken = any(pace_of(one) is not None for one in window.samples)
    seconds = _seconds(window) if spoken else []
    # Between answers the pace is not unknown: nothing was said.
    values = [pace_of(one) or 0.0 for one in window.samples] if spoken else []
    top = round_top(max(values) * 1.04) if spoken else 0.0
    colour = theme.colours.accent
    curve = Curve(seconds=seconds, values=values, colour=colour, fill=AREA_OPACITY, end_dot=spoken)
    return [curve], _axes(window, top, 4 if window.fine else 2, "{number}")


def trip_chart(window: Window, theme: Theme) -> Chart:
    """Where the time of a token goes: computing below, in flight above it."""
    seconds, computing = _known(window, lambda one: one.compute_ms)
    _, flying = _known(window, lambda one: None if one.compute_ms is None else one.in_flight_ms or 0.0)
    total = [below + above for below, above in zip(computing, flying, strict=True)]
    top = round_top(max(total) * 1.04) if total else 0.0
    unit = QCoreApplication.translate("Graphs", "{number} ms") if window.fine else "{number}"
    colours = theme.colours
    layers = (
        (total, colours.lantern, STACK_OPACITY),
        # The ground again, so that the lower colour is not mixed with the upper one.
        (computing, colours.surface, 1.0),
        (computing, colours.accent, STACK_OPACITY),
    )
    curves = [
        Curve(seconds=seconds, values=values, colour=colour, fill=opacity, line=False)
        for values, colour, opacity in layers
    ]
    return curves, _axes(window, top, 3 if window.fine else 2, unit)


def pace_of(one: Sample) -> float | None:
    """Words a second, or tokens where nobody counts words."""
    return one.words_per_second if one.words_per_second is not None else one.tokens_per_second


def _seconds(window: Window) -> list[float]:
    return [one.at_s - window.now_s for one in window.samples]


def _known(window: Window, of: Callable[[Sample], float | None]) -> tuple[list[float], list[float]]:
    """Times and values where there is one, for graphs with an area below."""
    points = [(one.at_s - window.now_s, value) for one in window.samples if (value := of(one)) is not None]
    return [second for second, _ in points], [value for _, value in points]


def _axes(window: Window, top: float, parts: int, unit: str) -> Axes:
    """The axes up to `top`; 0 where there is nothing to measure yet."""
    places = decimals(top) if top else 0
    return Axes(
        top=top or 1.0,
        numbers=[
            (value, unit.format(number=figures.number(value, places)))
            for value in (ticks(top, parts) if top else (0.0,))
        ],
        times=_times(window),
        span_s=window.span_s,
    )


def _times(window: Window) -> list[tuple[float, str]]:
    now = (0.0, QCoreApplication.translate("Graphs", "now"))
    span = window.span_s
    if not window.fine:
        return [(-span, QCoreApplication.translate("Graphs", "1 min")), now]
    if span < 90:
        first = QCoreApplication.translate("Graphs", "{number} s").format(number=_ago(span))
        return [(-span, first), *_steps(span, 20, 1), now]
    minutes = span / 60
    step = next((step for step in _MINUTE_STEPS if minutes / step <= 6), _MINUTE_STEPS[-1])
    first = QCoreApplication.translate("Graphs", "{number} min").format(number=_ago(minutes))
    return [(-span, first), *_steps(span, step * 60, 60), now]


def _steps(span: float, step: float, unit: float) -> list[tuple[float, str]]:
    """The times between the two ends, but not too close to the first."""
    count = int((span - step / 2) // step)
    return [(-n * step, _ago(n * step / unit)) for n in range(count, 0, -1)]


def _ago(value: float) -> str:
    return f"{_MINUS}{figures.number(value, 0)}"
