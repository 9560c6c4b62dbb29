"""The blind relay, sans-io: which datagram goes where, and which goes nowhere.

It passes opaque payloads between the slots of one session. A seat's address is where its newest
authentic frame came from.
"""

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.links import Address
from kafila.protocol.relay_frames import (
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    decode_to_relay,
    encode_delivered,
    encode_from_relay,
    is_authentic,
)
from kafila.protocol.rendezvous_limits import Bucket, Buckets, Limits

REPLAY_WINDOW_FRAMES = 4096
"""How far behind a seat's newest counter a frame may come: networks reorder."""
_WHOLE_WINDOW = (1 << REPLAY_WINDOW_FRAMES) - 1


class Route(msgspec.Struct, frozen=True):
    """A seat's address, and by which of the relay's own sockets it is reached."""

    socket: int
    address: Address
    source: str
    """Whom limits take for one."""


class Forward(msgspec.Struct, frozen=True):
    """Send this datagram there."""

    data: bytes
    route: Route


@dataclass(slots=True, eq=False)
class _Room:
    """What the seats of one session share."""

    bucket: Bucket
    slots: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class _Seat:
    key: bytes
    session: int
    room: _Room
    bucket: Bucket
    window: "ReplayWindow"
    route: Route | None = None


class ReplayWindow:
    """Which counters of a seat were seen."""

    def __init__(self) -> None:
        self.newest = -1
        self._seen = 0

    def admit(self, counter: int) -> bool:
        """Whether a frame with this counter has not been seen; remembers it."""
        ahead = counter - self.newest
        if ahead > 0:
            kept = self._seen << ahead if ahead < REPLAY_WINDOW_FRAMES else 0
            self._seen = (kept | 1) & _WHOLE_WINDOW
            self.newest = counter
            return True
        mark = 1 << -ahead
        if -ahead >= REPLAY_WINDOW_FRAMES or self._seen & mark:
            return False
        self._seen |= mark
        return True


class RelayMachine:
    """All of the relay."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seats: dict[int, _Seat] = {}
        self._rooms: dict[int, _Room] = {}
        self._by_source = Buckets(limits.source_bytes)
        self.forwarded_frames = 0
        self.forwarded_bytes = 0
        self.dropped: Counter[str] = Counter()
        """Datagrams that went nowhere, by reason."""
        self.junk = 0
        """Those of them that no seat has sent."""

    def seat(self, *, slot: int, session: int, key: bytes, now: float) -> None:
        """Serve a slot from now on."""
        room = self._rooms.setdefault(session, _Room(Bucket(self._limits.session_bytes, now)))
        room.slots.add(slot)
        bucket = Bucket(self._limits.slot_bytes, now)
        self._seats[slot] = _Seat(key, session, room, bucket, ReplayWindow())

    def unseat(self, slot: int) -> None:
        """Forget a slot."""
        seat = self._seats.pop(slot)
        seat.room.slots.discard(slot)
        if not seat.room.slots:
            del self._rooms[seat.session]

    def tick(self, now: float) -> None:
        """Forget what limits no longer need."""
        self._by_source.forget_idle(now)

    def receive(self, data: bytes, source: Route, now: float) -> Forward | None:
        """What a datagram leads to."""
        try:
            frame = decode_to_relay(data)
        except PeerError:
            return self._drop_junk("malformed")
        slot = frame.slot if isinstance(frame, KeepAliveFrame) else frame.source
        seat = self._seats.get(slot)
        if seat is None:
            return self._drop_junk("unknown slot")
        if not is_authentic(data, seat.key):
            return self._drop_junk("wrong MAC")
        is_newer = frame.counter > seat.window.newest
        is_late = isinstance(frame, KeepAliveFrame) and not is_newer
        if is_late or not seat.window.admit(frame.counter):
            return self._drop("old counter")
        if is_newer:
            seat.route = source
        if isinstance(frame, KeepAliveFrame):
            answer = SeatedFrame(slot=slot, counter=frame.counter, observed=source.address)
            return Forward(encode_from_relay(answer), source)
        return self._forward(data, frame, seat, source.source, now)

    def _forward(self, data: bytes, frame: RelayedFrame, seat: _Seat, source: str, now: float) -> Forward | None:
        destination = self._seats.get(frame.destination)
        if destination is None or destination.room is not seat.room:
            return self._drop("not in the session")
        if destination.route is None:
            return self._drop("not seated yet")
        size_bytes = len(data)
        if not (
            seat.bucket.take(size_bytes, now)
            and seat.room.bucket.take(size_bytes, now)
            and self._by_source.take(source, size_bytes, now)
        ):
            return self._drop("over the rate")
        self.forwarded_frames += 1
        self.forwarded_bytes += size_bytes
        return Forward(encode_delivered(data), destination.route)

    def _drop_junk(self, reason: str) -> None:
        self.junk += 1
        self._drop(reason)

    def _drop(self, reason: str) -> None:
        self.dropped[reason] += 1
