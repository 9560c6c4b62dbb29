"""How many wrong guesses a code survives, and how many one address may make.

An exchange counts as a failed guess if its code was wrong, and also if it was begun and never
confirmed: a guesser learns as much by going silent. Five failed guesses end the code. The host
makes a new one at once, but what each address has tried is remembered beyond it.
"""

from collections import defaultdict, deque
from dataclasses import dataclass

from kafila.protocol.pairing import TurnedAwayReason

MAX_FAILURES = 5
CONFIRM_WITHIN_S = 30.0
MAX_OPEN = 16
MAX_OPEN_PER_REMOTE = 3
MAX_BEGUN_PER_REMOTE = 10
REMEMBER_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    remote: str
    until_s: float


class Attempts:
    """The exchanges of one host, which `kafila.protocol.door` asks before it does anything.

    `now_s` is any clock that does not go back. Exchanges and remotes are named as the rendezvous names them.
    """

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._begun_s: defaultdict[str, deque[float]] = defaultdict(deque)
        self._failures = 0

    @property
    def burned(self) -> bool:
        """The code is over: it must not be accepted again, not even when it is right."""
        return self._failures >= MAX_FAILURES

    @property
    def next_deadline_s(self) -> float | None:
        """When `expire` is next worth calling."""
        return min((attempt.until_s for attempt in self._open.values()), default=None)

    def begin(self, exchange: int, remote: str, now_s: float) -> TurnedAwayReason | None:
        """Begin an exchange; None: it may go on."""
        self.expire(now_s)
        self._forget(now_s)
        if self.burned:
            return TurnedAwayReason.CODE_ENDED
        open_here = sum(attempt.remote == remote for attempt in self._open.values())
        begun_here = len(self._begun_s.get(remote, ()))
        if (
            exchange in self._open
            or len(self._open) >= MAX_OPEN
            or open_here >= MAX_OPEN_PER_REMOTE
            or begun_here >= MAX_BEGUN_PER_REMOTE
        ):
            return TurnedAwayReason.BUSY
        self._open[exchange] = _Open(remote=remote, until_s=now_s + CONFIRM_WITHIN_S)
        self._begun_s[remote].append(now_s)
        return None

    def confirm(self, exchange: int) -> None:
        """The exchange had the right code."""
        self._open.pop(exchange, None)

    def fail(self, exchange: int) -> None:
        """The exchange had a wrong code, broke the protocol, or went away."""
        if self._open.pop(exchange, None):
            self._failures += 1

    def withdraw(self, exchange: int) -> None:
        """The exchange ended before its code could have been tried."""
        self._open.pop(exchange, None)

    def expire(self, now_s: float) -> tuple[int, ...]:
        """Count the exchanges whose time is over as failed, and say which they were."""
        over = tuple(exchange for exchange, attempt in self._open.items() if attempt.until_s <= now_s)
        for exchange in over:
            self.fail(exchange)
        return over

    def renew(self) -> None:
        """A new code: nothing that was begun under the old one counts, or may go on."""
        self._open.clear()
        self._failures = 0

    def _forget(self, now_s: float) -> None:
        for remote, begun in list(self._begun_s.items()):
            while begun and begun[0] <= now_s - REMEMBER_S:
                begun.popleft()
            if not begun:
                del self._begun_s[remote]
