"""`kafila bench cpu`: how its figures are shown. What it measures is not for a test to judge."""

import pytest

from kafila.cli import bench_cpu
from kafila.cli.main import main
from kafila.compute.cpu.figures import Bench, BlockTimes, Rates

TIMES = {
    "mlx": BlockTimes(decode1_ms=166.0, decode4_ms=697.0, prefill128_ms=25559.0, decode1_gb_s=0.8),
    "library": BlockTimes(decode1_ms=11.6, decode4_ms=24.4, prefill128_ms=730.0, decode1_gb_s=11.7),
}
BENCH = Bench(
    kernels="AVX2",
    threads=2,
    memory_read_gb_s=12.5,
    demo={
        "mlx": Rates(decode1=6.2, decode4=6.7, prefill128=6.8),
        "library": Rates(decode1=60.5, decode4=150.0, prefill128=250.0),
        "llama_cpp": Rates(decode1=88.0, decode4=float("nan"), prefill128=250.0),
    },
    block_8b_q4=TIMES,
    block_8b_q8=TIMES,
    block_moe_q4=TIMES,
    longest_pause_ms={"mlx": 6.4, "library": 4.8},
)


def test_the_table_has_every_figure_once() -> None:
    table = "\n".join(bench_cpu.draw(BENCH))
    assert table.startswith("AVX2 on 2 threads; memory is read at 12.5 GB/s.")
    assert [row.split() for row in bench_cpu.draw(BENCH)[3:6]] == [
        ["plain", "MLX", "6.2", "6.7", "6.8"],
        ["library", "60.5", "150.0", "250.0"],
        ["llama.cpp", "88.0", "–", "250.0"],
    ]
    assert table.count("166.0") == 3
    assert table.endswith("plain MLX 6.4 ms, library 4.8 ms")


def test_as_json_what_was_not_measured_is_null() -> None:
    rounded = bench_cpu.as_json(BENCH)
    assert rounded["demo"]["llama_cpp"] == {"decode1": 88.0, "decode4": None, "prefill128": 250.0}
    assert set(rounded) >= {"memory_read_gb_s", "demo", "block_8b_q4", "block_8b_q8"}
    assert set(rounded["block_8b_q4"]["library"]) == {"decode1_ms", "decode4_ms", "prefill128_ms", "decode1_gb_s"}


def test_the_command_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "cpu", "--help"])
    assert "--json" in capsys.readouterr().out
