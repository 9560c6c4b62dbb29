"""Timing one transformer block of made-up weights, of a given size and format.

What a block costs depends on how many weights it has and how they are stored, hardly on what
they are. Import this on the MLX thread only.
"""

import time

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_map
from mlx_lm.models.llama import ModelArgs, TransformerBlock

from kafila.compute.backend import compute_in_native_type, named_arrays, new_cache, on_cpu, reclaim, run_block
from kafila.compute.formats import StoredFormat

DECODE_ROWS, PREFILL_ROWS = 1, 32
DECODE_RUNS, PREFILL_RUNS = 9, 3
LONGEST_S = 3.0
"""Once timing takes longer, the runs so far have to do, and prefill is timed with fewer rows."""

_HEAD = 64


def time_block(*, hidden: int, weights: int, form: StoredFormat) -> tuple[float, float]:
    """Seconds that a block of so many weights takes for one row, and for each of many."""
    try:
        width = -(-hidden // _HEAD) * _HEAD
        block = _made_up_block(width, weights, form)
        decode_s = _fastest(block, width, DECODE_ROWS, DECODE_RUNS)
        rows = max(DECODE_ROWS, min(PREFILL_ROWS, int(LONGEST_S / decode_s)))
        return decode_s, _fastest(block, width, rows, PREFILL_RUNS) / rows
    finally:
        block = None
        reclaim()


def _made_up_block(width: int, weights: int, form: StoredFormat) -> nn.Module:
    """A block of attention and a gated feed-forward part, as most families have them.

    Its weights are never random numbers in full precision: of a large model, one block of
    those would not fit.
    """
    heads = width // _HEAD
    key_value_heads = next(kv for kv in range(-(-heads // 4), heads + 1) if heads % kv == 0)
    attention = 2 * width * width + 2 * width * key_value_heads * _HEAD
    feed_forward = max(1, round((weights - attention) / (3 * width * _HEAD))) * _HEAD
    block: nn.Module = TransformerBlock(
        ModelArgs(
            model_type="llama",
            hidden_size=width,
            num_hidden_layers=1,
            intermediate_size=feed_forward,
            num_attention_heads=heads,
            num_key_value_heads=key_value_heads,
            head_dim=_HEAD,
            rms_norm_eps=1e-5,
            vocab_size=1,
        )
    )
    block.set_dtype(mx.float32 if form.element_bytes == 4 else mx.bfloat16)
    if form.quantisation is not None:
        group = min(_HEAD, form.quantisation.group)
        nn.quantize(block, group_size=group, bits=form.quantisation.bits)
    compute_in_native_type(block)
    block.update(tree_map(_filler, block.parameters()))
    mx.eval(block.parameters())
    return block


def _filler(array: mx.array) -> mx.array:
    """An array of the same shape and type, whose values are ordinary numbers."""
    value = 0x35AC53CA if array.dtype == mx.uint32 else 0.01
    return mx.full(array.shape, value, array.dtype)


def _fastest(block: nn.Module, width: int, rows: int, runs: int) -> float:
    """Seconds of the fastest of some runs; one more, before them, is not counted.

    The block is run as one of a stage is, with a cache of that kind, so that what is timed is what
    will really compute.
    """
    states = mx.full((1, rows, width), 0.01, _states_type(block))
    mask = "causal" if rows > 1 else None
    cache = new_cache()
    mx.eval(states, run_block(TransformerBlock, block, states, mask, cache))
    spans: list[float] = []
    while len(spans) < runs and sum(spans) < LONGEST_S:
        cache.trim(rows)
        started = time.perf_counter()
        mx.eval(run_block(TransformerBlock, block, states, mask, cache), cache.state)
        spans.append(time.perf_counter() - started)
    return min(spans)


def _states_type(block: nn.Module) -> mx.Dtype:
    if on_cpu():
        return mx.float32
    types = [array.dtype for array in named_arrays(block).values()]
    return next(dtype for dtype in types if mx.issubdtype(dtype, mx.floating))
