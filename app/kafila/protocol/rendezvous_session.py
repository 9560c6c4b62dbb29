"""What a member sees of a rendezvous: its seats, and what becomes of its connection."""

import msgspec

from kafila.protocol.links import RelaySeat


class HostSeat(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is open at a rendezvous."""

    nameplate: int
    """The number with which a code begins."""
    seat: RelaySeat


class SignallingLost(msgspec.Struct, frozen=True):
    """The connection to the rendezvous broke; it is being made again."""


class SignallingBack(msgspec.Struct, frozen=True):
    """The rendezvous is reached again. Seats stand unless another event says otherwise."""


class HostSeatChanged(msgspec.Struct, frozen=True):
    """The rendezvous had forgotten the session: it is open again, in another seat or by another
    nameplate."""

    seat: HostSeat


class SeatGone(msgspec.Struct, frozen=True):
    """The rendezvous has forgotten this member's seat, and there is no getting it back."""


SignallingEvent = SignallingLost | SignallingBack | HostSeatChanged | SeatGone


class ExchangeClosedError(Exception):
    """The other side hung up, or the rendezvous forgot the exchange."""
