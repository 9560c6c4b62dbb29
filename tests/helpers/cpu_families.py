"""Models of all families with the library and with plain MLX, in one process. Import this on the MLX thread only."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import load_model

from kafila.compute import backend
from kafila.compute.backend import compute_in_native_type, computing
from kafila.compute.block_timing import time_block
from kafila.compute.cpu.blocks import plain_block
from kafila.compute.formats import StoredFormat
from kafila.compute.stage import Stage

TOKENS = 8
CLOSE = 1e-3


def parting(folder: Path) -> tuple[bool, float]:
    """Whether greedy tokens part from plain MLX's where they may not, and how far logits are apart.

    The distance is a share of their size, over the tokens up to the first that differs.
    """
    plain_model, _ = load_model(folder, lazy=True)
    plain_model.set_dtype(mx.float32)
    model, _ = load_model(folder, lazy=True)
    compute_in_native_type(model)
    ids = mx.array([[3, 141, 59, 26, 53, 58, 97, 93, 23, 84, 62, 64]])
    plain, library = make_prompt_cache(model), make_prompt_cache(model)
    furthest = 0.0
    for _ in range(TOKENS):
        right = np.array(plain_model(ids, cache=plain)[0, -1])
        with computing():
            found = np.array(model(ids, cache=library)[0, -1])
        furthest = max(furthest, float(np.abs(found - right).max() / np.abs(right).max()))
        if found.argmax() != right.argmax():
            second, first = np.sort(right)[-2:]
            return bool(first - second > CLOSE), furthest
        ids = mx.array([[int(right.argmax())]])
    return False, furthest


def make_bfloat16(folder: Path) -> None:
    """Write a model's weights anew, all numbers in 16 bits."""
    file = str(folder / "model.safetensors")
    arrays = {
        name: array.astype(mx.bfloat16) if mx.issubdtype(array.dtype, mx.floating) else array
        for name, array in mx.load(file).items()
    }
    mx.eval(arrays)
    mx.save_safetensors(file, arrays, metadata={"format": "mlx"})


def kinds_of_parameters(folder: Path) -> dict[str, set[str]]:
    """The types of weights of linear layers and embeddings, and of everything else, once a model is made ready."""
    model, _ = load_model(folder, lazy=True)
    compute_in_native_type(model)
    found: dict[str, set[str]] = {"large": set(), "other": set()}
    large = nn.Linear, nn.QuantizedLinear, nn.Embedding, nn.QuantizedEmbedding
    for _, module in model.named_modules():
        kind = "large" if type(module) in large else "other"
        for name, value in module.items():
            if isinstance(value, mx.array) and mx.issubdtype(value.dtype, mx.floating) and name != "bias":
                found[kind].add(str(value.dtype))
    return found


def is_plain(folder: Path) -> bool:
    """Whether a model's first block goes through the library whole."""
    model, _ = load_model(folder)
    compute_in_native_type(model)
    return plain_block(model.layers[0], type(model.layers[0])) is not None


def calls_of_a_stage(folder: Path) -> tuple[int, bool]:
    """How often a stage calls the library for its blocks, for a prompt and 300 tokens one by one; and whether
    the states behind the last are bit by bit those of blocks that were called one after another.
    """
    model, _ = load_model(folder, lazy=True)
    compute_in_native_type(model)
    blocks = [(type(block), block) for block in model.layers]
    stage = Stage(model, first=0, end=len(blocks))
    caches: list[Any] = list(stage.new_caches())
    others = [KVCache() for _ in blocks]
    whole: Any = model
    alike: list[bool] = []
    with _watched() as calls:
        for step in range(301):
            x = mx.random.normal((1, 20 if step == 0 else 1, whole.args.hidden_size))
            found = stage.run(x, caches, caches[0].offset)
            for (family, block), cache in zip(blocks, others, strict=True):
                x = backend.run_block(family, block, x, "causal" if step == 0 else None, cache)
            alike.append(bool(mx.array_equal(found, x).item()))
    return len(calls), all(alike)


def rows_of_timed_blocks(form: StoredFormat) -> list[int]:
    """How many rows the library computed each time, while a block of that format was timed."""
    with _watched() as calls:
        time_block(hidden=128, weights=1 << 18, form=form)
    return calls


@contextmanager
def _watched() -> Generator[list[int]]:
    """How many rows of a sequence each call of the library for whole blocks had."""
    seam = backend.seam()
    assert seam is not None
    library, calls = seam.library, list[int]()
    before = library.run_blocks

    def counted(steps: Any, count: int, rows: Any, *places: int) -> int:
        calls.append(rows._obj.length)  # noqa: SLF001  # what ctypes.byref refers to
        return before(steps, count, rows, *places)

    library.run_blocks = counted
    try:
        yield calls
    finally:
        library.run_blocks = before


def stand_ins() -> list[Any]:
    """The functions that the library stands in for, as they are now."""
    core: Any = mx
    products = [core.quantized_matmul, core.gather_qmm, core.gather_mm]
    return [*products, mx.fast.rms_norm, mx.fast.rope, nn.silu, nn.Linear.__call__]


def are_back_after_the_end() -> bool:
    """Whether the end of the seam leaves MLX as it was; and a new one works."""
    inside = stand_ins()
    backend.put_back()
    outside = stand_ins()
    backend.start()
    return all(a is not b for a, b in zip(inside, outside, strict=True)) and backend.seam() is not None
