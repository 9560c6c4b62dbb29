"""What the graphs remember of the ring: samples, their thinning for drawing, and round axes.

Pure but for the memory a `History` keeps; the time comes in as an argument.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Serving

SAMPLE_EVERY_S = 0.5
RECENT_S = 600.0
COARSE_S = 10.0
MOST_COARSE = 8640
"""A day of coarse samples; after it the oldest go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The ring's figures at one time. None: nothing to measure then."""

    at_s: float
    busy: Mapping[MemberId, float]
    words_per_second: float | None = None
    tokens_per_second: float | None = None
    compute_ms: float | None = None
    in_flight_ms: float | None = None


def sample(serving: Serving, at_s: float) -> Sample:
    """The figures of a snapshot. Members that are away have none."""
    pace = serving.pace
    return Sample(
        at_s=at_s,
        busy={one.member: one.busy for one in serving.ring if one.away_s is None},
        words_per_second=pace.words_per_second,
        tokens_per_second=pace.tokens_per_second,
        compute_ms=pace.compute_ms_p50,
        in_flight_ms=pace.in_flight_ms_p50,
    )


class History:
    """The last ten minutes in full, and the rest of the session in steps of ten seconds."""

    def __init__(self) -> None:
        self._recent: deque[Sample] = deque(maxlen=round(RECENT_S / SAMPLE_EVERY_S))
        self._coarse: deque[Sample] = deque(maxlen=MOST_COARSE)
        self._unsettled: list[Sample] = []

    def offer(self, taken: Sample) -> bool:
        """Remember a sample, unless it comes too soon after the last one."""
        if self._recent and taken.at_s - self._recent[-1].at_s < SAMPLE_EVERY_S * 0.9:
            return False
        self._recent.append(taken)
        bucket = floor(taken.at_s / COARSE_S)
        if self._unsettled and floor(self._unsettled[0].at_s / COARSE_S) != bucket:
            self._coarse.append(average(self._unsettled))
            self._unsettled = []
        self._unsettled.append(taken)
        return True

    def clear(self) -> None:
        """Forget everything; another session begins."""
        self._recent.clear()
        self._coarse.clear()
        self._unsettled = []

    @property
    def begun(self) -> bool:
        """Whether a word was ever sampled."""
        return any(
            one.words_per_second is not None or one.tokens_per_second is not None
            for samples in (self._recent, self._coarse)
            for one in samples
        )

    def last(self, seconds: float, *, now_s: float, points: int) -> tuple[Sample, ...]:
        """The samples of the last seconds, thinned to about `points`."""
        samples = self._recent if seconds <= RECENT_S else (*self._coarse, *self._unsettled)
        since = now_s - seconds
        return thin([one for one in samples if one.at_s >= since], every_s=seconds / points)

    def length_s(self, now_s: float) -> float:
        """How long the history reaches back, at least a minute."""
        oldest = self._coarse[0] if self._coarse else self._recent[0] if self._recent else None
        return max(60.0, now_s - oldest.at_s) if oldest is not None else 60.0


def thin(samples: Sequence[Sample], *, every_s: float) -> tuple[Sample, ...]:
    """One sample per step of time. Steps lie on a fixed grid, so that curves do not flicker."""
    if every_s <= SAMPLE_EVERY_S:
        return tuple(samples)
    groups: dict[int, list[Sample]] = {}
    for one in samples:
        groups.setdefault(floor(one.at_s / every_s), []).append(one)
    return tuple(average(group) for group in groups.values())


def average(samples: Sequence[Sample]) -> Sample:
    """The mean of some samples; what is missing in all of them stays missing."""
    members = {member for one in samples for member in one.busy}
    return Sample(
        at_s=sum(one.at_s for one in samples) / len(samples),
        busy={
            member: value
            for member in members
            if (value := _mean(samples, lambda one, m=member: one.busy.get(m))) is not None
        },
        words_per_second=_mean(samples, lambda one: one.words_per_second),
        tokens_per_second=_mean(samples, lambda one: one.tokens_per_second),
        compute_ms=_mean(samples, lambda one: one.compute_ms),
        in_flight_ms=_mean(samples, lambda one: one.in_flight_ms),
    )


def round_top(value: float) -> float:
    """The next number from 1, 1.6, 2.4, 4, 6, 8 times a power of ten that is not below `value`."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    for step in (1.0, 1.6, 2.4, 4.0, 6.0, 8.0, 10.0):
        if value <= step * power * (1 + 1e-9):
            return step * power
    return 10.0 * power


def ticks(top: float, parts: int) -> tuple[float, ...]:
    """`parts` equal steps from 0 to the top."""
    return tuple(top * n / parts for n in range(parts + 1))


def decimals(top: float) -> int:
    """How many decimals the numbers of an axis need to tell them apart."""
    return 0 if top >= 4 else min(3, 1 + max(0, ceil(-log10(top))))


def _mean(samples: Sequence[Sample], of: Callable[[Sample], float | None]) -> float | None:
    values = [value for one in samples if (value := of(one)) is not None]
    return sum(values) / len(values) if values else None
