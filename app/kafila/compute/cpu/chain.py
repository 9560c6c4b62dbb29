"""Plain blocks that follow one another, all in one call of the library, each with its cache.

Nothing is asked of MLX or of Python between two blocks of a stage. In a small model that was a
third of a token's time; and whatever else the process does has fewer occasions to come between.
Import this on the MLX thread only.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import KVCache

from kafila.compute.cpu.blocks import PlainBlock
from kafila.compute.cpu.library import Library, Rows, Step
from kafila.compute.cpu.operations import address, check, in_one_piece, place


class OwnCache(KVCache):
    """mlx-lm's cache, whose arrays nothing else holds, so that the library may write into them.

    Never copy one that holds something.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: _Places | None = None

    def with_block(self, block: PlainBlock, batch: int, length: int) -> Step | None:
        """A block and this cache, with room for so many rows more; None where the cache holds something else."""
        shape = (batch, block.key_heads, self.offset + length, block.width)
        if self.keys is None or self.values is None:
            self._make_room(shape)
        elif (
            self.keys.dtype != mx.float32 or not _alike(self.keys.shape, shape) or not _alike(self.values.shape, shape)
        ):
            return None
        elif self.keys.shape[2] < shape[2]:
            self._make_room(shape)
        places = self._places()
        if places is None:
            return None
        block_at = ctypes.addressof(block.structure)
        return Step(block=block_at, keys=places.keys_at, values=places.values_at, room=places.keys.shape[2])

    def _make_room(self, shape: tuple[int, int, int, int]) -> None:
        room = -(-shape[2] // self.step) * self.step
        larger = (*shape[:2], room, shape[3])
        self.keys, self.values = _larger(self.keys, larger, self.offset), _larger(self.values, larger, self.offset)

    def _places(self) -> "_Places | None":
        """Where keys and values are, which is found out anew after each change."""
        known, keys, values = self._known, self.keys, self.values
        if known is not None and known.keys is keys and known.values is values:
            return known
        if keys is None or values is None:
            return None
        keys_at, values_at = address(keys), address(values)
        if keys_at is None or values_at is None:
            return None
        self._known = _Places(keys=keys, values=values, keys_at=keys_at, values_at=values_at)
        return self._known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    keys: mx.array
    values: mx.array
    keys_at: int
    values_at: int


def _alike(kept: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """But for how many rows there are."""
    return (*kept[:2], kept[3]) == (*shape[:2], shape[3])


def _larger(array: mx.array | None, shape: tuple[int, ...], kept: int) -> mx.array:
    larger = np.zeros(shape, np.float32)
    if array is not None:
        larger[:, :, :kept] = np.asarray(array)[:, :, :kept]
    return mx.array(larger)


def run_chain(
    library: Library, blocks: Sequence[PlainBlock], x: mx.array, mask: Any, caches: Sequence[Any]
) -> mx.array | None:
    """What comes out behind the last of the blocks; None where they have to run one by one.

    They do where a cache is none that the library may write into, and where not every row may
    look at all rows before it.
    """
    if x.dtype != mx.float32 or x.ndim != 3 or not x.size or not (mask is None or mask == "causal"):
        return None
    batch, length, hidden = x.shape
    own = [cache for cache in caches if type(cache) is OwnCache and cache.offset == caches[0].offset]
    alike = all(block.hidden == hidden and block.scale == blocks[0].scale for block in blocks)
    if len(own) != len(blocks) or not alike:
        return None
    steps = [cache.with_block(block, batch, length) for block, cache in zip(blocks, own, strict=True)]
    known = [step for step in steps if step is not None]
    if len(known) != len(steps):
        return None
    x = in_one_piece(x)
    y = np.empty(x.shape, np.float32)
    rows = Rows(batch=batch, length=length, offset=own[0].offset, scale=blocks[0].scale, causal=mask is not None)
    check(library.run_blocks((Step * len(known))(*known), len(known), ctypes.byref(rows), address(x), place(y)))
    for cache in own:
        cache.offset += length
    return mx.array(y)
