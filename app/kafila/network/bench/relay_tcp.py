"""What the relay over TCP costs, where members' UDP is blocked: TLS twice, and a WebSocket's frames."""

import asyncio
import time
from collections.abc import Callable

from kafila.network.bench.relay import PAYLOAD_BYTES, REST_S, WINDOW, WITHIN_S, Cost
from kafila.network.relay_stream import RelayStream
from kafila.protocol.links import RelaySeat
from kafila.protocol.relay_frames import SEATED, KeepAliveFrame, RelayedFrame, encode_to_relay

_ROUND_BYTES = 3_000_000
"""In each direction, in one go."""
_FIRST_COUNTER = 1 << 32
"""Beyond any that these seats have used over UDP."""


class _Sitter:
    """A seat at the relay, held over a connection."""

    def __init__(self, seat: RelaySeat) -> None:
        self.seat = seat
        self._counter = _FIRST_COUNTER
        self._heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._opened = asyncio.Event()
        self._stream = RelayStream(
            seat, on_open=self._opened.set, on_frame=self._heard.put_nowait, on_lost=self._opened.clear
        )

    async def sit_down(self) -> None:
        """Take the seat. Raises TimeoutError."""
        async with asyncio.timeout(WITHIN_S):
            await self._opened.wait()
            frame = KeepAliveFrame(slot=self.seat.slot, counter=self._next())
            self._stream.send(encode_to_relay(frame, self.seat.key))
            while (await self._heard.get())[0] != SEATED:
                pass

    def send(self, to: "_Sitter", payload: bytes) -> None:
        """Send through the relay."""
        frame = RelayedFrame(source=self.seat.slot, counter=self._next(), destination=to.seat.slot, payload=payload)
        self._stream.send(encode_to_relay(frame, self.seat.key))

    async def take(self) -> int:
        """Wait for a window of frames; how many came."""
        for came in range(WINDOW):
            try:
                async with asyncio.timeout(WITHIN_S):
                    await self._heard.get()
            except TimeoutError:
                return came
        return WINDOW

    async def close(self) -> None:
        """Give the connection up."""
        await self._stream.close()

    def _next(self) -> int:
        self._counter += 1
        return self._counter


async def measure_cost_over_tcp(
    seats: tuple[RelaySeat, RelaySeat], *, rounds: int, relay_cpu_s: Callable[[], float]
) -> Cost:
    """Send as fast as the relay passes on, both ways at once. Raises TimeoutError."""
    one, other = (_Sitter(seat) for seat in seats)
    try:
        for each in (one, other):
            await each.sit_down()
        return await _exchange(one, other, rounds, relay_cpu_s)
    finally:
        for each in (one, other):
            await each.close()


async def _exchange(one: _Sitter, other: _Sitter, rounds: int, relay_cpu_s: Callable[[], float]) -> Cost:
    payload = bytes(PAYLOAD_BYTES)
    arrived = lost = 0
    cpu_before, seconds = relay_cpu_s(), 0.0
    for number in range(rounds):
        if number:
            await asyncio.sleep(REST_S)
        began = time.perf_counter()
        for _ in range(_ROUND_BYTES // PAYLOAD_BYTES // WINDOW):
            for _ in range(WINDOW):
                one.send(other, payload)
                other.send(one, payload)
            came = await one.take() + await other.take()
            arrived, lost = arrived + came, lost + 2 * WINDOW - came
        seconds += time.perf_counter() - began
    return Cost(
        payload_mb=arrived * PAYLOAD_BYTES / 1e6,
        relay_cpu_s=relay_cpu_s() - cpu_before,
        seconds=seconds,
        lost=lost,
    )
