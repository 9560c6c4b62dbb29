"""Single operations of MLX, done by the library: each gives its result, or None for “let MLX do it”.

All work on float32 activations, and evaluate what they are given. Import this on the MLX thread
only.
"""

import ctypes
import math
import weakref
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from kafila.compute.cpu.library import Activation, Attention, Element, Format, Library, Matrix, Rope

ELEMENTS = {mx.float32: Element.FLOAT32, mx.float16: Element.FLOAT16, mx.bfloat16: Element.BFLOAT16}
FORMATS = {"mxfp4": (Format.MXFP4, 4), "mxfp8": (Format.MXFP8, 8)}
_INDICES = (mx.uint32, mx.int32)
AFFINE_BITS, AFFINE_GROUPS, MX_GROUP = (2, 3, 4, 5, 6, 8), (32, 64, 128), 32


def address(array: mx.array) -> int | None:
    """Where the elements of an array are, once it is evaluated; None where it has gaps."""
    view = memoryview(array)
    if not view.c_contiguous or not view.nbytes:
        return None
    return ctypes.addressof(ctypes.c_char.from_buffer(view))


def in_one_piece(array: mx.array) -> mx.array:
    """The array, evaluated and without gaps."""
    mx.eval(array)
    if memoryview(array).c_contiguous:
        return array
    array = mx.contiguous(array)
    mx.eval(array)
    return array


def place(array: np.ndarray[Any, Any]) -> int:
    """Where the elements of a numpy array are."""
    return array.ctypes.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Weights of one layer as MLX keeps them; scales and biases None where they are not quantised."""

    weight: mx.array
    scales: mx.array | None = None
    biases: mx.array | None = None
    bits: int = 0
    group: int = 0
    mode: str = "affine"


class MatrixShelf:
    """Descriptions of matrices by their arrays, which are looked at once and not kept alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[mx.array], Stored | None, Matrix | None]] = {}

    def matrix(self, stored: Stored) -> Matrix | None:
        """The library's description of these weights; None for what it does not know."""
        key = id(stored.weight)
        known = self._known.get(key)
        if known is not None:
            return known[2]
        matrix = describe(stored)
        self._known[key] = (weakref.ref(stored.weight, lambda _: self._known.pop(key, None)), None, matrix)
        return matrix


def describe(stored: Stored, *, offset: mx.array | None = None) -> Matrix | None:
    """The library's description of weights, whose arrays the caller keeps; None where it knows none."""
    kind = _kind(stored)
    if kind is None:
        return None
    layout, element = kind
    bits = FORMATS[stored.mode][1] if layout in (Format.MXFP4, Format.MXFP8) else stored.bits
    arrays = [array for array in (stored.weight, stored.scales, stored.biases, offset) if array is not None]
    mx.eval(arrays)
    places = [address(array) for array in arrays]
    if None in places or (offset is not None and offset.dtype != mx.float32):
        return None
    width = stored.weight.shape[-1]
    return Matrix(
        weight=places[0],
        scales=places[1] if stored.scales is not None else None,
        biases=places[2] if stored.biases is not None else None,
        offset=places[-1] if offset is not None else None,
        rows=stored.weight.shape[-2],
        columns=width if layout is Format.DENSE else width * 32 // bits,
        count=stored.weight.shape[0] if stored.weight.ndim == 3 else 1,
        format=layout,
        bits=bits,
        group=stored.group,
        element=element,
    )


def _kind(stored: Stored) -> tuple[Format, Element] | None:
    weight, scales = stored.weight, stored.scales
    if weight.ndim not in (2, 3) or not weight.size:
        return None
    if scales is None:
        element = ELEMENTS.get(weight.dtype)
        return None if element is None else (Format.DENSE, element)
    if weight.dtype != mx.uint32:
        return None
    if stored.mode in FORMATS:
        known = scales.dtype == mx.uint8 and stored.biases is None and stored.group == MX_GROUP
        return (FORMATS[stored.mode][0], Element.FLOAT32) if known else None
    element, biases = ELEMENTS.get(scales.dtype), stored.biases
    known = stored.mode == "affine" and stored.bits in AFFINE_BITS and stored.group in AFFINE_GROUPS
    if not known or element is None or biases is None or biases.dtype != scales.dtype:
        return None
    return Format.AFFINE, element


class Operations:
    """The library's operations on MLX arrays."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._shelf = MatrixShelf()

    def multiply(self, x: mx.array, stored: Stored) -> mx.array | None:
        """x @ weight.T"""
        if x.dtype != mx.float32 or not x.size or stored.weight.ndim != 2:
            return None
        matrix = self._shelf.matrix(stored)
        if matrix is None or matrix.columns != x.shape[-1]:
            return None
        x = in_one_piece(x)
        y = np.empty((*x.shape[:-1], matrix.rows), np.float32)
        check(self.library.multiply(ctypes.byref(matrix), address(x), place(y), x.size // matrix.columns))
        return mx.array(y)

    def gather(self, x: mx.array, stored: Stored, chosen: mx.array) -> mx.array | None:
        """x[…, i, :] @ weight[chosen[…, i]].T, as in a mixture of experts.

        x is (…, 1, columns), where “…” goes with the shape of `chosen`.
        """
        if x.dtype != mx.float32 or not x.size or stored.weight.ndim != 3 or x.ndim < 2 or x.shape[-2] != 1:
            return None
        matrix = self._shelf.matrix(stored)
        if matrix is None or matrix.columns != x.shape[-1] or not chosen.size or chosen.dtype not in _INDICES:
            return None
        x, which = in_one_piece(x), np.asarray(chosen)
        try:
            rows = np.broadcast_to(np.arange(x.size // x.shape[-1]).reshape(x.shape[:-2]), which.shape)
        except ValueError:
            return None
        which, rows = np.ascontiguousarray(which, np.uint32), np.ascontiguousarray(rows, np.int64)
        y = np.empty((*which.shape, 1, matrix.rows), np.float32)
        result = self.library.gather(ctypes.byref(matrix), address(x), place(which), place(rows), place(y), which.size)
        check(result)
        return mx.array(y)

    def rms_norm(self, x: mx.array, weight: mx.array | None, eps: float) -> mx.array | None:
        """As mx.fast.rms_norm."""
        if x.dtype != mx.float32 or not x.size or (weight is not None and weight.dtype != mx.float32):
            return None
        x = in_one_piece(x)
        weight = None if weight is None else in_one_piece(weight)
        y = np.empty(x.shape, np.float32)
        width = x.shape[-1]
        self.library.rms_norm(address(x), _or_null(weight), place(y), x.size // width, width, eps)
        return mx.array(y)

    def layer_norm(self, x: mx.array, weight: mx.array | None, bias: mx.array | None, eps: float) -> mx.array | None:
        """As mx.fast.layer_norm."""
        if any(array is not None and array.dtype != mx.float32 for array in (x, weight, bias)) or not x.size:
            return None
        x = in_one_piece(x)
        weight, bias = (None if array is None else in_one_piece(array) for array in (weight, bias))
        y = np.empty(x.shape, np.float32)
        width = x.shape[-1]
        self.library.layer_norm(address(x), _or_null(weight), _or_null(bias), place(y), x.size // width, width, eps)
        return mx.array(y)

    def activate(self, kind: Activation, x: mx.array, factor: mx.array | None = None) -> mx.array | None:
        """f(x), or f(x) · factor."""
        if x.dtype != mx.float32 or not x.size:
            return None
        if factor is not None and (factor.dtype != mx.float32 or factor.shape != x.shape):
            return None
        x = in_one_piece(x)
        factor = None if factor is None else in_one_piece(factor)
        y = np.empty(x.shape, np.float32)
        width = x.shape[-1] if x.ndim else 1
        self.library.activate(kind, address(x), _or_null(factor), place(y), x.size // width, width)
        return mx.array(y)

    def rope(self, x: mx.array, rope: Rope, offset: int | mx.array) -> mx.array | None:
        """As mx.fast.rope, with the rotation described before."""
        if x.dtype != mx.float32 or x.ndim != 4 or not x.size or rope.dims > x.shape[-1] or rope.dims % 2:
            return None
        offsets = batch_offsets(offset, x.shape[0])
        steps = _steps(x, 3)
        if offsets is None or steps is None:
            return None
        y = np.empty(x.shape, np.float32)
        shape = (ctypes.c_int64 * 4)(*x.shape)
        result = self.library.rotate(
            ctypes.byref(rope), steps[0], place(y), shape, (ctypes.c_int64 * 3)(*steps[1]), offsets
        )
        check(result)
        return mx.array(y)

    def attend(
        self,
        queries: mx.array,
        keys: mx.array,
        values: mx.array,
        *,
        scale: float,
        mask: str | mx.array | None,
        sinks: mx.array | None,
    ) -> mx.array | None:
        """As mx.fast.scaled_dot_product_attention."""
        task = attention(queries, keys, values, scale=scale, mask=mask, sinks=sinks)
        if task is None:
            return None
        batch, heads, length, _ = queries.shape
        y = np.empty((batch, length, heads, values.shape[-1]), np.float32)
        task.structure.output = place(y)
        check(self.library.attend(ctypes.byref(task.structure)))
        return mx.array(y).transpose(0, 2, 1, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTask:
    """An attention that the library can do, and the arrays that it reads meanwhile."""

    structure: Attention
    arrays: tuple[object, ...]


def attention(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    *,
    scale: float,
    mask: str | mx.array | None,
    sinks: mx.array | None,
) -> AttentionTask | None:
    """What the library is to do; None for what it does not know. The output is still open."""
    if any(a.dtype != mx.float32 or a.ndim != 4 or not a.size for a in (queries, keys, values)):
        return None
    if sinks is not None and sinks.dtype != mx.float32:
        return None
    batch, heads, length, width = queries.shape
    key_heads, keys_length = keys.shape[1], keys.shape[2]
    fits = keys.shape[0] == batch and keys.shape[3] == width and values.shape[:3] == keys.shape[:3]
    if not fits or heads % key_heads or (isinstance(mask, str) and (mask != "causal" or length > keys_length)):
        return None
    mx.eval(queries, keys, values)
    steps = [_steps(a, 3) for a in (queries, keys, values)]
    if None in steps:
        return None
    (query, query_steps), (key, key_steps), (value, value_steps) = (step for step in steps if step is not None)
    seen = _mask(mask, (batch, heads, length, keys_length))
    if seen is None:
        return None
    sinks = None if sinks is None else in_one_piece(sinks)
    structure = Attention(
        queries=query,
        keys=key,
        values=value,
        sinks=_or_null(sinks),
        batch=batch,
        heads=heads,
        key_heads=key_heads,
        length=length,
        keys_length=keys_length,
        width=width,
        value_width=values.shape[-1],
        query_strides=query_steps,
        key_strides=key_steps,
        value_strides=value_steps,
        scale=scale,
        causal=isinstance(mask, str),
        **seen.fields,
    )
    return AttentionTask(structure=structure, arrays=(queries, keys, values, sinks, seen.array))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mask:
    """A mask as the library wants it, and the array that it reads."""

    fields: dict[str, Any]
    array: object


def _mask(mask: str | mx.array | None, shape: tuple[int, int, int, int]) -> _Mask | None:
    """None for a mask that the library does not know."""
    if not isinstance(mask, mx.array):
        return _Mask(fields={}, array=None)
    if mask.dtype not in (mx.bool_, mx.float32):
        return None
    array = np.asarray(mask)
    try:
        spread = np.broadcast_to(array, shape)
    except ValueError:
        return None
    steps = tuple(step // spread.itemsize for step in spread.strides)
    kind = "allowed" if mask.dtype == mx.bool_ else "added"
    return _Mask(fields={kind: array.ctypes.data, "mask_strides": steps}, array=array)


def _steps(array: mx.array, count: int) -> tuple[int, tuple[int, ...]] | None:
    """Where a float32 array is, and its first steps, counted in elements; rows are in one piece."""
    seen = np.asarray(array)
    if seen.strides[-1] != seen.itemsize and seen.shape[-1] > 1:
        return None
    return seen.ctypes.data, tuple(step // seen.itemsize for step in seen.strides[:count])


def batch_offsets(offset: int | mx.array, batch: int) -> Any | None:
    """The position at which each sequence of a batch goes on, as C wants it."""
    if isinstance(offset, mx.array):
        given: Any = offset.tolist()
        positions: list[Any] = [given] if offset.ndim == 0 else given
    else:
        positions = [offset]
    if len(positions) == 1:
        positions = positions * batch
    if len(positions) != batch or any(not isinstance(position, int) for position in positions):
        return None
    return (ctypes.c_int64 * batch)(*positions)


def rope_of(*, dims: int, traditional: bool, base: float | None, scale: float, periods: mx.array | None) -> Rope | None:
    """The library's description of a rotation; the caller keeps the periods."""
    if (base is None) == (periods is None):
        return None
    place_of_periods = None
    if periods is not None:
        mx.eval(periods)
        place_of_periods = address(periods)
        if periods.dtype != mx.float32 or periods.size != dims // 2 or place_of_periods is None:
            return None
    return Rope(dims=dims, interleaved=traditional, base=base or math.nan, scale=scale, periods=place_of_periods)


def _or_null(array: mx.array | None) -> int | None:
    return None if array is None else address(array)


def check(result: int) -> None:
    """Raise what the library says by a result that is not 0."""
    if result == -1:
        raise MemoryError
    if result:
        message = f"the library for processors says {result}"
        raise RuntimeError(message)
