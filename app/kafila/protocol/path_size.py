"""Whether the ways to a peer carry large datagrams: a large ping is asked, and a pong says that it came through.

Every way carries `SMALL_BYTES`. Larger datagrams save computing, and on some ways they vanish without a
word; a way may also become such a one. So each way in use is asked when it is new and again from time
to time, and counts as small from the moment that a few questions in a row stay without an answer.
"""

from collections.abc import Callable, Iterable

import msgspec

from kafila.protocol.edge_states import Route

SMALL_BYTES = 1200
"""What every path carries, with room for a relay frame's head around it."""
ASK_EVERY_S = 0.5
TRIES = 3
ASK_LARGE_WAY_EVERY_S = 3.0
ASK_SMALL_WAY_EVERY_S = 20.0


class AskSize(msgspec.Struct, frozen=True, kw_only=True):
    """Effect: send a ping of this size."""

    route: Route
    transaction: int
    size: int


class _Way:
    """One way in use."""

    def __init__(self, now: float) -> None:
        self.is_large = False
        self.next_at = now
        self.open_questions: list[int] = []


class PathSize:
    """The size of datagrams that a peer can be sent. Call `tick` in time, and send what it asks for."""

    def __init__(self, large_bytes: int, draw: Callable[[], int]) -> None:
        """`draw` gives a fresh unpredictable 64-bit number at every call."""
        self._large_bytes = large_bytes
        self._draw = draw
        self._ways: dict[Route, _Way] = {}

    @property
    def size(self) -> int:
        """What all ways in use carry, in bytes."""
        is_large = bool(self._ways) and all(way.is_large for way in self._ways.values())
        return self._large_bytes if is_large else SMALL_BYTES

    def follow(self, routes: Iterable[Route], now: float) -> None:
        """These are the ways in use from now on."""
        if self._large_bytes > SMALL_BYTES:
            self._ways = {route: self._ways.get(route) or _Way(now) for route in routes}

    def heard_pong(self, route: Route, transaction: int, now: float) -> bool:
        """Whether the pong answers a question of ours; if so, the way is large."""
        way = self._ways.get(route)
        if way is None or transaction not in way.open_questions:
            return False
        way.is_large = True
        way.open_questions.clear()
        way.next_at = now + ASK_LARGE_WAY_EVERY_S
        return True

    def tick(self, now: float) -> list[AskSize]:
        """What is to be asked now. Read what has arrived first."""
        return [
            AskSize(route=route, transaction=transaction, size=self._large_bytes)
            for route, way in self._ways.items()
            if now >= way.next_at and (transaction := self._ask(way, now)) is not None
        ]

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        return min((way.next_at for way in self._ways.values()), default=None)

    def _ask(self, way: _Way, now: float) -> int | None:
        if len(way.open_questions) >= TRIES:
            way.is_large = False
            way.open_questions.clear()
            way.next_at = now + ASK_SMALL_WAY_EVERY_S
            return None
        way.next_at = now + ASK_EVERY_S
        way.open_questions.append(self._draw())
        return way.open_questions[-1]
