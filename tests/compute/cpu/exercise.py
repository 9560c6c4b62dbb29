"""Uses the library without MLX, in a process of its own, in the way that is named on the command line."""

import ctypes
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from kafila.compute.cpu import library as cpu_library
from kafila.compute.cpu.library import Attention, Block, Element, Format, Kernels, Library, Matrix, Rope, Rows, Step

Array = np.ndarray[Any, Any]


def matrix_of(
    rows: int, columns: int, bits: int, group: int, random: np.random.Generator
) -> tuple[Matrix, Array, list[Array]]:
    """A quantised matrix, what it stands for, and its arrays, which have no byte more than they need."""
    values = random.integers(0, 1 << bits, (rows, columns))
    bit = (values[:, :, None] >> np.arange(bits)) & 1
    packed = np.packbits(bit.reshape(rows, -1).astype(np.uint8), axis=1, bitorder="little")
    scales, biases = (random.normal(size=(rows, columns // group)).astype(np.float32) for _ in range(2))
    meant = values * np.repeat(scales, group, axis=1) + np.repeat(biases, group, axis=1)
    matrix = Matrix(
        weight=packed.ctypes.data,
        scales=scales.ctypes.data,
        biases=biases.ctypes.data,
        rows=rows,
        columns=columns,
        count=1,
        format=Format.AFFINE,
        bits=bits,
        group=group,
        element=Element.FLOAT32,
    )
    return matrix, meant, [packed, scales, biases]


def multiply(library: Library, matrix: Matrix, x: Array) -> Array:
    y = np.empty((len(x), matrix.rows), np.float32)
    assert library.multiply(ctypes.byref(matrix), x.ctypes.data, y.ctypes.data, len(x)) == 0
    return y


def check_shapes(library: Library) -> None:
    random = np.random.default_rng(3)
    for level in Kernels:
        library.use_kernels(level)
        for bits, group in ((2, 32), (3, 64), (4, 32), (4, 64), (4, 128), (5, 32), (6, 128), (8, 32), (8, 64)):
            for rows, groups, inputs in ((1, 1, 1), (5, 3, 2), (37, 6, 3), (16, 18, 9)):
                matrix, meant, arrays = matrix_of(rows, groups * group, bits, group, random)
                x = random.normal(size=(inputs, groups * group)).astype(np.float32)
                error = np.abs(multiply(library, matrix, x) - x @ meant.T).max()
                assert error < 1e-4 * np.linalg.norm(x, axis=1).max() * np.linalg.norm(meant, axis=1).max()
                del arrays
        check_dense(library, random)
        for width, length, before in ((8, 1, 0), (33, 5, 7), (64, 9, 30), (80, 1, 11)):
            check_attention(library, width, length, before, random)
        check_rows(library, random)
        check_blocks(library, random)


def check_dense(library: Library, random: np.random.Generator) -> None:
    for element, bytes_each in ((Element.FLOAT32, 4), (Element.FLOAT16, 2)):
        for rows, columns in ((1, 1), (7, 31), (19, 530)):
            weight = random.normal(size=(rows, columns)).astype(f"f{bytes_each}")
            matrix = Matrix(weight=weight.ctypes.data, rows=rows, columns=columns, count=1, element=element)
            x = random.normal(size=(3, columns)).astype(np.float32)
            assert np.allclose(multiply(library, matrix, x), x @ weight.astype(np.float64).T, atol=1e-3)


def check_attention(library: Library, width: int, length: int, before: int, random: np.random.Generator) -> None:
    keys_length = before + length
    q = random.normal(size=(1, 4, length, width)).astype(np.float32)
    k, v = (random.normal(size=(1, 2, keys_length, width)).astype(np.float32) for _ in range(2))
    y = np.empty((1, length, 4, width), np.float32)
    task = Attention(
        queries=q.ctypes.data,
        keys=k.ctypes.data,
        values=v.ctypes.data,
        output=y.ctypes.data,
        batch=1,
        heads=4,
        key_heads=2,
        length=length,
        keys_length=keys_length,
        width=width,
        value_width=width,
        query_strides=tuple(step // 4 for step in q.strides[:3]),
        key_strides=tuple(step // 4 for step in k.strides[:3]),
        value_strides=tuple(step // 4 for step in v.strides[:3]),
        scale=width**-0.5,
        causal=1,
    )
    assert library.attend(ctypes.byref(task)) == 0
    for head in range(4):
        scores = q[0, head] @ k[0, head // 2].T * width**-0.5
        scores[np.arange(keys_length)[None] > before + np.arange(length)[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        right = weights / weights.sum(axis=1, keepdims=True) @ v[0, head // 2]
        assert np.allclose(y[0, :, head], right, atol=1e-4)


def check_blocks(library: Library, random: np.random.Generator) -> None:
    """Two blocks with their caches at once are two blocks one after another, in halves."""
    heads, key_heads, width, hidden, inner = 4, 2, 16, 64, 96
    rows = {"query": 64, "key": 32, "value": 32, "output": 64, "gate": inner, "up": inner, "down": hidden}
    weights = {
        name: matrix_of(count, inner if name == "down" else hidden, 4, 32, random) for name, count in rows.items()
    }
    norm = random.normal(size=hidden).astype(np.float32)
    block = Block(
        **{name: made[0] for name, made in weights.items()},
        first_norm=norm.ctypes.data,
        second_norm=norm.ctypes.data,
        rope=Rope(dims=width, interleaved=0, base=1e4, scale=1),
        heads=heads,
        key_heads=key_heads,
        width=width,
        eps=1e-5,
    )
    batch, room, offset, length = 2, 9, 4, 3
    x = random.normal(size=(batch, length, hidden)).astype(np.float32)
    caches = random.normal(size=(2, 2, batch, key_heads, room, width)).astype(np.float32)
    expected = x
    offsets = (ctypes.c_int64 * batch)(*[offset] * batch)
    kept = caches.copy()
    for keys, values in kept:
        queries = np.empty((batch, heads, length, width), np.float32)
        new = np.empty((2, batch, key_heads, length, width), np.float32)
        places = [array.ctypes.data for array in (queries, new[0], new[1])]
        assert not library.begin_block(ctypes.byref(block), expected.ctypes.data, batch, length, offsets, *places)
        keys[:, :, offset : offset + length], values[:, :, offset : offset + length] = new
        task = Attention(
            queries=queries.ctypes.data,
            keys=keys.ctypes.data,
            values=values.ctypes.data,
            batch=batch,
            heads=heads,
            key_heads=key_heads,
            length=length,
            keys_length=offset + length,
            width=width,
            value_width=width,
            query_strides=tuple(step // 4 for step in queries.strides[:3]),
            key_strides=tuple(step // 4 for step in keys.strides[:3]),
            value_strides=tuple(step // 4 for step in values.strides[:3]),
            scale=0.25,
            causal=1,
        )
        y = np.empty_like(x)
        byrefs = ctypes.byref(block), ctypes.byref(task)
        assert not library.finish_block(*byrefs, expected.ctypes.data, y.ctypes.data)
        expected = y
    place = ctypes.addressof(block)
    steps = (Step * 2)(*[Step(block=place, keys=k.ctypes.data, values=v.ctypes.data, room=room) for k, v in caches])
    y = np.empty_like(x)
    rows_of = Rows(batch=batch, length=length, offset=offset, scale=0.25, causal=1)
    assert not library.run_blocks(steps, 2, ctypes.byref(rows_of), x.ctypes.data, y.ctypes.data)
    assert (y == expected).all()
    assert (caches == kept).all()


def check_rows(library: Library, random: np.random.Generator) -> None:
    for width in (1, 15, 64, 77):
        x, weight = random.normal(size=(3, width)).astype(np.float32), random.normal(size=width).astype(np.float32)
        y = np.empty_like(x)
        library.rms_norm(x.ctypes.data, weight.ctypes.data, y.ctypes.data, 3, width, 1e-5)
        assert np.allclose(y, x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-5) * weight, atol=1e-4)
        library.layer_norm(x.ctypes.data, weight.ctypes.data, weight.ctypes.data, y.ctypes.data, 3, width, 1e-5)
        for kind in range(4):
            library.activate(kind, x.ctypes.data, x.ctypes.data, y.ctypes.data, 3, width)
    x = random.normal(size=(2, 3, 5, 16)).astype(np.float32)
    y = np.empty_like(x)
    rope = Rope(dims=12, interleaved=0, base=1e4, scale=1)
    shape, steps, offsets = (
        (ctypes.c_int64 * 4)(*x.shape),
        (ctypes.c_int64 * 3)(240, 80, 16),
        (ctypes.c_int64 * 2)(0, 9),
    )
    assert library.rotate(ctypes.byref(rope), x.ctypes.data, y.ctypes.data, shape, steps, offsets) == 0
    assert np.allclose((x**2).sum(axis=-1), (y**2).sum(axis=-1), atol=1e-4)


def large() -> tuple[Matrix, Array, list[Array]]:
    random = np.random.default_rng(1)
    matrix, _, arrays = matrix_of(1024, 1024, 4, 64, random)
    return matrix, random.normal(size=(64, 1024)).astype(np.float32), arrays


def fork(library: Library) -> str:
    library.use_threads(4)
    matrix, x, _arrays = large()
    right = multiply(library, matrix, x)
    child = os.fork()
    if not child:
        same = all((multiply(library, matrix, x) == right).all() for _ in range(5))
        os._exit(0 if same else 1)
    same = all((multiply(library, matrix, x) == right).all() for _ in range(5))
    _, status = os.waitpid(child, 0)
    return "the same" if same and status == 0 else f"not the same, {status}"


def others(library: Library) -> str:
    matrix, x, _arrays = large()
    x = np.concatenate([x] * 40)
    ended, turns = threading.Event(), list[int]()

    def count() -> None:
        while not ended.is_set():
            turns.append(1)
            time.sleep(0.001)

    counting = threading.Thread(target=count)
    counting.start()
    before = len(turns)
    multiply(library, matrix, x)
    meanwhile = len(turns) - before
    ended.set()
    counting.join()
    return "they run" if meanwhile > 1 else f"{meanwhile} turns"


def end(library: Library) -> str:
    library.use_threads(4)
    matrix, x, _arrays = large()
    multiply(library, matrix, x)
    return "done"


def again(library: Library) -> str:
    library.use_threads(3)
    matrix, x, _arrays = large()
    right = multiply(library, matrix, x)
    library.close()
    threads = len(list(Path("/proc/self/task").iterdir()))
    same = (multiply(library, matrix, x) == right).all()
    more = len(list(Path("/proc/self/task").iterdir()))
    return "the same" if same and more == threads + 2 else f"{same}, {threads} threads, then {more}"


def shapes(library: Library) -> str:
    library.use_threads(2)
    check_shapes(library)
    return "right"


if __name__ == "__main__":
    what = {"fork": fork, "others": others, "end": end, "again": again, "shapes": shapes}[sys.argv[1]]
    file = Path(os.environ.get("KAFILA_TESTED_LIBRARY", str(cpu_library.FILE)))
    sys.stdout.write(what(Library(file)) + "\n")
