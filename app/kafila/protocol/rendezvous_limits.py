"""How much of anything one address, session or connection may use: token buckets."""

import msgspec


class Rate(msgspec.Struct, frozen=True):
    """So much at once, and so much a second in the long run."""

    burst: float
    per_s: float


class Bucket:
    """Allows what a rate allows."""

    def __init__(self, rate: Rate, now: float) -> None:
        self._burst, self._per_s = rate.burst, rate.per_s
        self._level = rate.burst
        self._at = now

    def take(self, amount: float, now: float) -> bool:
        """Use up an amount; false, and nothing is used, where it is not there."""
        # Twice for every relayed frame, so it calls nothing.
        level = self._level + (now - self._at) * self._per_s
        if level > self._burst:  # noqa: PLR1730
            level = self._burst
        self._at = now
        is_there = level >= amount
        self._level = level - amount if is_there else level
        return is_there

    def is_full(self, now: float) -> bool:
        """Whether nothing was used that has not come back."""
        return self.take(0, now) and self._level >= self._burst


class Buckets:
    """A bucket for each key. Keys beyond a bound share one, so memory is bounded too."""

    def __init__(self, rate: Rate, *, max_keys: int = 50_000) -> None:
        self._rate = rate
        self._max_keys = max_keys
        self._by_key: dict[str, Bucket] = {}
        self._shared: Bucket | None = None

    def take(self, key: str, amount: float, now: float) -> bool:
        """Use up an amount of what the key has."""
        return self._bucket(key, now).take(amount, now)

    def forget_idle(self, now: float) -> None:
        """Drop the buckets that say nothing: those which are full."""
        idle = [key for key, bucket in self._by_key.items() if bucket.is_full(now)]
        for key in idle:
            del self._by_key[key]

    def __len__(self) -> int:
        """How many keys have a bucket of their own."""
        return len(self._by_key)

    def _bucket(self, key: str, now: float) -> Bucket:
        if key in self._by_key:
            return self._by_key[key]
        if len(self._by_key) >= self._max_keys:
            self._shared = self._shared or Bucket(self._rate, now)
            return self._shared
        return self._by_key.setdefault(key, Bucket(self._rate, now))


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one rendezvous. The defaults suit a group; a test may want tighter ones."""

    connections: int = 10_000
    connections_per_source: int = 64
    """A source is an IPv4 address, or the /64 of an IPv6 address."""
    tcp_connections: int = 16_000
    """Of any kind: signalling, the relay over TCP, and questions over HTTP."""
    tcp_connections_per_source: int = 160
    unsettled_connections: int = 1_000
    """Connections that have asked nothing yet; beyond, the oldest of them go."""
    connects: Rate = Rate(64, 2.0)
    calls: Rate = Rate(30, 0.5)
    opens: Rate = Rate(20, 0.2)
    lookups: Rate = Rate(120, 4.0)
    """Questions over HTTP, each source."""
    connects_back: Rate = Rate(6, 0.05)
    """Questions whether a source is reached."""
    connects_back_at_once: int = 64
    stun_requests: Rate = Rate(100, 20.0)
    sessions: int = 20_000
    exchanges_per_session: int = 64
    exchanges_per_session_and_source: int = 16
    messages: Rate = Rate(400, 50.0)
    """Messages on one connection."""
    message_bytes: Rate = Rate(4 << 20, 512 << 10)
    waiting_messages: int = 256
    """Messages kept for a line that does not take them; twice as many end it."""
    waiting_bytes: int = 2 << 20
    waiting_bytes_in_all: int = 256 << 20
    """What all lines together may have waiting."""
    hello_within_s: float = 5.0
    grace_s: float = 120.0
    """How long a line without a connection is kept."""
    slot_bytes: Rate = Rate(16 << 20, 20e6)
    """What one slot may have relayed: more than a link ever carries."""
    session_bytes: Rate = Rate(48 << 20, 60e6)
    source_bytes: Rate = Rate(48 << 20, 60e6)
    """Half of what a relay can pass on at all, so that no address keeps others from it."""
