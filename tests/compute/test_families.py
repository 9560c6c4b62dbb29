"""Every family on the list can be divided, and costs what is reckoned for it.

This guards each upgrade of mlx-lm: a stage relies on how its models are written.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from helpers.on_mlx import differing_steps, kept_bytes, write_tiny
from kafila.compute.mlx_thread import MlxThread
from kafila.weights.families import FAMILIES, SHORTEST_CONTEXT
from kafila.weights.model_folder import read_model
from kafila.weights.source import ModelSource
from kafila.weights.store import ModelStore

pytestmark = pytest.mark.mlx

CUTS = (0, 1, 3, 4)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_family_in_pieces_is_the_whole_bit_for_bit(thread: MlxThread, tmp_path: Path, family: str) -> None:
    whole = await thread.run(write_tiny, tmp_path / "whole", family=family)
    spec = read_model(whole)
    assert spec.blocks == 4
    source = ModelSource(whole)

    async def read(file: str, start: int, end: int) -> bytes:
        return source.read(file, start, end)

    shares = [
        await ModelStore(tmp_path / str(first)).folder_for(
            spec, first=first, end=end, head=first == 0, read=read, progress=lambda _done, _total: None
        )
        for first, end in pairwise(CUTS)
    ]
    assert await thread.run(differing_steps, whole, shares, CUTS) == []


@pytest.mark.parametrize("family", FAMILIES)
async def test_caches_take_what_is_reckoned(thread: MlxThread, tmp_path: Path, family: str) -> None:
    whole = await thread.run(write_tiny, tmp_path / "whole", family=family)
    kept = await thread.run(kept_bytes, whole)
    for block, reckoned in enumerate(read_model(whole).kv_bytes_per_token):
        if FAMILIES[family].recurrence and block % 2 == 0:
            # A state that does not grow, counted over the shortest context.
            assert (reckoned - 1) * SHORTEST_CONTEXT < kept[block] <= reckoned * SHORTEST_CONTEXT
        else:
            # Windows take less, and are counted in full.
            assert kept[block] == 256 * reckoned or kept[block] < 32 * reckoned


@pytest.mark.parametrize("family", ["llama", "qwen3_moe", "gpt_oss", "qwen3_next", "deepseek_v3"])
@pytest.mark.parametrize("bits", [4, 8])
async def test_quantised_families_too(thread: MlxThread, tmp_path: Path, family: str, bits: int) -> None:
    whole = await thread.run(write_tiny, tmp_path / "whole", family=family, bits=bits)
    assert await thread.run(differing_steps, whole, [whole] * 3, CUTS) == []


def test_every_family_has_a_tiny_model() -> None:
    source = Path(__file__).parents[1] / "helpers" / "tiny_models.py"
    names = {line.split('"')[1] for line in source.read_text().splitlines() if line.startswith('    "')}
    assert set(FAMILIES) <= names
