"""How busy a stage is and where the time of a token goes, over the last seconds."""

from collections import deque
from statistics import median

from kafila.domain.snapshot import Pace

WINDOW_S = 3.0
RECENT_TOKENS = 64
LEAST_TIMED = 4
"""Decode steps before a stage's time is told: the very first ones also warm it up."""


class StageMeter:
    """What one stage computed lately."""

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()
        self._decode_ms: deque[float] = deque(maxlen=RECENT_TOKENS)

    def add(self, span_us: int, *, rows: int, now: float) -> None:
        """A frame of `rows` rows took `span_us` and was done `now`."""
        self._spans.append((now, span_us / 1e6))
        if rows == 1:
            self._decode_ms.append(span_us / 1e3)

    def also(self, span_us: int, *, now: float) -> None:
        """The head went on with the newest token: unembedding and sampling."""
        self._spans.append((now, span_us / 1e6))
        if self._decode_ms:
            self._decode_ms[-1] += span_us / 1e3

    def busy(self, now: float) -> float:
        """Share of the last seconds spent computing, 0 to 1."""
        while self._spans and self._spans[0][0] < now - WINDOW_S:
            self._spans.popleft()
        return min(1.0, sum(span for _, span in self._spans) / WINDOW_S)

    def stage_ms(self) -> float | None:
        """Median of recent decode steps; None before there are a few."""
        return median(self._decode_ms) if len(self._decode_ms) >= LEAST_TIMED else None


class Rate:
    """How fast a counter grows."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def of(self, total: int, now: float) -> float:
        """Units a second since the last call."""
        last, self._last = self._last, (now, total)
        if last is None or now <= last[0] or total < last[1]:
            return 0.0
        return (total - last[1]) / (now - last[0])


class Circuits:
    """Circuit times of tokens, and how much of each was computation.

    No clocks are compared between computers: every stage reports its own duration, and what is
    left of the circuit was spent in flight.
    """

    def __init__(self, *, recent: int | None = RECENT_TOKENS) -> None:
        self._circuit_ms: deque[float] = deque(maxlen=recent)
        self._compute_ms: deque[float] = deque(maxlen=recent)

    def add(self, *, circuit_ms: float, compute_ms: float) -> None:
        """One token went round."""
        self._circuit_ms.append(circuit_ms)
        self._compute_ms.append(min(compute_ms, circuit_ms))

    def circuit_p50(self) -> float | None:
        """Median circuit time in milliseconds."""
        return median(self._circuit_ms) if self._circuit_ms else None

    def circuit_p95(self) -> float | None:
        """95th percentile (nearest rank) of the circuit time in milliseconds."""
        if not self._circuit_ms:
            return None
        ordered = sorted(self._circuit_ms)
        return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]

    def compute_p50(self) -> float | None:
        """Median of the computing part in milliseconds."""
        return median(self._compute_ms) if self._compute_ms else None

    def in_flight_p50(self) -> float | None:
        """Median of the rest in milliseconds."""
        if not self._circuit_ms:
            return None
        pairs = zip(self._circuit_ms, self._compute_ms, strict=True)
        return median(circuit - compute for circuit, compute in pairs)


class HeadMeter:
    """The ring's pace as the head sees it."""

    def __init__(self) -> None:
        self._circuits = Circuits()
        self._said: deque[tuple[float, int]] = deque()
        self._tokens = 0

    def add(self, *, circuit_ms: float, compute_ms: float) -> None:
        """One decode step went round."""
        self._circuits.add(circuit_ms=circuit_ms, compute_ms=compute_ms)

    def said(self, text: str, now: float) -> None:
        """A token brought this much text."""
        self._tokens += 1
        self._said.append((now, sum(1 for c in text if c.isspace())))

    def pace(self, now: float) -> Pace:
        """Over the last seconds."""
        while self._said and self._said[0][0] < now - WINDOW_S:
            self._said.popleft()
        talking = len(self._said) > 1
        span_s = max(now - self._said[0][0], 0.1) if talking else WINDOW_S
        return Pace(
            tokens_per_second=len(self._said) / span_s if talking else None,
            words_per_second=sum(words for _, words in self._said) / span_s if talking else None,
            circuit_ms_p50=self._circuits.circuit_p50(),
            circuit_ms_p95=self._circuits.circuit_p95(),
            compute_ms_p50=self._circuits.compute_p50(),
            in_flight_ms_p50=self._circuits.in_flight_p50(),
            tokens=self._tokens,
        )
