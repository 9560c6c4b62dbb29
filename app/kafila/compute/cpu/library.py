"""The C library as Python sees it: found, loaded, and set to this computer's processor.

No MLX here. Pointers are plain addresses; whoever passes them keeps the memory alive.
"""

import ctypes
import os
import sys
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = Path(__file__).with_name("libkafila_cpu.so")
OFF = "KAFILA_CPU_LIBRARY"
"""Set to “off” in the environment, models run on plain MLX."""
THREADS = "KAFILA_CPU_THREADS"
"""How many threads to use; the number of cores where it is not set."""


class Format(IntEnum):
    """How the weights of a matrix are stored; as in kafila_cpu.h."""

    DENSE = 0
    AFFINE = 1
    MXFP4 = 2
    MXFP8 = 3


class Element(IntEnum):
    """Element types of dense weights, and of scales and biases."""

    FLOAT32 = 0
    FLOAT16 = 1
    BFLOAT16 = 2


class Activation(IntEnum):
    """Functions that are applied to each element."""

    SILU = 0
    GELU = 1
    GELU_TANH = 2
    RELU2 = 3


class Kernels(IntEnum):
    """Levels of kernels: each computer takes the best it has, up to one of these."""

    PLAIN = 0
    AVX2_OR_NEON = 1
    AVX512 = 2


class Features(IntFlag):
    """What kernels need of an Intel or AMD processor; as in calls.c."""

    AVX2 = 1
    FMA = 2
    F16C = 4
    AVX512 = 8
    """Of it, the parts F, BW, DQ and VL."""
    VNNI = 16


class _Structure(ctypes.Structure):
    """A structure of kafila_cpu.h."""


class Matrix(_Structure):
    """Weights of `rows` outputs by `columns` inputs, `count` of them one behind another."""

    _fields_: ClassVar = [
        ("weight", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("biases", ctypes.c_void_p),
        ("offset", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("format", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("group", ctypes.c_int32),
        ("element", ctypes.c_int32),
    ]


class Rope(_Structure):
    """A rotation by position."""

    _fields_: ClassVar = [
        ("dims", ctypes.c_int64),
        ("interleaved", ctypes.c_int32),
        ("base", ctypes.c_float),
        ("scale", ctypes.c_float),
        ("periods", ctypes.c_void_p),
    ]


class Attention(_Structure):
    """Queries, keys and values, each with its steps between batches, heads and rows."""

    _fields_: ClassVar = [
        ("queries", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("sinks", ctypes.c_void_p),
        ("allowed", ctypes.c_void_p),
        ("added", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("batch", ctypes.c_int64),
        ("heads", ctypes.c_int64),
        ("key_heads", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("keys_length", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("value_width", ctypes.c_int64),
        ("query_strides", ctypes.c_int64 * 3),
        ("key_strides", ctypes.c_int64 * 3),
        ("value_strides", ctypes.c_int64 * 3),
        ("mask_strides", ctypes.c_int64 * 4),
        ("scale", ctypes.c_float),
        ("causal", ctypes.c_int32),
    ]


class Block(_Structure):
    """A plain transformer block."""

    _fields_: ClassVar = [
        ("query", Matrix),
        ("key", Matrix),
        ("value", Matrix),
        ("output", Matrix),
        ("gate", Matrix),
        ("up", Matrix),
        ("down", Matrix),
        ("first_norm", ctypes.c_void_p),
        ("second_norm", ctypes.c_void_p),
        ("query_norm", ctypes.c_void_p),
        ("key_norm", ctypes.c_void_p),
        ("rope", Rope),
        ("heads", ctypes.c_int64),
        ("key_heads", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("eps", ctypes.c_float),
        ("head_eps", ctypes.c_float),
        ("kind", ctypes.c_int32),
    ]


class Step(_Structure):
    """A block (as an address), and its cache: keys and values (batch, heads, room, width)."""

    _fields_: ClassVar = [
        ("block", ctypes.c_void_p),
        ("keys", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("room", ctypes.c_int64),
    ]


class Rows(_Structure):
    """New rows of each sequence, behind `offset` that are in the caches already."""

    _fields_: ClassVar = [
        ("batch", ctypes.c_int64),
        ("length", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("causal", ctypes.c_int32),
    ]


_POINTER, _COUNT, _NUMBER, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_float
_FUNCTIONS: dict[str, tuple[type[Any] | None, list[type[Any]]]] = {
    "kc_use_kernels": (ctypes.c_char_p, [ctypes.c_int]),
    "kc_use_threads": (ctypes.c_int, [ctypes.c_int]),
    "kc_release": (None, []),
    "kc_multiply": (ctypes.c_int, [_POINTER, _POINTER, _POINTER, _COUNT]),
    "kc_gather": (ctypes.c_int, [_POINTER] * 5 + [_COUNT]),
    "kc_rms_norm": (None, [_POINTER, _POINTER, _POINTER, _COUNT, _COUNT, _FLOAT]),
    "kc_layer_norm": (None, [_POINTER, _POINTER, _POINTER, _POINTER, _COUNT, _COUNT, _FLOAT]),
    "kc_activate": (None, [_NUMBER, _POINTER, _POINTER, _POINTER, _COUNT, _COUNT]),
    "kc_rotate": (ctypes.c_int, [_POINTER] * 6),
    "kc_attend": (ctypes.c_int, [_POINTER]),
    "kc_begin_block": (ctypes.c_int, [_POINTER, _POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER]),
    "kc_finish_block": (ctypes.c_int, [_POINTER] * 4),
    "kc_run_blocks": (ctypes.c_int, [_POINTER, _COUNT, _POINTER, _POINTER, _POINTER]),
    "kc_name_kernels": (ctypes.c_char_p, [ctypes.c_int, ctypes.c_uint]),
    "kc_read": (ctypes.c_uint64, [_POINTER, _COUNT]),
}


class Library:
    """The loaded library. Its functions let other threads of Python run while they compute.

    They are named as in the C sources, without the prefix: `library.multiply(…)`.
    """

    def __init__(self, file: Path = FILE) -> None:
        loaded = _open(file)
        self.multiply: Callable[..., int] = loaded.kc_multiply
        self.gather: Callable[..., int] = loaded.kc_gather
        self.rms_norm: Callable[..., None] = loaded.kc_rms_norm
        self.layer_norm: Callable[..., None] = loaded.kc_layer_norm
        self.activate: Callable[..., None] = loaded.kc_activate
        self.rotate: Callable[..., int] = loaded.kc_rotate
        self.attend: Callable[..., int] = loaded.kc_attend
        self.begin_block: Callable[..., int] = loaded.kc_begin_block
        self.finish_block: Callable[..., int] = loaded.kc_finish_block
        self.run_blocks: Callable[..., int] = loaded.kc_run_blocks
        self.read: Callable[..., int] = loaded.kc_read
        self.release: Callable[[], None] = loaded.kc_release
        self._name_kernels: Callable[[int, int], bytes] = loaded.kc_name_kernels
        self._use_kernels: Callable[[int], bytes] = loaded.kc_use_kernels
        self._use_threads: Callable[[int], int] = loaded.kc_use_threads
        self.kernels = self.use_kernels(Kernels.AVX512)
        self.threads = self.use_threads(wanted_threads())

    def name_kernels(self, most: Kernels, features: Features) -> str:
        """What `use_kernels` would take on a processor that has so much."""
        return self._name_kernels(most, features).decode("ascii")

    def use_kernels(self, most: Kernels) -> str:
        """Take the best kernels that run here, up to a level; their name."""
        self.kernels = self._use_kernels(most).decode("ascii")
        return self.kernels

    def use_threads(self, count: int) -> int:
        """Compute on so many threads, the calling one included."""
        self.threads = self._use_threads(count)
        return self.threads

    def close(self) -> None:
        """End the library's threads and free its memory; it starts again when it is used again."""
        self._use_threads(1)
        self._use_threads(self.threads)
        self.release()


def wanted_threads() -> int:
    """As the setting says, or one for each core that this process may use."""
    setting = os.environ.get(THREADS, "")
    if setting.isdigit() and int(setting) > 0:
        return int(setting)
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, min(allowed, psutil.cpu_count(logical=False) or allowed))


def load() -> Library | None:
    """The library, where it is usable."""
    return Library(FILE) if is_usable() else None


def is_usable() -> bool:
    """Whether the library was built for this computer, from these sources, and is not switched off."""
    if os.environ.get(OFF, "").lower() in {"off", "0", "no"} or not FILE.exists():
        return False
    try:
        _open(FILE)
    except (OSError, AttributeError):  # Built for another kind of computer, or from other sources.
        return False
    return True


def _open(file: Path) -> Any:
    """The library with its functions' types. Nothing of it runs yet."""
    loaded = ctypes.CDLL(str(file))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
