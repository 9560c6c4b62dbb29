"""The library for processors against MLX and against float64, on made-up arrays.

Import this on the MLX thread only. Each check gives back numbers or truths that a test judges.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from kafila.compute.cpu.library import Activation, Kernels, Library
from kafila.compute.cpu.operations import Operations, Stored, place, rope_of

DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Which weights to make up."""

    rows: int
    columns: int
    mode: str = "affine"
    bits: int = 4
    group: int = 64
    dtype: str = "float32"
    experts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """How far a product was from the right one, as a share of ‖x‖‖w‖, and whether rows alone gave the same."""

    error: float
    alone_is_the_same: bool


def make(weights: Weights, seed: int) -> tuple[Stored, np.ndarray[Any, Any]]:
    """Made-up weights as they are stored, and what they stand for, in float64."""
    mx.random.seed(seed)
    shape = (weights.rows, weights.columns)
    dense = mx.random.normal((weights.experts, *shape) if weights.experts else shape).astype(DTYPES[weights.dtype])
    if weights.mode == "dense":
        return Stored(weight=dense), _float64(dense)
    packed, scales, *rest = mx.quantize(dense, weights.group, weights.bits, mode=weights.mode)
    biases = rest[0] if rest else None
    stored = Stored(
        weight=packed, scales=scales, biases=biases, bits=weights.bits, group=weights.group, mode=weights.mode
    )
    if biases is not None:
        scales, biases = scales.astype(mx.float32), biases.astype(mx.float32)
    meant = mx.dequantize(packed, scales, biases, weights.group, weights.bits, mode=weights.mode, dtype=mx.float32)
    return stored, _float64(meant)


def check_product(library: Library, weights: Weights, inputs: int, seed: int) -> Product | None:
    """x @ w.T for some rows of input; None where the library leaves it to MLX."""
    stored, meant = make(weights, seed)
    operations = Operations(library)
    x = mx.random.normal((inputs, weights.columns)) * mx.exp(mx.random.normal((inputs, 1)))
    y = operations.multiply(x, stored)
    if y is None:
        return None
    alone = [operations.multiply(x[row : row + 1], stored) for row in range(inputs)]
    same = all(one is not None and mx.array_equal(one[0], y[row]).item() for row, one in enumerate(alone))
    error = np.abs(_float64(y) - _float64(x) @ meant.T)
    return Product(error=float((error / _norms(x, meant)).max()), alone_is_the_same=same)


def check_gather(library: Library, weights: Weights, pairs: tuple[int, int], seed: int) -> Product:
    """Rows of input times the experts that were chosen for each."""
    stored, meant = make(weights, seed)
    tokens, chosen = pairs
    x = mx.random.normal((tokens, 1, 1, weights.columns))
    which = mx.random.randint(0, weights.experts, (tokens, chosen)).astype(mx.uint32)
    operations = Operations(library)
    y = operations.gather(x, stored, which)
    assert y is not None
    assert y.shape == (tokens, chosen, 1, weights.rows)
    same, error = True, 0.0
    for token in range(tokens):
        for place_of, expert in enumerate(np.asarray(which)[token]):
            row = x[token, 0]
            right = _float64(row) @ meant[expert].T
            off = np.abs(_float64(y[token, place_of]) - right) / _norms(row, meant[expert])
            error = max(error, float(off.max()))
            alone = operations.gather(row[None, None], stored, mx.array([[int(expert)]], mx.uint32))
            same = same and alone is not None and mx.array_equal(alone[0, 0], y[token, place_of]).item()
    return Product(error=error, alone_is_the_same=same)


def check_broken_rows(library: Library, weights: Weights, broken: float) -> tuple[bool, bool]:
    """Whether a row with a number that is none spoils all of itself, and nothing of its neighbours."""
    stored, _ = make(weights, 1)
    operations = Operations(library)
    x = np.random.default_rng(2).normal(size=(5, weights.columns)).astype(np.float32)
    right = operations.multiply(mx.array(x), stored)
    x[2, weights.columns // 3] = broken
    y = operations.multiply(mx.array(x), stored)
    assert right is not None
    assert y is not None
    spoilt = not np.isfinite(np.asarray(y)[2]).any()
    others = [0, 1, 3, 4]
    return spoilt, bool((np.asarray(y)[others] == np.asarray(right)[others]).all())


def check_norms(library: Library, rows: int, width: int, seed: int) -> float:
    """The largest difference of rms norm and layer norm from MLX's."""
    mx.random.seed(seed)
    operations = Operations(library)
    x, weight, bias = mx.random.normal((rows, width)) * 3, mx.random.normal((width,)), mx.random.normal((width,))
    pairs = [
        (operations.rms_norm(x, weight, 1e-5), mx.fast.rms_norm(x, weight, 1e-5)),
        (operations.rms_norm(x, None, 1e-6), mx.fast.rms_norm(x, None, 1e-6)),
        (operations.layer_norm(x, weight, bias, 1e-5), mx.fast.layer_norm(x, weight, bias, 1e-5)),
        (operations.layer_norm(x, None, None, 1e-5), mx.fast.layer_norm(x, None, None, 1e-5)),
    ]
    return max(_difference(one, other) for one, other in pairs)


def check_activations(library: Library) -> dict[str, float]:
    """The largest difference of each activation from MLX's, as a share of the input."""
    from mlx import nn  # noqa: PLC0415

    functions = {
        Activation.SILU: nn.silu,
        Activation.GELU: nn.gelu,
        Activation.GELU_TANH: nn.gelu_approx,
        Activation.RELU2: nn.relu2,
    }
    operations = Operations(library)
    x = mx.concatenate([mx.linspace(-100, 100, 4003), mx.linspace(-4, 4, 4003), mx.array([0.0, -1e-30])])
    factor = mx.linspace(-1, 1, x.size)
    found: dict[str, float] = {}
    for kind, function in functions.items():
        right = _float64(function(x))
        plain, scaled = operations.activate(kind, x), operations.activate(kind, x, factor)
        assert plain is not None
        assert scaled is not None
        size = 1 + np.abs(right)
        found[kind.name] = float(
            max(
                (np.abs(_float64(plain) - right) / size).max(),
                (np.abs(_float64(scaled) - right * _float64(factor)) / size).max(),
            )
        )
    return found


def keeps_what_is_no_number(library: Library) -> bool:
    """Whether norms and activations give none for none, and MLX's results for what is infinite."""
    operations = Operations(library)
    x = mx.array([[float("nan")] * 20, [1.0] * 20])
    results = [operations.rms_norm(x, None, 1e-5), operations.layer_norm(x, None, None, 1e-5)]
    results += [operations.activate(kind, x) for kind in Activation]
    return all(r is not None and mx.isnan(r[0]).all().item() and mx.isfinite(r[1]).all().item() for r in results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Which rotation to make up."""

    batch: int = 1
    heads: int = 3
    length: int = 5
    width: int = 32
    dims: int = 32
    traditional: bool = False
    base: float | None = 10000.0
    scale: float = 1.0
    offsets: tuple[int, ...] = (7,)


def check_rope(library: Library, turn: Turn, seed: int) -> float:
    """The largest difference from mx.fast.rope, with queries as they come out of a transposition."""
    mx.random.seed(seed)
    x = mx.random.normal((turn.batch, turn.length, turn.heads, turn.width)).transpose(0, 2, 1, 3)
    periods = None if turn.base else mx.exp(mx.random.normal((turn.dims // 2,)) * 3)
    offset = turn.offsets[0] if len(turn.offsets) == 1 else mx.array(turn.offsets)
    rope = rope_of(dims=turn.dims, traditional=turn.traditional, base=turn.base, scale=turn.scale, periods=periods)
    assert rope is not None
    right = mx.fast.rope(
        x,
        turn.dims,
        traditional=turn.traditional,
        base=turn.base,
        scale=turn.scale,
        offset=offset,
        freqs=periods,
    )
    return _difference(Operations(library).rope(x, rope, offset), right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Which attention to make up."""

    batch: int = 1
    heads: int = 4
    key_heads: int = 2
    length: int = 5
    before: int = 9
    width: int = 16
    value_width: int = 16
    mask: str = "none"
    sinks: bool = False


def check_attention(library: Library, look: Look, seed: int) -> Product:
    """The difference from MLX's attention, and whether each row alone gave the same."""
    mx.random.seed(seed)
    keys_length = look.before + look.length
    # Keys and values as a cache has them: with room behind them.
    queries = mx.random.normal((look.batch, look.length, look.heads, look.width)).transpose(0, 2, 1, 3)
    keys = mx.random.normal((look.batch, look.key_heads, keys_length + 3, look.width))[:, :, :keys_length]
    values = mx.random.normal((look.batch, look.key_heads, keys_length + 3, look.value_width))[:, :, :keys_length]
    mask, sinks = _mask(look, keys_length), mx.random.normal((look.heads,)) if look.sinks else None
    scale = look.width**-0.5
    operations = Operations(library)
    y = operations.attend(queries, keys, values, scale=scale, mask=mask, sinks=sinks)
    assert y is not None
    right = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask, sinks=sinks)
    same = True
    if mask is None or isinstance(mask, str):
        for row in range(look.length):
            seen = look.before + row + 1 if mask == "causal" else keys_length
            alone = operations.attend(
                queries[:, :, row : row + 1],
                keys[:, :, :seen],
                values[:, :, :seen],
                scale=scale,
                mask=None,
                sinks=sinks,
            )
            same = same and alone is not None and mx.array_equal(alone[:, :, 0], y[:, :, row]).item()
    return Product(error=_difference(y, right), alone_is_the_same=same)


def _mask(look: Look, keys_length: int) -> str | mx.array | None:
    rows = mx.arange(look.before, keys_length)[:, None]
    columns = mx.arange(keys_length)[None]
    match look.mask:
        case "none":
            return None
        case "causal":
            return "causal"
        case "window":
            return (columns <= rows) & (columns > rows - 4)
        case "padded":
            padding = mx.arange(look.batch)[:, None, None, None]
            return ((columns <= rows) & (columns > rows - 4))[None, None] & (columns >= padding)
        case "nothing":
            return (columns <= rows) & (rows != look.before)
        case _:
            return mx.random.normal((look.batch, look.heads, look.length, keys_length))


def check_levels(library: Library) -> list[str]:
    """The names of the kernels that run here, from the simplest on."""
    names = [library.use_kernels(level) for level in Kernels]
    return list(dict.fromkeys(names))


def refuses(library: Library) -> list[bool]:
    """For what the library does not know, whether it says so."""
    operations = Operations(library)
    stored, _ = make(Weights(rows=8, columns=64), 1)
    x = mx.random.normal((2, 64))
    odd = Stored(weight=mx.zeros((8, 8), mx.int32), scales=stored.scales, biases=stored.biases, bits=4, group=64)
    nothing = mx.zeros((0, 64))
    rope = rope_of(dims=64, traditional=False, base=1e4, scale=1, periods=None)
    assert rope is not None
    return [
        operations.multiply(x.astype(mx.float16), stored) is None,
        operations.multiply(x[:, :32], stored) is None,
        operations.multiply(nothing, stored) is None,
        operations.multiply(x, odd) is None,
        operations.rms_norm(x.astype(mx.bfloat16), None, 1e-5) is None,
        operations.gather(x, stored, mx.array([[0]])) is None,
        operations.rope(x, rope, 0) is None,
    ]


def refuses_an_expert_that_is_not_there(library: Library) -> int:
    """What the library answers when expert 9 of 4 is asked for."""
    from kafila.compute.cpu.operations import describe  # noqa: PLC0415

    stored, _ = make(Weights(rows=8, columns=64, experts=4), 1)
    matrix = describe(stored)
    assert matrix is not None
    x, y = np.ones((1, 64), np.float32), np.zeros((1, 8), np.float32)
    chosen, rows = np.array([9], np.uint32), np.zeros(1, np.int64)
    return library.gather(ctypes.byref(matrix), place(x), place(chosen), place(rows), place(y), 1)


def _float64(array: mx.array) -> np.ndarray[Any, Any]:
    return np.asarray(array.astype(mx.float32)).astype(np.float64)


def _norms(x: mx.array, meant: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.linalg.norm(_float64(x), axis=-1)[:, None] * np.linalg.norm(meant, axis=-1)[None]


def _difference(one: mx.array | None, other: mx.array) -> float:
    assert one is not None
    found, right = _float64(one), _float64(other)
    assert found.shape == right.shape
    assert (np.isnan(found) == np.isnan(right)).all()
    return float(np.nanmax(np.abs(found - right), initial=0))
