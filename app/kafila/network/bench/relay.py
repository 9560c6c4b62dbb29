"""What passing through a relay costs: the relay's own time, and the delay that it adds.

Everything here blocks, and is for a thread of its own.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable
from typing import Self

import msgspec

from kafila.protocol.links import RelaySeat
from kafila.protocol.relay_frames import (
    DELIVERED,
    DELIVERED_OVERHEAD,
    SEATED,
    KeepAliveFrame,
    RelayedFrame,
    encode_to_relay,
)

PAYLOAD_BYTES = 1200
_ROUND_BYTES = 12_000_000
"""In each direction, in one go: less than a seat may send at once."""
REST_S = 0.6
"""Until a seat may send as much again."""
WINDOW = 32
"""Datagrams under way in each direction: enough to keep the relay busy, and no queue overflows."""
_GAP_S = 0.002
WITHIN_S = 2.0
_ASK_AGAIN_S = 0.25


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What went through, and what that took of the relay."""

    payload_mb: float
    relay_cpu_s: float
    seconds: float
    lost: int


class Delays(msgspec.Struct, frozen=True, kw_only=True):
    """One-way delays, of datagrams sent one at a time."""

    direct_s: list[float]
    relayed_s: list[float]


class Sitter:
    """A socket in a seat at the relay."""

    def __init__(self, seat: RelaySeat) -> None:
        """Take the seat. Raises TimeoutError."""
        self.seat = seat
        self._counter = 0
        self._relay = (seat.relay.host, seat.relay.port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        try:
            self._sit_down()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send_relayed(self, to: "Sitter", payload: bytes) -> None:
        """Send through the relay."""
        frame = RelayedFrame(source=self.seat.slot, counter=self._next(), destination=to.seat.slot, payload=payload)
        self._socket.sendto(encode_to_relay(frame, self.seat.key), self._relay)

    def send_direct(self, to: "Sitter", payload: bytes) -> None:
        """Send to the other socket itself."""
        self._socket.sendto(payload, to._socket.getsockname())  # noqa: SLF001

    def receive(self) -> bytes:
        """The next payload, whichever way it came. Raises TimeoutError."""
        data = self._socket.recv(2048)
        return data[DELIVERED_OVERHEAD:] if data[0] == DELIVERED else data

    def _sit_down(self) -> None:
        self._socket.settimeout(_ASK_AGAIN_S)
        until = time.monotonic() + WITHIN_S
        while True:
            frame = KeepAliveFrame(slot=self.seat.slot, counter=self._next())
            self._socket.sendto(encode_to_relay(frame, self.seat.key), self._relay)
            try:
                if self._socket.recv(2048)[0] == SEATED:
                    break
            except TimeoutError:
                if time.monotonic() > until:
                    raise
        self._socket.settimeout(WITHIN_S)

    def _next(self) -> int:
        self._counter += 1
        return self._counter


def measure_cost(one: Sitter, other: Sitter, *, rounds: int, relay_cpu_s: Callable[[], float]) -> Cost:
    """Send as fast as the relay passes on, both ways at once."""
    payload = bytes(PAYLOAD_BYTES)
    arrived = lost = 0
    cpu_before, seconds = relay_cpu_s(), 0.0
    for number in range(rounds):
        if number:
            time.sleep(REST_S)
        began = time.perf_counter()
        for _ in range(_ROUND_BYTES // PAYLOAD_BYTES // WINDOW):
            for _ in range(WINDOW):
                one.send_relayed(other, payload)
                other.send_relayed(one, payload)
            came = _take(one) + _take(other)
            arrived, lost = arrived + came, lost + 2 * WINDOW - came
        seconds += time.perf_counter() - began
    return Cost(
        payload_mb=arrived * PAYLOAD_BYTES / 1e6,
        relay_cpu_s=relay_cpu_s() - cpu_before,
        seconds=seconds,
        lost=lost,
    )


def _take(sitter: Sitter) -> int:
    for came in range(WINDOW):
        try:
            sitter.receive()
        except TimeoutError:
            return came
    return WINDOW


def measure_delays(one: Sitter, other: Sitter, *, rounds: int) -> Delays:
    """Send datagrams in turns through the relay and directly, each after the last has arrived."""
    arrivals: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def receive() -> None:
        # Asleep until each arrives, as a member is; either way is waited for alike.
        for _ in range(2 * rounds):
            try:
                sent_ns = int.from_bytes(other.receive()[:8], "big")
            except TimeoutError:
                arrivals.put(None)
            else:
                arrivals.put((time.perf_counter_ns() - sent_ns) / 1e9)

    delays: tuple[list[float], list[float]] = ([], [])
    receiver = threading.Thread(target=receive)
    receiver.start()
    try:
        for number in range(2 * rounds):
            time.sleep(_GAP_S)
            send = (one.send_direct, one.send_relayed)[number % 2]
            send(other, time.perf_counter_ns().to_bytes(8, "big") + bytes(PAYLOAD_BYTES - 8))
            if (delay := arrivals.get()) is not None:
                delays[number % 2].append(delay)
    finally:
        receiver.join()
    return Delays(direct_s=delays[0], relayed_s=delays[1])
