"""`kafila bench cpu`: what a processor without a graphics chip does, with plain MLX and with the library."""

import argparse
import asyncio
import json
import math
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import msgspec

from kafila.domain.errors import UserError

if TYPE_CHECKING:
    from kafila.compute.cpu.figures import Bench

_ROWS = {"mlx": "plain MLX", "library": "library", "llama_cpp": "llama.cpp"}


def add_cpu(
    bench: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    parents: Sequence[argparse.ArgumentParser],
) -> None:
    """Add the command to `kafila bench`'s."""
    cpu = bench.add_parser(
        "cpu",
        parents=list(parents),
        help="compute on the processor, with plain MLX and with the library that is quick there",
    )
    cpu.add_argument("--json", action="store_true", help="one JSON object on stdout")
    cpu.set_defaults(run=run_cpu)


def run_cpu(arguments: argparse.Namespace) -> int:
    """Measure, and print the figures."""
    bench = asyncio.run(_measure(verbose=not arguments.json))
    print(json.dumps(as_json(bench)) if arguments.json else "\n".join(draw(bench)))
    return 0


async def _measure(*, verbose: bool) -> "Bench":
    from kafila.cli.compose import DEMO_FOLDER
    from kafila.compute.demo_model import make_demo_model
    from kafila.compute.mlx_thread import MlxThread
    from kafila.engine.settings import Folders

    folders = Folders.of(None)
    thread = MlxThread(folders.models.parent / "kernels")
    try:
        demo = await make_demo_model(thread, folders.models / DEMO_FOLDER)
        return await thread.run(_measure_there, demo, verbose)
    finally:
        await thread.close()


def _measure_there(demo: Any, verbose: bool) -> "Bench":  # noqa: FBT001  # runs on the MLX thread
    from kafila.compute.demo_model import packaged_weights

    say = _say if verbose else _say_nothing
    bench = import_module("kafila.compute.cpu.benchmark").measure_cpu(demo, packaged_weights(), say)
    if bench is None:
        raise UserError(
            title="There is nothing to compare plain MLX with",
            advice="Run “packaging/dev setup” where a C compiler is installed: it builds the library for processors.",
        )
    return bench


def _say(part: str) -> None:
    print(f"… {part}", file=sys.stderr, flush=True)


def _say_nothing(_part: str) -> None:
    """Where only the result is wanted."""


def draw(bench: "Bench") -> list[str]:
    """The figures as a table."""
    lines = [
        f"{bench.kernels} on {bench.threads} threads; memory is read at {bench.memory_read_gb_s:.1f} GB/s.",
        "",
        "Demo model, tokens a second        one      four together   prompt of 128",
    ]
    lines += [
        f"  {_ROWS[name]:29}{rates.decode1:10.1f}{_or_dash(rates.decode4):>14}{rates.prefill128:16.1f}"
        for name, rates in bench.demo.items()
    ]
    blocks = {
        "Block of an 8B model, 4 bits": bench.block_8b_q4,
        "Block of an 8B model, 8 bits": bench.block_8b_q8,
        "Block of 128 experts, 4 bits": bench.block_moe_q4,
    }
    for title, times in blocks.items():
        lines += ["", f"{title}, ms            one      four together   prompt of 128      GB/s"]
        lines += [
            f"  {_ROWS[name]:29}{t.decode1_ms:10.1f}{t.decode4_ms:14.1f}{t.prefill128_ms:16.0f}{t.decode1_gb_s:12.1f}"
            for name, t in times.items()
        ]
    pauses = ", ".join(f"{_ROWS[name]} {pause:.1f} ms" for name, pause in bench.longest_pause_ms.items())
    return [*lines, "", f"Longest pause of another thread while the demo model decodes: {pauses}"]


def as_json(bench: "Bench") -> dict[str, Any]:
    """The figures for other programs."""
    return _rounded(msgspec.to_builtins(bench))


def _or_dash(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def _rounded(value: Any) -> Any:
    """To three digits behind the point; what was not measured as null."""
    if isinstance(value, Mapping):
        return {key: _rounded(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 3)
    return value
