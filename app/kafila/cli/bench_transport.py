"""`kafila bench transport`: what a link does on made-up lines, with several sizes of datagrams and controllers."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from kafila.cli.program import program

if TYPE_CHECKING:
    from kafila.network.bench.transport import Rate, Results


def add_transport(
    bench: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    parents: Sequence[argparse.ArgumentParser],
) -> None:
    """Add the command to `kafila bench`'s."""
    transport = bench.add_parser(
        "transport",
        parents=list(parents),
        help="links on this computer, over a line with delay and loss: speed, CPU, decode beside prefill",
    )
    transport.add_argument("--seconds", type=float, default=1.0, metavar="S", help="for each transfer (1)")
    transport.add_argument("--json", action="store_true", help="one JSON object on stdout")
    transport.add_argument("--part", choices=["far", "line"], help=argparse.SUPPRESS)
    transport.set_defaults(run=run_transport)


def run_transport(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures; or be one of the processes that it takes."""
    if arguments.part is not None:
        _serve(arguments.part)
        return 0
    results = asyncio.run(_measure(arguments.seconds, _say_nothing if arguments.json else _say))
    print(json.dumps(msgspec.to_builtins(results)) if arguments.json else "\n".join(draw(results)))
    return 0


def _serve(part: str) -> None:
    from kafila.network.bench.parts import serve_far_ends, serve_lines

    asyncio.run(serve_far_ends() if part == "far" else serve_lines())


async def _measure(seconds: float, tell: Callable[[str], None]) -> "Results":
    from kafila.network.bench.transport import measure_transport, open_bench

    command = [*program(), "bench", "transport", "--part"]
    async with open_bench([*command, "far"], [*command, "line"]) as bench:
        return await measure_transport(bench, seconds, tell)


def _say(part: str) -> None:
    print(f"… {part}", file=sys.stderr, flush=True)


def _say_nothing(_part: str) -> None:
    """Where only the result is wanted."""


def draw(results: "Results") -> list[str]:
    """The figures as tables."""
    lines = [
        "Straight over loopback              MB/s   CPU ms/MB: sender   receiver",
        *(_row(f"datagrams of {rate.transport.datagram_bytes} bytes", rate) for rate in results.sizes),
        "",
        "50 Mbit/s, 100 ms of queue          MB/s   CPU ms/MB: sender   receiver",
    ]
    for rate in results.rates:
        if rate.line is not None:
            name = f"{rate.transport.congestion_control}, {rate.line.rtt_ms:.0f} ms, {rate.line.loss:.0%} lost"
            lines.append(_row(name, rate))
    lines += [
        "",
        "4 kB of decode, there and back, ms     idle p50     p95   beside 16 MB p50     p95   prefill s",
    ]
    for wait in results.waits:
        lines.append(
            f"  {wait.transport.congestion_control + f', {wait.line.rtt_ms:.0f} ms':37}{wait.idle_p50_ms:8.0f}"
            f"{wait.idle_p95_ms:8.0f}{wait.beside_p50_ms:19.0f}{wait.beside_p95_ms:8.0f}{wait.prefill_s:12.1f}"
        )
    return lines


def _row(name: str, rate: "Rate") -> str:
    return f"  {name:32}{rate.mb_s:6.1f}{rate.sender_cpu_ms_mb:20.0f}{rate.receiver_cpu_ms_mb:11.0f}"
