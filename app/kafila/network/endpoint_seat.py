"""Holding a seat at the rendezvous's relay: taking it, keeping it, noticing that it is gone."""

from collections.abc import Callable

import msgspec

from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import (
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    encode_to_relay,
)

KEEP_EVERY_S = 5.0
"""Often enough that a home router keeps its mapping."""
ASK_AGAIN_AFTER_S = 1.0
ASK_FIRST_GAP_S = 0.25
ASK_LONGEST_GAP_S = 2.0
GONE_AFTER = 4
"""Unanswered keep-alives after which the relay counts as gone."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """The relay has not answered, or no longer does."""

    gap_s: float


class Seated(msgspec.Struct, frozen=True, kw_only=True):
    """The relay sends this seat's frames to `observed`."""

    observed: Address
    unanswered: int


class SeatHolder:
    """Makes the frames that hold one seat. Reads no clock and sends nothing itself."""

    def __init__(self, seat: RelaySeat, *, count: Callable[[], int], now: float) -> None:
        """`count` gives growing numbers, beyond any that this seat has used before."""
        self.seat = seat
        self.state: Asking | Seated = Asking(gap_s=ASK_FIRST_GAP_S)
        self._count = count
        self._last_asked: int | None = None
        self._next_at = now

    def relayed(self, destination: int, payload: bytes) -> bytes:
        """A frame that carries a payload to another seat."""
        frame = RelayedFrame(
            source=self.seat.slot,
            counter=self._count(),
            destination=destination,
            payload=payload,
        )
        return encode_to_relay(frame, self.seat.key)

    def tick(self, now: float) -> bytes | None:
        """The frame that is due, if any."""
        if now < self._next_at:
            return None
        match self.state:
            case Seated(unanswered=unanswered) if unanswered >= GONE_AFTER:
                self.state = Asking(gap_s=ASK_FIRST_GAP_S)
            case Seated(unanswered=unanswered) as seated:
                self.state = msgspec.structs.replace(seated, unanswered=unanswered + 1)
            case Asking(gap_s=gap_s):
                self.state = Asking(gap_s=min(2 * gap_s, ASK_LONGEST_GAP_S))
        return self.ask(now)

    def ask(self, now: float) -> bytes:
        """A frame that asks for the seat, whether or not one is due."""
        self._next_at = now + self._gap_s()
        self._last_asked = self._count()
        frame = KeepAliveFrame(slot=self.seat.slot, counter=self._last_asked)
        return encode_to_relay(frame, self.seat.key)

    def next_tick(self) -> float:
        """When `tick` is due next."""
        return self._next_at

    def heard(self, frame: SeatedFrame, now: float) -> None:
        """The relay's answer. Any but to the last question is passed over."""
        if frame.slot == self.seat.slot and frame.counter == self._last_asked:
            self._last_asked = None
            self.state = Seated(observed=frame.observed, unanswered=0)
            self._next_at = now + KEEP_EVERY_S

    def _gap_s(self) -> float:
        match self.state:
            case Seated():
                return ASK_AGAIN_AFTER_S
            case Asking(gap_s=gap_s):
                return gap_s
