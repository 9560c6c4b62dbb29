"""A model in three pieces beside the whole one. Import this on the MLX thread only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

from kafila.compute.backend import computing
from kafila.compute.loading import load_stage
from kafila.compute.part import Part

STEPS = (19, 1, 1, 5, 1)
"""Tokens of each call: a prompt, decode, a few tokens at once as of a chunk, decode."""


def differing_steps(whole: Path, shares: Sequence[Path], cuts: Sequence[int]) -> list[int]:
    """The steps after which the pieces' logits were not, bit by bit, the whole model's."""
    model, _ = load_model(whole)
    caches = make_prompt_cache(model)
    stages = [
        load_stage(share, part_of(first, end), lambda _done, _total: None, name="tiny")[0]
        for share, first, end in zip(shares, cuts[:-1], cuts[1:], strict=True)
    ]
    held = [stage.new_caches() for stage in stages]
    position, differing = 0, list[int]()
    for number, rows in enumerate(STEPS):
        ids = mx.random.randint(0, 300, (1, rows))
        with computing():
            expected = model(ids, cache=caches)
        hidden = stages[0].embed(ids, position)
        for stage, own in zip(stages, held, strict=True):
            hidden = stage.run(hidden, own, position)
            mx.eval(hidden)
        logits = stages[0].unembed(hidden, position)
        if not mx.array_equal(logits, expected).item():
            differing.append(number)
        position += rows
    return differing


def kept_bytes(whole: Path) -> list[int]:
    """Bytes that each block's cache takes once it has grown the first time, by 256 tokens."""
    model, _ = load_model(whole)
    caches = make_prompt_cache(model)
    mx.eval(model(mx.zeros((1, 3), mx.int32), cache=caches), [cache.state for cache in caches])
    return [_array_bytes(cache.state) for cache in caches]


def _array_bytes(state: Any) -> int:
    leaves: list[object] = [leaf for _, leaf in tree_flatten(state)]
    return sum(leaf.nbytes for leaf in leaves if isinstance(leaf, mx.array))


def part_of(first: int, end: int) -> Part:
    """A piece; the first one is the head."""
    return Part(
        first=first,
        end=end,
        head=first == 0,
        last=False,
        epoch=1,
        tiling=bytes(8),
        context=512,
        concurrency=1,
    )
