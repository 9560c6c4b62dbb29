"""What a rendezvous costs whoever runs one, and whoever goes through it.

The rendezvous is a process of its own; the load comes from this one.
"""

import asyncio
import contextlib
import json
import math
import platform
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import psutil

from kafila.domain.errors import UserError
from kafila.network.bench.relay import PAYLOAD_BYTES, Cost, Delays, Sitter, measure_cost, measure_delays
from kafila.network.bench.relay_tcp import measure_cost_over_tcp
from kafila.network.bench.sessions import SPARE_FILES, many_sessions, sources_for
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server.files import allow_files
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_limits import Limits
from kafila.protocol.trust import Pinned

_STARTS_WITHIN_S = 60.0
_MB = 1e6


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How long to measure."""

    cost_rounds: int = 5
    delay_rounds: int = 500
    idle_s: float = 10.0


class RelayFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The relay over UDP, both ways at once; delays of one datagram at a time."""

    payload_bytes: int
    relayed_mb: float
    lost: int
    mb_per_s: float
    cpu_s_per_mb: float
    tcp_cpu_s_per_mb: float
    """The same over TCP, with TLS to both members."""
    direct_us: dict[str, float]
    relayed_us: dict[str, float]
    added_us: dict[str, float]


class SignallingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions that sign on, greet, and rest."""

    sessions: int
    members: int
    addresses: int
    all_ready_s: float
    session_s: dict[str, float]
    hello_ms: dict[str, float]
    server_cpu_s: float
    load_cpu_s: float
    idle_s: float
    idle_cpu_percent: float
    broken: int
    """Connections that did not last until the end."""
    rss_before_mb: float
    rss_mb: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, and on what."""

    machine: str
    cores: int
    relay: RelayFigures
    signalling: SignallingFigures


async def measure_rendezvous(
    command: Sequence[str], *, sessions: int, members: int, effort: Effort | None = None
) -> Figures:
    """A whole run with a rendezvous that this command starts. Raises UserError."""
    effort = effort or Effort()
    sources_for(sessions, members, Limits())
    _allow_connections(sessions * members)
    async with _rendezvous(command) as (server, at):
        relay = await _measure_relay(server, at, effort)
        signalling = await _measure_signalling(server, at, (sessions, members), effort.idle_s)
    return Figures(
        machine=f"{platform.system()} on {platform.machine()}",
        cores=psutil.cpu_count() or 1,
        relay=relay,
        signalling=signalling,
    )


def _allow_connections(connections: int) -> None:

    allowed = allow_files(connections + SPARE_FILES)
    if allowed < connections + SPARE_FILES:
        raise UserError(
            title=f"This system lets one program have {allowed} files open, and {connections} members take as many",
            advice="Raise the limit (“ulimit -Hn” shows it), or measure fewer sessions.",
        )


@asynccontextmanager
async def _rendezvous(command: Sequence[str]) -> AsyncGenerator[tuple[psutil.Process, RendezvousAt]]:
    """One that runs until the end: its process, and where it listens."""

    process = await asyncio.create_subprocess_exec(
        *command, "--listen", "127.0.0.1:0", "--json", stdin=DEVNULL, stdout=PIPE
    )
    try:
        said = await _first_line(process)
        trust = Pinned(bytes.fromhex(said["fingerprint"]))
        yield psutil.Process(process.pid), RendezvousAt(Address(said["host"], said["port"]), trust)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _first_line(process: Process) -> dict[str, Any]:
    if process.stdout is not None:
        with contextlib.suppress(TimeoutError, ValueError):
            async with asyncio.timeout(_STARTS_WITHIN_S):
                return json.loads(await process.stdout.readline())
    raise UserError(title="The rendezvous did not start", advice="Run “kafila rendezvous” by itself to see why.")


# The relay


async def _measure_relay(server: psutil.Process, at: RendezvousAt, effort: Effort) -> RelayFigures:

    async with asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(at, tasks=tasks)
        guest = await RendezvousClient.connect(at, tasks=tasks)
        opened = await host.open_session()
        exchange, seat = await guest.call(opened.nameplate)
        exchange.hang_up()

        def measure_both() -> tuple[Cost, Delays]:
            with Sitter(opened.seat) as one, Sitter(seat) as other:
                delays = measure_delays(one, other, rounds=effort.delay_rounds)
                return measure_cost(one, other, rounds=effort.cost_rounds, relay_cpu_s=lambda: _cpu_s(server)), delays

        cost, delays = await asyncio.to_thread(measure_both)
        seats = opened.seat, seat
        over_tcp = await measure_cost_over_tcp(seats, rounds=effort.cost_rounds, relay_cpu_s=lambda: _cpu_s(server))
        for client in (guest, host):
            await client.close()
    direct, relayed = _percentiles(delays.direct_s, 1e6), _percentiles(delays.relayed_s, 1e6)
    return RelayFigures(
        payload_bytes=PAYLOAD_BYTES,
        relayed_mb=cost.payload_mb,
        lost=cost.lost,
        mb_per_s=cost.payload_mb / cost.seconds,
        cpu_s_per_mb=cost.relay_cpu_s / cost.payload_mb,
        tcp_cpu_s_per_mb=over_tcp.relay_cpu_s / over_tcp.payload_mb,
        direct_us=direct,
        relayed_us=relayed,
        added_us={name: relayed[name] - direct[name] for name in direct},
    )


# Signalling


async def _measure_signalling(
    server: psutil.Process, at: RendezvousAt, size: tuple[int, int], rest_s: float
) -> SignallingFigures:

    sessions, members = size
    here = psutil.Process()
    rss_before, cpu_before, load_before = server.memory_info().rss, _cpu_s(server), _cpu_s(here)
    async with many_sessions(at, sessions=sessions, members=members) as crowd:
        cpu_s, load_s = _cpu_s(server) - cpu_before, _cpu_s(here) - load_before
        resting_since, cpu_before = time.perf_counter(), _cpu_s(server)
        await asyncio.sleep(rest_s)
        idle_s, idle_cpu_s = time.perf_counter() - resting_since, _cpu_s(server) - cpu_before
        rss, broken = server.memory_info().rss, crowd.broken
    signed_on = crowd.signed_on
    return SignallingFigures(
        sessions=sessions,
        members=members,
        addresses=signed_on.addresses,
        all_ready_s=signed_on.all_s,
        session_s=_percentiles(signed_on.session_s, 1),
        hello_ms=_percentiles(signed_on.hello_s, 1e3),
        server_cpu_s=cpu_s,
        load_cpu_s=load_s,
        idle_s=idle_s,
        idle_cpu_percent=100 * idle_cpu_s / idle_s,
        broken=broken,
        rss_before_mb=rss_before / _MB,
        rss_mb=rss / _MB,
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _percentiles(values: Sequence[float], scale: float) -> dict[str, float]:
    ordered = sorted(values)
    return {
        f"p{percent}": scale * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else math.nan
        for percent in (50, 95)
    }
