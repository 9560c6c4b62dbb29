"""`kafila bench cpu` measures what it says, here with models so small that it takes a moment."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafila.cli.bench_cpu import as_json, draw
from kafila.compute.cpu.library import Library

pytestmark = pytest.mark.mlx

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
SMALL_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
RATES = {"decode1", "decode4", "prefill128"}
TIMES = {"decode1_ms", "decode4_ms", "prefill128_ms", "decode1_gb_s"}


def test_everything_is_measured_with_both(
    library: Library, on_thread: Callable[..., Any], tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    bench = on_thread(partial(measure, monkeypatch, tiny, said.append))
    found = json.loads(json.dumps(as_json(bench)))
    assert found.keys() == {
        "kernels",
        "threads",
        "memory_read_gb_s",
        "demo",
        "block_8b_q4",
        "block_8b_q8",
        "block_moe_q4",
        "longest_pause_ms",
    }
    assert found["longest_pause_ms"].keys() == {"mlx", "library"}
    assert min(found["longest_pause_ms"].values()) > 0
    assert (found["kernels"], found["threads"]) == (library.kernels, library.threads)
    assert found["memory_read_gb_s"] > 0
    assert found["demo"].keys() == {"mlx", "library"}
    assert all(rates.keys() == RATES and min(rates.values()) > 0 for rates in found["demo"].values())
    for name in ("block_8b_q4", "block_8b_q8", "block_moe_q4"):
        assert found[name].keys() == {"mlx", "library"}
        assert all(times.keys() == TIMES and min(times.values()) > 0 for times in found[name].values())
    assert len(said) == 1 + 2 + 3 * 2
    assert len(draw(bench)) == 19


def measure(monkeypatch: pytest.MonkeyPatch, demo: Path, say: Callable[[str], None]) -> Any:
    """On the MLX thread."""
    from kafila.compute.cpu import benchmark  # noqa: PLC0415

    monkeypatch.setattr(benchmark, "LARGE", SMALL)
    monkeypatch.setattr(benchmark, "MIXTURE", SMALL | SMALL_EXPERTS)
    monkeypatch.setattr(benchmark, "last_level_cache", lambda: 1 << 16)
    monkeypatch.setattr(benchmark, "LONGEST_S", 0.01)
    monkeypatch.setattr(benchmark, "TICKING_S", 0.2)
    return benchmark.measure_cpu(demo, None, say)
