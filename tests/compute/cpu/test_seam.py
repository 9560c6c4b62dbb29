"""mlx-lm's families compute through the library as they do with plain MLX, and MLX is left as it was."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.on_mlx import write_tiny
from kafila.compute.cpu.library import Library
from kafila.compute.formats import Quantisation, StoredFormat
from kafila.compute.mlx_thread import MlxThread
from kafila.weights.families import FAMILIES

pytestmark = [pytest.mark.mlx, pytest.mark.usefixtures("library")]

PLAIN = {"llama", "mistral", "qwen2", "qwen3", "seed_oss"}


def families() -> Any:
    """On the MLX thread."""
    from helpers import cpu_families  # noqa: PLC0415

    return cpu_families


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_family_answers_as_with_plain_mlx(thread: MlxThread, tmp_path: Path, family: str) -> None:
    folder = await thread.run(write_tiny, tmp_path / "model", family=family)
    parts, distance = await thread.run(lambda: families().parting(folder))
    assert not parts
    assert distance < 1e-3


@pytest.mark.parametrize("family", ["llama", "qwen3_moe", "gpt_oss", "gemma3", "deepseek_v3"])
@pytest.mark.parametrize("bits", [4, 8])
async def test_quantised_too(thread: MlxThread, tmp_path: Path, family: str, bits: int) -> None:
    folder = await thread.run(write_tiny, tmp_path / "model", family=family, bits=bits)
    parts, distance = await thread.run(lambda: families().parting(folder))
    assert not parts
    assert distance < 1e-3


@pytest.mark.parametrize("family", sorted(PLAIN | {"gemma2", "qwen3_moe"}))
async def test_plain_blocks_are_known(thread: MlxThread, tmp_path: Path, family: str) -> None:
    folder = await thread.run(write_tiny, tmp_path / "model", family=family)
    assert await thread.run(lambda: families().is_plain(folder)) == (family in PLAIN)


async def test_a_stage_of_plain_blocks_is_one_call(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(write_tiny, tmp_path / "model", bits=4)
    calls, alike = await thread.run(lambda: families().calls_of_a_stage(folder))
    assert calls == 301
    assert alike


@pytest.mark.parametrize(
    "form",
    [
        StoredFormat(quantisation=Quantisation(bits=4, group=64), element_bytes=2),
        StoredFormat(quantisation=Quantisation(bits=8, group=32), element_bytes=4),
        StoredFormat(quantisation=None, element_bytes=2),
    ],
    ids=["4 bits", "8 bits", "16 bits"],
)
async def test_what_is_measured_is_what_will_compute(thread: MlxThread, form: StoredFormat) -> None:
    rows = await thread.run(lambda: families().rows_of_timed_blocks(form))
    assert set(rows) == {1, 32}
    assert rows == sorted(rows)


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("head", ["tied", "its own"])
@pytest.mark.parametrize("bits", [None, 4, 8])
async def test_large_weights_stay_as_they_are_stored(
    thread: MlxThread, tmp_path: Path, family: str, head: str, bits: int | None
) -> None:
    how = {"family": family, "bits": bits, "tie_word_embeddings": head == "tied"}
    folder = await thread.run(write_tiny, tmp_path / "model", **how)
    await thread.run(lambda: families().make_bfloat16(folder))
    kinds = await thread.run(lambda: families().kinds_of_parameters(folder))
    assert kinds == {"large": {"mlx.core.bfloat16"}, "other": {"mlx.core.float32"}}
    parts, distance = await thread.run(lambda: families().parting(folder))
    assert not parts
    assert distance < 1e-3


def test_after_the_end_mlx_is_as_it_was(library: Library, on_thread: Callable[..., bool]) -> None:
    assert library.kernels
    assert on_thread(lambda: families().are_back_after_the_end())
