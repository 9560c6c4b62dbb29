"""`kafila bench relay`: what a rendezvous costs whoever runs one, and whoever goes through it.

The rendezvous is a process of its own, started as `kafila rendezvous`; the load comes from this one.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kafila.cli.arguments import at_least
from kafila.cli.program import program
from kafila.engine.faults import first_cause

if TYPE_CHECKING:
    from kafila.network.bench.rendezvous import Figures

SESSIONS, MEMBERS = 50, 4


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
    relay.add_argument("--sessions", type=at_least(1), default=SESSIONS, metavar="N", help=f"sessions ({SESSIONS})")
    relay.add_argument("--members", type=at_least(2), default=MEMBERS, metavar="M", help=f"members of each ({MEMBERS})")
    relay.add_argument("--json", action="store_true", help="one JSON object on stdout")
    relay.set_defaults(run=run_relay)


def run_relay(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    try:
        figures = asyncio.run(_measure(arguments.sessions, arguments.members))
    except BaseExceptionGroup as group:
        raise first_cause(group) from None
    print(json.dumps(msgspec.to_builtins(figures)) if arguments.json else "\n".join(draw(figures)))
    return 0


async def _measure(sessions: int, members: int) -> "Figures":
    from kafila.network.bench.rendezvous import measure_rendezvous

    return await measure_rendezvous([*program(), "rendezvous"], sessions=sessions, members=members)


def draw(figures: "Figures") -> list[str]:
    """The figures as a table."""
    relay, signalling = figures.relay, figures.signalling
    rows = [
        ("The relay’s processor time", f"{1e3 * relay.cpu_s_per_mb:.1f} ms/MB"),
        ("the same over TCP and TLS", f"{1e3 * relay.tcp_cpu_s_per_mb:.1f} ms/MB"),
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
