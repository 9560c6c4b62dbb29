"""Plain transformer blocks in two calls of the library, before and behind their cache.

Where a token costs a few hundred microseconds a block, what Python and MLX spend between
operations is most of it. A block is plain when its class is listed here, its parts are what
these classes have by themselves, and all of it suits the library; any other is run by its own
code. Import this on the MLX thread only.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.models import llama, qwen2, qwen3, rope_utils, seed_oss

from kafila.compute.cpu.library import Activation, Block, Library, Matrix, Rope
from kafila.compute.cpu.operations import (
    Stored,
    address,
    attention,
    batch_offsets,
    check,
    describe,
    in_one_piece,
    place,
    rope_of,
)

PLAIN = (llama.TransformerBlock, qwen2.TransformerBlock, qwen3.TransformerBlock, seed_oss.TransformerBlock)
"""Classes that do: x + attention(norm(x)), then that + down(silu(gate) · up) of its norm."""

_KNOWN = "_kafila_plain"
"""Where a block keeps what was found out about it; the block's own code never looks there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBlock:
    """A block as the library sees it. The arrays are the block's own, kept alive."""

    structure: Block
    arrays: tuple[mx.array, ...]
    scale: float
    heads: int
    key_heads: int
    width: int
    hidden: int

    def run(self, library: Library, x: mx.array, mask: Any, cache: Any) -> mx.array | None:
        """The block's output; None where its own code has to do it, and nothing was done yet."""
        if x.dtype != mx.float32 or x.ndim != 3 or not x.size or hasattr(cache, "bits"):
            return None
        if isinstance(mask, mx.array) and mask.dtype not in (mx.bool_, mx.float32):
            return None
        batch, length, _ = x.shape
        offsets = batch_offsets(0 if cache is None else cache.offset, batch)
        if offsets is None or x.shape[2] != self.hidden:
            return None
        x = in_one_piece(x)
        queries = np.empty((batch, self.heads, length, self.width), np.float32)
        keys, values = (np.empty((batch, self.key_heads, length, self.width), np.float32) for _ in range(2))
        structure = ctypes.byref(self.structure)
        check(
            library.begin_block(
                structure, address(x), batch, length, offsets, place(queries), place(keys), place(values)
            )
        )
        seen = mx.array(keys), mx.array(values)
        if cache is not None:
            seen = cache.update_and_fetch(*seen)
        return self._finish(library, x, mx.array(queries), seen, mask)

    def _finish(
        self, library: Library, x: mx.array, queries: mx.array, seen: tuple[mx.array, mx.array], mask: Any
    ) -> mx.array:
        task = attention(queries, *seen, scale=self.scale, mask=mask, sinks=None)
        if task is None:
            message = f"attention with a mask of {getattr(mask, 'shape', mask)}"
            raise ValueError(message)
        y = np.empty(x.shape, np.float32)
        check(library.finish_block(ctypes.byref(self.structure), ctypes.byref(task.structure), address(x), place(y)))
        return mx.array(y)


def plain_block(block: nn.Module, family: type) -> PlainBlock | None:
    """What the library needs of a block; None where it is not plain. Looked up once for each block."""
    known = vars(block).get(_KNOWN)
    if known is None:
        found = _look(block) if family in PLAIN else None
        known = (found,)
        vars(block)[_KNOWN] = known
    return known[0]


class _Unsuitable(Exception):  # noqa: N818  # never leaves this module
    """Something of a block that the library does not know."""


def _look(block: Any) -> PlainBlock | None:
    try:
        return _describe(block)
    except (_Unsuitable, AttributeError, KeyError):
        return None


def _describe(block: Any) -> PlainBlock:
    attention_part, mlp = block.self_attn, block.mlp
    arrays: list[mx.array] = []
    layers = {
        "query": attention_part.q_proj,
        "key": attention_part.k_proj,
        "value": attention_part.v_proj,
        "output": attention_part.o_proj,
        "gate": mlp.gate_proj,
        "up": mlp.up_proj,
        "down": mlp.down_proj,
    }
    matrices = {name: _matrix(layer, arrays) for name, layer in layers.items()}
    heads, key_heads = attention_part.n_heads, attention_part.n_kv_heads
    width = matrices["query"].rows // heads
    hidden = matrices["query"].columns
    fits = (
        matrices["key"].rows == matrices["value"].rows == key_heads * width
        and matrices["output"].columns == heads * width
        and matrices["gate"].rows == matrices["up"].rows == matrices["down"].columns
        and matrices["output"].rows == matrices["down"].rows == hidden
        and heads % key_heads == 0
    )
    rope = _rope(attention_part.rope, arrays)
    if not fits or rope.dims > width or rope.dims % 2:
        raise _Unsuitable
    head_norms = getattr(attention_part, "q_norm", None), getattr(attention_part, "k_norm", None)
    norms = [_norm(norm, arrays) for norm in (block.input_layernorm, block.post_attention_layernorm, *head_norms)]
    eps = {norm.eps for norm in (block.input_layernorm, block.post_attention_layernorm)}
    head_eps = {norm.eps for norm in head_norms if norm is not None}
    if len(eps) != 1 or len(head_eps) > 1:
        raise _Unsuitable
    return PlainBlock(
        structure=Block(
            **matrices,
            first_norm=norms[0],
            second_norm=norms[1],
            query_norm=norms[2],
            key_norm=norms[3],
            rope=rope,
            heads=heads,
            key_heads=key_heads,
            width=width,
            eps=eps.pop(),
            head_eps=head_eps.pop() if head_eps else 0,
            kind=Activation.SILU,
        ),
        arrays=tuple(arrays),
        scale=attention_part.scale,
        heads=heads,
        key_heads=key_heads,
        width=width,
        hidden=hidden,
    )


def stored_of(layer: nn.Module) -> Stored | None:
    """The weights of a linear layer; None for a layer of another kind."""
    if type(layer) is nn.Linear:
        return Stored(weight=layer["weight"])
    if type(layer) is nn.QuantizedLinear:
        return Stored(
            weight=layer["weight"],
            scales=layer["scales"],
            biases=layer.get("biases"),
            bits=layer.bits,
            group=layer.group_size,
            mode=layer.mode,
        )
    return None


def _matrix(layer: nn.Module, arrays: list[mx.array]) -> Matrix:
    stored, offset = stored_of(layer), layer.get("bias")
    matrix = None if stored is None else describe(stored, offset=offset)
    if stored is None or matrix is None:
        raise _Unsuitable
    arrays += [array for array in (stored.weight, stored.scales, stored.biases, offset) if array is not None]
    return matrix


def _norm(norm: nn.Module | None, arrays: list[mx.array]) -> int | None:
    if norm is None:
        return None
    if type(norm) is not nn.RMSNorm:
        raise _Unsuitable
    weight: mx.array = norm["weight"]
    mx.eval(weight)
    found = address(weight)
    if weight.dtype != mx.float32 or found is None:
        raise _Unsuitable
    arrays.append(weight)
    return found


def _rope(rope: Any, arrays: list[mx.array]) -> Rope:
    found = None
    if type(rope) is nn.RoPE:
        found = rope_of(dims=rope.dims, traditional=rope.traditional, base=rope.base, scale=rope.scale, periods=None)
    elif type(rope) is rope_utils.Llama3RoPE or (type(rope) is rope_utils.YarnRoPE and rope.mscale == 1.0):
        periods: mx.array = rope._freqs  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        arrays.append(periods)
        found = rope_of(dims=rope.dims, traditional=rope.traditional, base=None, scale=1.0, periods=periods)
    if found is None:
        raise _Unsuitable
    return found
