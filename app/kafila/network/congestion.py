"""How fast a link sends: by a model of its path, rather than by taking every loss for a jam.

Radio links lose packets that no jam lost. A controller that slows down at each of them, as Reno and
CUBIC do, gets a tenth of such a line. This one follows BBR (draft-ietf-ccwg-bbr): it measures at
what rate data arrive and how short the round trip can be, and keeps about as much under way as
their product. So it fills no queue that a decode frame would have to wait in, either.

Where a round trip loses more than chance explains, it is a jam after all, and somebody else may be
in it. From then on a ceiling holds what is under way, and moves as CUBIC's window does (RFC 9438),
so that a neighbour's TCP keeps its share. What chance explains is more while the queue is empty.

    Startup ──the rate grows no more, or a jam──▶ Drain ──the queue is empty──▶ Cycle ◀──▶ Look

aioquic calls it for every packet. Acknowledgements come in batches, and an event loop may be late:
the allowance and the burst below are for that.
"""

import math
from collections import deque
from collections.abc import Iterable
from enum import Enum, auto

import msgspec
from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.recovery import QuicPacketPacer

NAME = "kafila"

STARTUP_GAIN = 2.77
DRAIN_GAIN = 0.36
CYCLE_GAINS = (1.25, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Times the rate, in turns of a round trip: ask for more, let go what that queued, stay."""
DRAIN_ROUNDS = 3
"""So long at most the queue is let go: it may be somebody else's."""
WINDOW_GAIN = 2.0
"""Times the rate and the shortest round trip of late, the most that is under way…"""
ALLOWANCE_S = 0.01
"""…and so long at that rate besides, since acknowledgements wait for the other side's event loop."""
STANDING_MOST = 4.0
"""A queue that stands all the while is somebody else's. Whoever did not count it would starve beside TCP;
but it counts for no more than to make the round trip so many times as long."""
FULL_GROWTH = 1.25
"""A round that grows by less may have found the path's rate…"""
FULL_ROUNDS = 3
"""…and has, if there is a queue by now, or as many in succession do."""
RATE_ROUNDS = 10
"""The rate is the best of as many rounds, and the shortest round trip of late theirs."""
RTT_EXPIRES_S = 10.0
"""A shortest round trip of longer ago may be no longer true: the queue is emptied to look again…"""
LOOK_S = 0.2
"""…for so long."""
SHORTEST_RTT_S = 0.0005
FIRST_PACKETS = 10
FEWEST_PACKETS = 4

SPAN_PACKETS = 50
JAM_LOSS = 0.1
"""Rounds with as many packets that lost a larger share were in a jam…"""
QUEUE_LOSS = 0.03
"""…and with a queue all the while, it takes only so much."""
QUEUE_SHARE = 0.08
QUEUE_S = 0.004
"""There is a queue if every packet takes longer than the shortest round trip by so much of it, and so long."""
JAM_CUT = 0.7
CUBIC_SCALE = 0.4
"""Packets per cubed second, as in RFC 9438."""

BURST_S = 0.01
BURST_SHARE = 0.125
"""How much a late event loop may catch up on at once: so long, or so much of a round trip."""


class _Mode(Enum):
    STARTUP = auto()
    DRAIN = auto()
    CYCLE = auto()
    LOOK = auto()


class _Sent(msgspec.Struct, frozen=True, gc=False):
    """How things stood when a packet was sent."""

    delivered: int
    delivered_at: float
    first_sent_at: float
    is_limited: bool


class _Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """What may be under way at most since a jam, growing as CUBIC's window does."""

    since: float
    jammed_bytes: float
    packet_bytes: int

    def at(self, now: float, rtt_s: float) -> float:
        """In bytes."""
        jammed = self.jammed_bytes / self.packet_bytes
        back_s = (jammed * (1 - JAM_CUT) / CUBIC_SCALE) ** (1 / 3)
        elapsed_s = now - self.since
        cubic = CUBIC_SCALE * (elapsed_s - back_s) ** 3 + jammed
        # What Reno with the same cut would have by now.
        friendly = jammed * JAM_CUT + 3 * (1 - JAM_CUT) / (1 + JAM_CUT) * elapsed_s / rtt_s
        return max(cubic, friendly) * self.packet_bytes


class _Round:
    """What one round trip brings."""

    def __init__(self, delivered_before: int) -> None:
        self.delivered_before = delivered_before
        self.rate = 0.0
        self.is_limited = False
        self.shortest_rtt_s = math.inf


class _Span:
    """Round trips that are judged together, so many that a lost packet more or less does not decide."""

    def __init__(self, delivered_before: int) -> None:
        self.delivered_before = delivered_before
        self.lost_bytes = 0
        self.most_bytes = 0
        """The most that was under way at once."""
        self.shortest_rtt_s = math.inf

    def passed_bytes(self, delivered: int) -> int:
        """Bytes that arrived, and that did not."""
        return delivered - self.delivered_before + self.lost_bytes

    def was_jammed(self, delivered: int, shortest_rtt_s: float) -> bool:
        """Whether more was lost than chance explains."""
        is_queued = _is_queued(self.shortest_rtt_s, shortest_rtt_s)
        return self.lost_bytes > (QUEUE_LOSS if is_queued else JAM_LOSS) * self.passed_bytes(delivered)


def _is_queued(rtt_s: float, shortest_rtt_s: float) -> bool:
    """Whether there was a queue, if no packet took less than `rtt_s`."""
    return rtt_s - shortest_rtt_s > max(QUEUE_S, QUEUE_SHARE * shortest_rtt_s)


class RateControl(QuicCongestionControl):
    """The controller of one connection."""

    def __init__(self, *, max_datagram_size: int) -> None:
        super().__init__(max_datagram_size=max_datagram_size)
        self.packet_bytes = max_datagram_size
        """The size of a full packet."""
        self._sent: dict[int, _Sent] = {}
        self._delivered = 0
        self._delivered_at = 0.0
        self._first_sent_at = 0.0
        self._limited_until = 0
        self._newest: tuple[_Sent, float] | None = None
        self.sent_bytes = 0
        """Of packets that count as under way, which bare acknowledgements do not."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know nothing of the path: it is another one now, or nothing came through it."""
        self.congestion_window = self._startup_window = FIRST_PACKETS * self.packet_bytes
        self._mode = _Mode.STARTUP
        self._is_full = False
        """Whether the path's rate was ever reached."""
        self._rates: deque[float] = deque(maxlen=RATE_ROUNDS)
        self._rtts_s: deque[float] = deque(maxlen=RATE_ROUNDS)
        self._full_rate = 0.0
        self._full_rounds = 0
        self._shortest_rtt_s: float | None = None
        self._shortest_at = 0.0
        self._looked_rtt_s = math.inf
        self._look_until = 0.0
        self._phase = 0
        self._phase_at = 0.0
        self._ceiling: _Ceiling | None = None
        self._round = _Round(self._delivered)
        self._span = _Span(self._delivered)

    @property
    def rate(self) -> float:
        """Bytes a second that arrive, at best; 0 before it was measured."""
        return max(self._round.rate, max(self._rates, default=0.0))

    def pacing_rate(self, rtt_s: float) -> float:
        """Bytes a second to send now, where a round trip usually takes so long."""
        match self._mode:
            case _Mode.STARTUP:
                gain, fewest = STARTUP_GAIN, FIRST_PACKETS
            case _Mode.DRAIN:
                gain, fewest = DRAIN_GAIN, FEWEST_PACKETS
            case _Mode.CYCLE:
                gain, fewest = CYCLE_GAINS[self._phase], FEWEST_PACKETS
            case _Mode.LOOK:
                gain, fewest = 1.0, FEWEST_PACKETS
        return gain * max(self.rate, fewest * self.packet_bytes / max(rtt_s, SHORTEST_RTT_S))

    def has_room(self) -> bool:
        """Whether one more packet may be under way."""
        return self.bytes_in_flight + self.packet_bytes <= self.congestion_window

    def note_limited(self) -> None:
        """There is nothing more to send: what arrives until then says less than the path can do."""
        self._limited_until = self._delivered + self.bytes_in_flight

    # What aioquic tells

    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        """A packet went."""
        if self.bytes_in_flight == 0:
            self._delivered_at = self._first_sent_at = packet.sent_time or 0.0
        self.bytes_in_flight += packet.sent_bytes
        self.sent_bytes += packet.sent_bytes
        self._span.most_bytes = max(self._span.most_bytes, self.bytes_in_flight)
        self._sent[packet.packet_number] = _Sent(
            self._delivered, self._delivered_at, self._first_sent_at, self._limited_until >= self._delivered
        )

    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        """A packet arrived."""
        self.bytes_in_flight -= packet.sent_bytes
        self._delivered += packet.sent_bytes
        self._delivered_at = now
        sent = self._sent.pop(packet.packet_number, None)
        if sent is not None:
            self._first_sent_at = packet.sent_time or 0.0
            self._newest = (sent, self._first_sent_at)
        if self._mode is _Mode.STARTUP and self.congestion_window < self._startup_window:
            self.congestion_window += packet.sent_bytes

    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        """Packets are asked about no more; nobody knows whether they arrived."""
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
            self._sent.pop(packet.packet_number, None)

    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:  # noqa: ARG002
        """Packets did not arrive, or so late that it comes to the same."""
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
            self._sent.pop(packet.packet_number, None)
            self._span.lost_bytes += packet.sent_bytes

    def on_persistent_congestion(self) -> None:
        """Nothing arrived for several round trips."""
        self.begin_anew()
        self.congestion_window = FEWEST_PACKETS * self.packet_bytes

    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        """All packets of an acknowledgement were told; the newest took so long."""
        shortest_rtt_s = self._learn_rtt(max(rtt, SHORTEST_RTT_S), now)
        if self._newest is not None:
            sent, sent_at = self._newest
            self._newest = None
            self._learn_rate(sent, sent_at, now)
            if sent.delivered >= self._round.delivered_before:
                self._end_round(now, shortest_rtt_s)
        self._advance(now, shortest_rtt_s)
        self._set_window(now, shortest_rtt_s)

    # The model

    def _learn_rtt(self, rtt_s: float, now: float) -> float:
        self._round.shortest_rtt_s = min(self._round.shortest_rtt_s, rtt_s)
        self._span.shortest_rtt_s = min(self._span.shortest_rtt_s, rtt_s)
        self._looked_rtt_s = min(self._looked_rtt_s, rtt_s)
        if self._shortest_rtt_s is None or rtt_s <= self._shortest_rtt_s:
            self._shortest_rtt_s, self._shortest_at = rtt_s, now
        return self._shortest_rtt_s

    def _learn_rate(self, sent: _Sent, sent_at: float, now: float) -> None:
        # The slower of sending and arriving: acknowledgements that were held back come in a rush.
        took_s = max(now - sent.delivered_at, sent_at - sent.first_sent_at)
        if took_s > 0:
            self._round.rate = max(self._round.rate, (self._delivered - sent.delivered) / took_s)
            self._round.is_limited = self._round.is_limited or sent.is_limited

    def _end_round(self, now: float, shortest_rtt_s: float) -> None:
        ended = self._round
        if not ended.is_limited or ended.rate > max(self._rates, default=0.0):
            self._rates.append(ended.rate)
        self._rtts_s.append(ended.shortest_rtt_s)
        if self._span.passed_bytes(self._delivered) >= SPAN_PACKETS * self.packet_bytes:
            if self._span.was_jammed(self._delivered, shortest_rtt_s):
                self._cut(now)
            self._span = _Span(self._delivered)
        if self._mode is _Mode.STARTUP and not ended.is_limited:
            self._judge_growth(is_queued=_is_queued(ended.shortest_rtt_s, shortest_rtt_s))
        self._round = _Round(self._delivered)

    def _cut(self, now: float) -> None:
        jammed_bytes = max(min(self._span.most_bytes, self.congestion_window), FEWEST_PACKETS * self.packet_bytes)
        self._ceiling = _Ceiling(since=now, jammed_bytes=jammed_bytes, packet_bytes=self.packet_bytes)
        self._leave_startup()

    def _judge_growth(self, *, is_queued: bool) -> None:
        if self.rate > self._full_rate * FULL_GROWTH:
            self._full_rate, self._full_rounds = self.rate, 0
            return
        self._full_rounds += 1
        if is_queued or self._full_rounds >= FULL_ROUNDS:
            self._leave_startup()

    def _leave_startup(self) -> None:
        self._is_full = True
        if self._mode is _Mode.STARTUP:
            self._mode = _Mode.DRAIN

    # What follows from it

    def _advance(self, now: float, shortest_rtt_s: float) -> None:
        is_queued = self.bytes_in_flight > self.rate * shortest_rtt_s
        match self._mode:
            case _Mode.DRAIN if not is_queued:
                self._go_on(now)
            case _Mode.CYCLE if now - self._phase_at > shortest_rtt_s:
                draining = is_queued and CYCLE_GAINS[self._phase] < 1
                if not draining or now - self._phase_at > DRAIN_ROUNDS * shortest_rtt_s:
                    self._phase, self._phase_at = (self._phase + 1) % len(CYCLE_GAINS), now
            case _Mode.LOOK if now >= self._look_until:
                self._shortest_rtt_s, self._shortest_at = self._looked_rtt_s, now
                self._go_on(now)
            case _:
                pass
        if self._mode is not _Mode.LOOK and now - self._shortest_at > RTT_EXPIRES_S:
            self._mode = _Mode.LOOK
            self._looked_rtt_s = math.inf
            self._look_until = now + LOOK_S + shortest_rtt_s

    def _go_on(self, now: float) -> None:
        self._mode = _Mode.CYCLE if self._is_full else _Mode.STARTUP
        self._phase, self._phase_at = CYCLE_GAINS.index(1.0), now

    def _set_window(self, now: float, shortest_rtt_s: float) -> None:
        if self._mode is _Mode.LOOK:
            window = self.rate * (shortest_rtt_s / 2 + ALLOWANCE_S)
        else:
            late_rtt_s = min(self._round.shortest_rtt_s, *self._rtts_s, STANDING_MOST * shortest_rtt_s)
            window = self.rate * (WINDOW_GAIN * late_rtt_s + ALLOWANCE_S)
        if self._mode is _Mode.STARTUP:
            self._startup_window = max(int(window), FIRST_PACKETS * self.packet_bytes)
            window = max(window, self.congestion_window)
        if self._ceiling is not None:
            ceiling = self._ceiling.at(now, shortest_rtt_s)
            if ceiling > window and self._mode is not _Mode.LOOK:
                self._ceiling = None
            window = min(window, ceiling)
        self.congestion_window = int(max(window, FEWEST_PACKETS * self.packet_bytes))


class Pacer(QuicPacketPacer):
    """Spaces packets at the controller's rate. aioquic asks it before each."""

    def __init__(self, control: RateControl) -> None:
        super().__init__(max_datagram_size=control.packet_bytes)
        self._control = control
        self._counted = 0
        """Packets of this turn."""
        self._sent_before = 0

    def next_send_time(  # pyright: ignore[reportIncompatibleMethodOverride]  # the library's annotation is wrong
        self, now: float
    ) -> float | None:
        """When the next packet may go; None for at once."""
        if self.packet_time is None:
            return None
        self.update_bucket(now=now)
        return None if self.bucket_time > 0 else now - self.bucket_time + self.packet_time

    def update_after_send(self, now: float) -> None:
        """A packet went. What it takes too much is owed: many packets in a turn would add up."""
        if self.packet_time is not None:
            self.update_bucket(now=now)
            self.bucket_time -= self.packet_time
            self._counted += 1

    def end_turn(self) -> None:
        """All packets of a turn went: only what they weigh is owed.

        Acknowledgements weigh nothing. A receiver sends thousands a second, and would owe for them long after.
        """
        sent_bytes = self._control.sent_bytes - self._sent_before
        if self.packet_time is not None:
            self.bucket_time += self.packet_time * (self._counted - sent_bytes / self._control.packet_bytes)
            self.bucket_time = min(self.bucket_time, self.bucket_max)
        self._counted, self._sent_before = 0, self._control.sent_bytes

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:  # noqa: ARG002
        """The controller has learned something."""
        self.packet_time = self._control.packet_bytes / self._control.pacing_rate(smoothed_rtt)
        self.bucket_max = max(2 * self.packet_time, BURST_S, BURST_SHARE * smoothed_rtt)
        self.bucket_time = min(self.bucket_time, self.bucket_max)


register_congestion_control(NAME, RateControl)
