"""`kafila bench relay`: what a rendezvous costs whoever runs one, and whoever goes through it.

The rendezvous is a process of its own, started as `kafila rendezvous`; the load comes from this one.
"""

import argparse
import asyncio
import contextlib
import json
import math
import platform
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import psutil

from kafila.cli.program import program
from kafila.domain.errors import UserError
from kafila.engine.faults import first_cause

if TYPE_CHECKING:
    from kafila.network.relay_cost import Cost, Delays
    from kafila.protocol.rendezvous_address import RendezvousAt
SESSIONS, MEMBERS = 50, 4
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


def add_relay(
    bench: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    parents: Sequence[argparse.ArgumentParser],
) -> None:
    """Add the command to `kafila bench`'s."""
    relay = bench.add_parser(
        "relay",
        parents=list(parents),
        help="what a rendezvous costs: processor, delay and memory, with many sessions",
    )
    relay.add_argument("--sessions", type=_sessions, default=SESSIONS, metavar="N", help=f"sessions ({SESSIONS})")
    relay.add_argument("--members", type=_members, default=MEMBERS, metavar="M", help=f"members of each ({MEMBERS})")
    relay.add_argument("--json", action="store_true", help="one JSON object on stdout")
    relay.set_defaults(run=run_relay)


def _sessions(text: str) -> int:
    return _at_least(text, 1)


def _members(text: str) -> int:
    return _at_least(text, 2)


def _at_least(text: str, least: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        message = f"“{text}” is not a number from {least} on"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def run_relay(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    try:
        figures = asyncio.run(measure(sessions=arguments.sessions, members=arguments.members))
    except BaseExceptionGroup as group:
        raise first_cause(group) from None
    print(json.dumps(msgspec.to_builtins(figures)) if arguments.json else "\n".join(draw(figures)))
    return 0


async def measure(*, sessions: int, members: int, effort: Effort | None = None) -> Figures:
    """A whole run. Raises UserError."""
    from kafila.network.rendezvous_load import sources_for
    from kafila.protocol.rendezvous_limits import Limits

    effort = effort or Effort()
    sources_for(sessions, members, Limits())
    _allow_connections(sessions * members)
    async with _rendezvous() as (server, at):
        relay = await _measure_relay(server, at, effort)
        signalling = await _measure_signalling(server, at, (sessions, members), effort.idle_s)
    return Figures(
        machine=f"{platform.system()} on {platform.machine()}",
        cores=psutil.cpu_count() or 1,
        relay=relay,
        signalling=signalling,
    )


def _allow_connections(connections: int) -> None:
    from kafila.network.rendezvous_load import SPARE_FILES
    from kafila.network.rendezvous_server.files import allow_files

    allowed = allow_files(connections + SPARE_FILES)
    if allowed < connections + SPARE_FILES:
        raise UserError(
            title=f"This system lets one program have {allowed} files open, and {connections} members take as many",
            advice="Raise the limit (“ulimit -Hn” shows it), or measure fewer sessions.",
        )


@asynccontextmanager
async def _rendezvous() -> "AsyncGenerator[tuple[psutil.Process, RendezvousAt]]":
    """One that runs until the end: its process, and where it listens."""
    from kafila.protocol.links import Address
    from kafila.protocol.rendezvous_address import RendezvousAt
    from kafila.protocol.trust import Pinned

    process = await asyncio.create_subprocess_exec(
        *program(), "rendezvous", "--listen", "127.0.0.1:0", "--json", stdin=DEVNULL, stdout=PIPE
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


async def _measure_relay(server: psutil.Process, at: "RendezvousAt", effort: Effort) -> RelayFigures:
    from kafila.network.relay_cost import PAYLOAD_BYTES, Sitter, measure_cost, measure_delays
    from kafila.network.rendezvous_client import RendezvousClient

    async with asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(at, tasks=tasks)
        guest = await RendezvousClient.connect(at, tasks=tasks)
        opened = await host.open_session()
        exchange, seat = await guest.call(opened.nameplate)
        exchange.hang_up()

        def measure_both() -> "tuple[Cost, Delays]":
            with Sitter(opened.seat) as one, Sitter(seat) as other:
                delays = measure_delays(one, other, rounds=effort.delay_rounds)
                return measure_cost(one, other, rounds=effort.cost_rounds, relay_cpu_s=lambda: _cpu_s(server)), delays

        cost, delays = await asyncio.to_thread(measure_both)
        for client in (guest, host):
            await client.close()
    direct, relayed = _percentiles(delays.direct_s, 1e6), _percentiles(delays.relayed_s, 1e6)
    return RelayFigures(
        payload_bytes=PAYLOAD_BYTES,
        relayed_mb=cost.payload_mb,
        lost=cost.lost,
        mb_per_s=cost.payload_mb / cost.seconds,
        cpu_s_per_mb=cost.relay_cpu_s / cost.payload_mb,
        direct_us=direct,
        relayed_us=relayed,
        added_us={name: relayed[name] - direct[name] for name in direct},
    )


# Signalling


async def _measure_signalling(
    server: psutil.Process, at: "RendezvousAt", size: tuple[int, int], rest_s: float
) -> SignallingFigures:
    from kafila.network.rendezvous_load import many_sessions

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


# What is shown


def draw(figures: Figures) -> list[str]:
    """The figures as a table."""
    relay, signalling = figures.relay, figures.signalling
    rows = [
        ("The relay’s processor time", f"{1e3 * relay.cpu_s_per_mb:.1f} ms/MB"),
        ("through it, both ways together", f"{relay.mb_per_s:.0f} MB/s, {relay.lost} lost"),
        *(
            (f"One way, {name}", f"{delays['p50']:.0f} µs, 95 % under {delays['p95']:.0f} µs")
            for name, delays in (
                ("directly", relay.direct_us),
                ("relayed", relay.relayed_us),
                ("added by the relay", relay.added_us),
            )
        ),
    ]
    more = [
        ("All registered, greeted and seated", f"{signalling.all_ready_s:.1f} s"),
        ("one session of these", _spread(signalling.session_s, "s")),
        ("a hello to the host and its answer", _spread(signalling.hello_ms, "ms")),
        (
            "the rendezvous’s processor time",
            f"{signalling.server_cpu_s:.1f} s (the load’s: {signalling.load_cpu_s:.1f} s)",
        ),
        ("Idle afterwards: processor", f"{signalling.idle_cpu_percent:.1f} % of a core, {signalling.broken} lost"),
        ("memory", f"{signalling.rss_mb:.0f} MB (before: {signalling.rss_before_mb:.0f} MB)"),
    ]
    return [
        f"{figures.machine}, {figures.cores} cores; the rendezvous is one process, the load another.",
        "",
        f"Relay, datagrams of {relay.payload_bytes} bytes, {relay.relayed_mb:.0f} MB",
        *_aligned(rows),
        "",
        f"{signalling.sessions} sessions of {signalling.members}, from {signalling.addresses} addresses",
        *_aligned(more),
    ]


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"  {name:38}{value}" for name, value in rows]


def _spread(values: dict[str, float], unit: str) -> str:
    return f"{_short(values['p50'])} {unit}, 95 % under {_short(values['p95'])} {unit}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
