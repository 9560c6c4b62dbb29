"""What `kafila bench transport` measures: throughput and CPU, and how long a decode frame waits beside a prefill."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import msgspec

from kafila.network.bench.line import LOOPBACK, Line
from kafila.network.bench.parts import PROGRESS, FarOrder, LineOrder, Part, as_peer, started
from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity
from kafila.network.link import Link, LinkClosed
from kafila.network.quic import LARGE_BYTES, Transport
from kafila.protocol.links import Address, Channel
from kafila.protocol.path_size import SMALL_BYTES

DATAGRAM_SIZES = (SMALL_BYTES, LARGE_BYTES, 1452)
"""What every path carries, what most do, and the most that an Ethernet does over IPv6."""
CONTROLS = ("reno", "cubic", "kafila")
LOSSES = (0.0, 0.01, 0.02)
RTTS_MS = (5.0, 50.0)
DECODE_BYTES = 4 << 10
DECODE_GAP_S = 0.025
PREFILL_BYTES = 16 << 20
_MESSAGE_BYTES = 64 << 10
_CONNECT_WITHIN_S = 10.0


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How much went through in one direction, and what it cost."""

    transport: Transport
    line: Line | None
    """None: straight over loopback."""
    mb_s: float
    sender_cpu_ms_mb: float
    receiver_cpu_ms_mb: float


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """How long decode frames take there and back, on an idle link and beside a prefill."""

    transport: Transport
    line: Line
    idle_p50_ms: float
    idle_p95_ms: float
    beside_p50_ms: float
    beside_p95_ms: float
    prefill_s: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All that was measured."""

    sizes: list[Rate]
    rates: list[Rate]
    waits: list[Wait]


class Bench:
    """The near end of every link that is measured."""

    def __init__(self, far: Part, line: Part) -> None:
        self._far = far
        self._line = line

    async def rate(self, transport: Transport, line: Line | None, seconds: float) -> Rate:
        """Send for so long."""
        async with self._linked(transport, line) as link, asyncio.TaskGroup() as tasks:
            filling = tasks.create_task(_fill(link))
            begun_at, cpu_s = time.monotonic(), time.process_time()
            arrived, first, last = 0, None, 0.0
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while True:
                        arrived, last = PROGRESS.unpack(await link.receive(Channel.CONTROL))
                        first = last if first is None else first
            took_s = time.monotonic() - begun_at
            cpu_s = time.process_time() - cpu_s
            filling.cancel()
        mb = max(arrived, 1) / 1e6
        return Rate(
            transport=transport,
            line=line,
            mb_s=mb / took_s,
            sender_cpu_ms_mb=cpu_s * 1000 / mb,
            receiver_cpu_ms_mb=(last - (first or 0.0)) * 1000 / mb,
        )

    async def wait(self, transport: Transport, line: Line, idle_s: float, prefill_bytes: int = PREFILL_BYTES) -> Wait:
        """Have frames echoed for a while, and then beside a prefill."""
        async with self._linked(transport, line) as link:
            idle = await _time_echoes(link, lambda: asyncio.sleep(idle_s))
            begun_at = time.monotonic()
            beside = await _time_echoes(link, lambda: _prefill(link, prefill_bytes))
            prefill_s = time.monotonic() - begun_at
        return Wait(
            transport=transport,
            line=line,
            idle_p50_ms=_share(idle, 0.5),
            idle_p95_ms=_share(idle, 0.95),
            beside_p50_ms=_share(beside, 0.5),
            beside_p95_ms=_share(beside, 0.95),
            prefill_s=prefill_s,
        )

    @asynccontextmanager
    async def _linked(self, transport: Transport, line: Line | None) -> AsyncGenerator[Link]:
        near, far = sorted((DeviceIdentity.generate() for _ in range(2)), key=lambda each: each.member)
        probe_key = secrets.token_bytes(32)
        order = FarOrder(
            transport=transport,
            secret=far.to_bytes(),
            near_spki_sha256=near.spki_sha256,
            probe_key=probe_key,
        )
        port = await self._far.ask(order)
        if line is not None:
            port = await self._line.ask(LineOrder(line=line, far_port=port))
        peer = as_peer(far.spki_sha256, probe_key, Address(LOOPBACK, port))
        endpoint = await Endpoint.open(near, Address(LOOPBACK, 0), lambda _: None, transport=transport)
        try:
            endpoint.set_peers({peer.member: peer})
            endpoint.open_link(peer.member)
            async with asyncio.timeout(_CONNECT_WITHIN_S):
                link = await endpoint.connected(peer.member)
            yield link
        finally:
            await endpoint.close()


@asynccontextmanager
async def open_bench(far_command: Sequence[str], line_command: Sequence[str]) -> AsyncGenerator[Bench]:
    """A bench whose other processes are started like this, and end with it."""
    async with started(far_command) as far, started(line_command) as line:
        yield Bench(far, line)


async def measure_transport(bench: Bench, seconds: float, tell: Callable[[str], None]) -> Results:
    """Everything, with so long for each transfer."""
    sizes: list[Rate] = []
    rates: list[Rate] = []
    waits: list[Wait] = []
    for size in DATAGRAM_SIZES:
        tell(f"datagrams of {size} bytes")
        sizes.append(await bench.rate(Transport(datagram_bytes=size), None, seconds))
    for control in CONTROLS:
        transport = Transport(congestion_control=control)
        for rtt_ms in RTTS_MS:
            tell(f"{control} at {rtt_ms:.0f} ms")
            rates += [await bench.rate(transport, Line(rtt_ms=rtt_ms, loss=loss), seconds) for loss in LOSSES]
        tell(f"{control}, decode beside prefill")
        waits.append(await bench.wait(transport, Line(rtt_ms=50), seconds))
    return Results(sizes=sizes, rates=rates, waits=waits)


async def _fill(link: Link) -> None:
    message = bytes(_MESSAGE_BYTES)
    with suppress(LinkClosed):
        while True:
            await link.send(Channel.PREFILL, message)


async def _prefill(link: Link, size: int) -> None:
    """Send a prefill, until all of it has arrived."""
    message = bytes(_MESSAGE_BYTES)
    for _ in range(size // _MESSAGE_BYTES):
        await link.send(Channel.PREFILL, message)
    arrived = 0
    while arrived < size // _MESSAGE_BYTES * _MESSAGE_BYTES:
        arrived, _ = PROGRESS.unpack(await link.receive(Channel.CONTROL))


async def _time_echoes(link: Link, during: Callable[[], Awaitable[None]]) -> list[float]:
    """Milliseconds of every frame that was sent while something else went on."""
    took: list[float] = []
    sent: list[float] = []
    heard = asyncio.Event()

    async def send() -> None:
        while True:
            sent.append(time.monotonic())
            await link.send(Channel.DECODE, bytes(DECODE_BYTES))
            await asyncio.sleep(DECODE_GAP_S)

    async def hear() -> None:
        while True:
            await link.receive(Channel.DECODE)
            took.append((time.monotonic() - sent[len(took)]) * 1000)
            heard.set()

    async with asyncio.TaskGroup() as tasks:
        hearing, sending = tasks.create_task(hear()), tasks.create_task(send())
        await during()
        sending.cancel()
        while len(took) < len(sent):
            heard.clear()
            await heard.wait()
        hearing.cancel()
    return took


def _share(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
