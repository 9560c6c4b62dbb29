"""What is the same for every use of MLX: how it starts and ends, and which types it computes in.

Import this on the MLX thread only.
"""

import gc
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, make_prompt_cache
from mlx_lm.utils import maybe_set_recommended_wired_limit

from kafila.compute.cpu.chain import OwnCache
from kafila.compute.cpu.library import load
from kafila.compute.cpu.seam import Seam, keep_as_stored
from kafila.protocol.frames import Dtype

WIRE_DTYPES: dict[Dtype, mx.Dtype] = {
    Dtype.FLOAT32: mx.float32,
    Dtype.FLOAT16: mx.float16,
    Dtype.BFLOAT16: mx.bfloat16,
}


_seams: list[Seam] = []
"""The library for processors, where it is in use."""


def start() -> None:
    """Set MLX up for this process."""
    if on_cpu():
        library = load()
        if library is not None and not _seams:
            seam = Seam(library)
            seam.install()
            _seams.append(seam)
        # Every new kernel would run a C++ compiler for a second, if there is one at all; on a
        # CPU the results are equal without, bit by bit, and no slower.
        mx.disable_compile()
    # On a Mac: weights stay in memory as long as all of it fits the recommended working set.
    maybe_set_recommended_wired_limit()


def put_back() -> None:
    """Leave MLX as it was before the library took over for it."""
    while _seams:
        _seams.pop().remove()


def finish() -> None:
    """Let MLX's own threads end, or the process may abort when it exits. Nothing can be computed after it."""
    put_back()
    mx.synchronize()
    mx.clear_streams()


def reclaim() -> None:
    """Give memory that is not used any more back to the system."""
    gc.collect()  # Models and their blocks refer to one another.
    mx.clear_cache()
    for seam in _seams:
        seam.library.release()


def on_cpu() -> bool:
    """Whether MLX computes on the CPU here."""
    return mx.default_device().type == mx.DeviceType.cpu


def compute_in_native_type(model: nn.Module) -> None:
    """Give the model the floating-point type that this device computes in.

    A CPU is ten times slower in the 16-bit types than in float32; a GPU takes what is stored.
    """
    if _seams:
        keep_as_stored(model)
    elif on_cpu():
        model.set_dtype(mx.float32)


def computing() -> AbstractContextManager[None]:
    """While this is open, what is called of a model is computed at once, as quickly as is known here."""
    return _seams[0].at_work() if _seams else nullcontext()


def run_block(family: type[nn.Module], block: nn.Module, x: mx.array, *args: Any, **kwargs: Any) -> Any:
    """A block that really computes now; `family` is its class in mlx-lm."""
    if _seams:
        return _seams[0].run_block(family, block, x, args, kwargs)
    return family.__call__(block, x, *args, **kwargs)


def run_blocks(
    blocks: Sequence[tuple[type[nn.Module], nn.Module]],
    x: mx.array,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    caches: Sequence[Any],
) -> mx.array | None:
    """Blocks that follow one another, with their classes and caches, at once; None where they run one by one.

    `args` and `kwargs` are what the model calls the first of them with.
    """
    return _seams[0].run_blocks(blocks, x, args, kwargs, caches) if _seams else None


def new_caches(model: nn.Module) -> list[Any]:
    """An empty cache of each block, as this device computes with it."""
    return [new_cache() if type(cache) is KVCache else cache for cache in make_prompt_cache(model)]


def new_cache() -> KVCache:
    """An empty cache of a block that attends to everything before."""
    return OwnCache() if _seams else KVCache()


def seam() -> Seam | None:
    """The library for processors, where it computes here."""
    return _seams[0] if _seams else None


def named_arrays(module: nn.Module) -> dict[str, mx.array]:
    """A module's parameters by their dotted names."""
    return dict(tree_flatten(module.parameters()))


def to_bytes(array: mx.array) -> bytes:
    """An evaluated array's elements, row by row, as this (little-endian) machine has them."""
    return bytes(memoryview(array))


def from_bytes(data: bytes, dtype: Dtype, hidden: int) -> mx.array:
    """Rows of hidden states (1, rows, hidden) from their bytes."""
    return mx.array(memoryview(data)).view(WIRE_DTYPES[dtype]).reshape(1, -1, hidden)


def wire_dtype(array: mx.array) -> Dtype:
    """How the array's element type is called on the wire."""
    for wire, dtype in WIRE_DTYPES.items():
        if array.dtype == dtype:
            return wire
    message = f"hidden states of type {array.dtype}"
    raise ValueError(message)
