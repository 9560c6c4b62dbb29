"""How fast something is going, from how much was done when. No Qt, no clock."""

from collections import deque

WINDOW_S = 6.0


class Rate:
    """Bytes a second over the last seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, now_s: float, done: int) -> None:
        """So much was done at this time. Less than before: it began anew."""
        if self._samples and done < self._samples[-1][1]:
            self._samples.clear()
        self._samples.append((now_s, done))
        while len(self._samples) > 2 and now_s - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()

    def per_second(self) -> float | None:
        """None while too little is known."""
        if len(self._samples) < 2:
            return None
        (begin_s, begin), (end_s, end) = self._samples[0], self._samples[-1]
        return (end - begin) / (end_s - begin_s) if end_s - begin_s >= 1 and end > begin else None
