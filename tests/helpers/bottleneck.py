"""Flows with real controllers on a made-up line, in made-up time: no packets, no clock, so no machine is too busy."""

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import count

from aioquic.quic.congestion.base import QuicCongestionControl
from aioquic.quic.congestion.cubic import CubicCongestionControl
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.recovery import QuicPacketPacer
from aioquic.tls import Epoch

from kafila.network.congestion import Pacer, RateControl

PACKET_BYTES = 1200
ACK_EVERY_S = 0.001
TIMER_S = 0.001
"""An event loop wakes no more often."""
REORDERED = 3


class Bottleneck:
    """A line with one queue, and the time."""

    def __init__(self, *, mbit: float, queue_ms: float, loss: float = 0.0) -> None:
        self.now = 0.0
        self.mbit = mbit
        self.loss = loss
        self.waits_ms: list[float] = []
        """How long each packet waited in the queue."""
        self._queue_s = queue_ms / 1000
        self._random = random.Random(1)  # noqa: S311  # the weather is no secret
        self._free_at = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = count().__next__

    def at(self, when: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (when, self._count(), do))

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, do = heapq.heappop(self._due)
            do()
        self.now = end

    def carry(self, delay_s: float, arrive: Callable[[], None]) -> None:
        """One packet: it arrives, or the queue is full, or it is lost behind it."""
        wait_s = max(0.0, self._free_at - self.now)
        if wait_s > self._queue_s:
            return
        self.waits_ms.append(wait_s * 1000)
        self._free_at = self.now + wait_s + PACKET_BYTES * 8 / (self.mbit * 1e6)
        if self._random.random() >= self.loss:
            self.at(self._free_at + delay_s, arrive)


class Flow:
    """One sender, and whoever acknowledges."""

    def __init__(self, line: Bottleneck, control: QuicCongestionControl, *, rtt_ms: float) -> None:
        self.arrived_bytes = 0
        self.rtt_s = rtt_ms / 1000
        self.waiting_packets: int | None = None
        """How many there are to send; None for as many as can be."""
        self.control = control
        self._line = line
        is_ours = isinstance(control, RateControl)
        self._pacer = Pacer(control) if is_ours else QuicPacketPacer(max_datagram_size=PACKET_BYTES)
        self._next_number = count().__next__
        self._sent: dict[int, QuicSentPacket] = {}
        self._to_acknowledge: list[int] = []
        self._largest = -1
        self._smoothed_rtt_s = self.rtt_s
        self._wakes_at = -1.0
        self._heard_at = line.now
        line.at(line.now, self.pump)
        line.at(line.now + 1.0, self._probe)

    def pump(self) -> None:
        """Send what may be sent."""
        now = self._line.now
        while (
            self.waiting_packets != 0 and self.control.bytes_in_flight + PACKET_BYTES <= self.control.congestion_window
        ):
            if (send_at := self._pacer.next_send_time(now=now)) is not None:
                if self._wakes_at <= now:
                    self._wakes_at = max(send_at, now + TIMER_S)
                    self._line.at(self._wakes_at, self.pump)
                return
            self._send(now)
        if self.waiting_packets == 0 and isinstance(self.control, RateControl):
            self.control.note_limited()

    def _send(self, now: float) -> None:
        packet = QuicSentPacket(
            epoch=Epoch.ONE_RTT,
            in_flight=True,
            is_ack_eliciting=True,
            is_crypto_packet=False,
            packet_number=self._next_number(),
            packet_type=QuicPacketType.ONE_RTT,
            sent_time=now,
            sent_bytes=PACKET_BYTES,
        )
        if self.waiting_packets is not None:
            self.waiting_packets -= 1
        self._sent[packet.packet_number] = packet
        self.control.on_packet_sent(packet=packet)
        self._pacer.update_after_send(now=now)
        self._line.carry(self.rtt_s / 2, lambda: self._arrive(packet.packet_number))

    def _arrive(self, number: int) -> None:
        self.arrived_bytes += PACKET_BYTES
        if not self._to_acknowledge:
            self._line.at(self._line.now + ACK_EVERY_S, self._acknowledge)
        self._to_acknowledge.append(number)

    def _acknowledge(self) -> None:
        numbers, self._to_acknowledge = self._to_acknowledge, []
        self._line.at(self._line.now + self.rtt_s / 2, lambda: self._hear(numbers))

    def _hear(self, numbers: Sequence[int]) -> None:
        now, newest = self._line.now, None
        for number in numbers:
            if (packet := self._sent.pop(number, None)) is not None:
                self.control.on_packet_acked(now=now, packet=packet)
                newest = packet
        if newest is None:
            return
        self._heard_at = now
        self._largest = max(self._largest, newest.packet_number)
        rtt_s = now - (newest.sent_time or 0.0)
        self._smoothed_rtt_s += (rtt_s - self._smoothed_rtt_s) / 8
        self.control.on_rtt_measurement(now=now, rtt=rtt_s)
        lost = [packet for number, packet in self._sent.items() if number < self._largest - REORDERED]
        for packet in lost:
            del self._sent[packet.packet_number]
        if lost:
            self.control.on_packets_lost(now=now, packets=lost)
        self._pacer.update_rate(congestion_window=self.control.congestion_window, smoothed_rtt=self._smoothed_rtt_s)
        self.pump()

    def _probe(self) -> None:
        """Where nothing is heard any more, what was sent last is lost."""
        now = self._line.now
        if self._sent and now > self._heard_at + 3 * self._smoothed_rtt_s:
            packets, self._sent = list(self._sent.values()), {}
            self.control.on_packets_expired(packets=packets)
            self.pump()
        self._line.at(now + self._smoothed_rtt_s, self._probe)


def ours() -> RateControl:
    return RateControl(max_datagram_size=PACKET_BYTES)


def cubic() -> QuicCongestionControl:
    return CubicCongestionControl(max_datagram_size=PACKET_BYTES)
