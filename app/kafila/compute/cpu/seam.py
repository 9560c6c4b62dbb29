"""Where mlx-lm finds the library: functions of MLX that its model classes call are stood in for.

A model's own code is left as it is. Each stand-in works only between `at_work` and its end, does
what the library knows, and hands everything else to MLX, operation by operation. Outside, and
where nothing was installed, all is MLX's. What the library does is done at once, not recorded:
so `at_work` is for blocks (and the head) that really run now.

Import this on the MLX thread only.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import switch_layers

from kafila.compute.cpu.blocks import PlainBlock, plain_block
from kafila.compute.cpu.chain import run_chain
from kafila.compute.cpu.library import Activation, Library
from kafila.compute.cpu.operations import ELEMENTS, Operations, Stored, rope_of

_LINEAR = (nn.Linear, nn.QuantizedLinear)
_EXPERTS = (switch_layers.SwitchLinear, switch_layers.QuantizedSwitchLinear)
_EMBEDDING = (nn.Embedding, nn.QuantizedEmbedding)


class Seam:
    """The library between mlx-lm and MLX. There is one in a process, from `install` to `remove`."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._operations = Operations(library)
        self._working = False
        self._before: dict[tuple[Any, str], Any] = {}

    @contextmanager
    def at_work(self) -> Generator[None]:
        """What is called meanwhile is computed now, by the library where it can."""
        before, self._working = self._working, True
        try:
            yield
        finally:
            self._working = before

    def run_block(
        self, family: type, block: nn.Module, x: mx.array, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A block of a model, whose class is `family`: whole, or by its own code."""
        with self.at_work():
            plain = plain_block(block, family)
            if plain is not None:
                y = self._run_plain(plain, x, _mask_and_cache(*args, **kwargs))
                if y is not None:
                    return y
            return family.__call__(block, x, *args, **kwargs)  # pyright: ignore[reportCallIssue]

    def _run_plain(self, plain: PlainBlock, x: mx.array, call: tuple[Any, Any] | None) -> mx.array | None:
        if call is None:
            return None
        y = run_chain(self.library, (plain,), x, call[0], (call[1],))
        return plain.run(self.library, x, *call) if y is None else y

    def run_blocks(
        self,
        blocks: Sequence[tuple[type, nn.Module]],
        x: mx.array,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        caches: Sequence[Any],
    ) -> mx.array | None:
        """Blocks that follow one another, with their classes and caches, all at once; None where that cannot be.

        `args` and `kwargs` are what the model calls the first of them with.
        """
        plain = [plain_block(block, family) for family, block in blocks]
        known = [block for block in plain if block is not None]
        if len(known) != len(plain) or any(getattr(block, "use_sliding", False) for _, block in blocks):
            return None
        call = _mask_and_cache(*args, **kwargs)
        return None if call is None else run_chain(self.library, known, x, call[0], caches)

    def install(self) -> None:
        """Stand in for MLX's functions. Functions that MLX would compile are run as they are."""
        mx.disable_compile()
        stand_ins = [
            (mx, "quantized_matmul", self._quantized_matmul),
            (mx, "gather_qmm", self._gather_qmm),
            (mx, "gather_mm", self._gather_mm),
            (mx.fast, "rms_norm", self._rms_norm),
            (mx.fast, "layer_norm", self._layer_norm),
            (mx.fast, "rope", self._rope),
            (mx.fast, "scaled_dot_product_attention", self._attention),
            (nn, "silu", self._activation(nn.silu, Activation.SILU)),
            (nn, "gelu", self._activation(nn.gelu, Activation.GELU)),
            (nn, "gelu_approx", self._activation(nn.gelu_approx, Activation.GELU_TANH)),
            (nn.Linear, "__call__", self._linear()),
            (nn.Embedding, "__call__", self._embedding()),
            (nn.Embedding, "as_linear", self._unembedding()),
            (nn.QuantizedEmbedding, "__call__", self._quantized_embedding()),
        ]
        for owner, name, stand_in in stand_ins:
            self._before[owner, name] = getattr(owner, name)
            setattr(owner, name, stand_in)

    def remove(self) -> None:
        """Everything as it was, and no thread of the library left."""
        for (owner, name), before in self._before.items():
            setattr(owner, name, before)
        self._before.clear()
        self.library.close()

    def _original(self, name: str, owner: Any = mx) -> Callable[..., Any]:
        return self._before[owner, name]

    def _quantized_matmul(self, x: mx.array, w: mx.array, /, *args: Any, **kwargs: Any) -> mx.array:
        y = None
        if self._working:
            call = _quantized(_QUANTIZED, args, kwargs)
            y = None if call is None else self._operations.multiply(x, _stored(w, **call))
        return self._original("quantized_matmul")(x, w, *args, **kwargs) if y is None else y

    def _gather_qmm(self, x: mx.array, w: mx.array, /, *args: Any, **kwargs: Any) -> mx.array:
        y = None
        if self._working:
            call = _quantized(_GATHERED, args, kwargs)
            if call is not None and call.get("rhs_indices") is not None:
                y = self._operations.gather(x, _stored(w, **call), call["rhs_indices"])
        return self._original("gather_qmm")(x, w, *args, **kwargs) if y is None else y

    def _gather_mm(self, a: mx.array, b: mx.array, /, *args: Any, **kwargs: Any) -> mx.array:
        chosen, y = kwargs.get("rhs_indices"), None
        if self._working and not args and chosen is not None and kwargs.get("lhs_indices") is None and b.ndim == 3:
            y = self._operations.gather(a, Stored(weight=b.swapaxes(-1, -2)), chosen)
        return self._original("gather_mm")(a, b, *args, **kwargs) if y is None else y

    def _rms_norm(self, x: mx.array, weight: mx.array | None, eps: float, **kwargs: Any) -> mx.array:
        y = self._operations.rms_norm(x, weight, eps) if self._working and not kwargs else None
        return self._original("rms_norm", mx.fast)(x, weight, eps, **kwargs) if y is None else y

    def _layer_norm(
        self, x: mx.array, weight: mx.array | None, bias: mx.array | None, eps: float, **kwargs: Any
    ) -> mx.array:
        y = self._operations.layer_norm(x, weight, bias, eps) if self._working and not kwargs else None
        return self._original("layer_norm", mx.fast)(x, weight, bias, eps, **kwargs) if y is None else y

    def _rope(self, a: mx.array, dims: int, **kwargs: Any) -> mx.array:
        y = None
        if self._working and "stream" not in kwargs:
            rope = rope_of(
                dims=dims,
                traditional=kwargs["traditional"],
                base=kwargs["base"],
                scale=kwargs["scale"],
                periods=kwargs.get("freqs"),
            )
            y = None if rope is None else self._operations.rope(a, rope, kwargs["offset"])
        return self._original("rope", mx.fast)(a, dims, **kwargs) if y is None else y

    def _attention(self, q: mx.array, k: mx.array, v: mx.array, **kwargs: Any) -> mx.array:
        y = None
        if self._working and kwargs.keys() <= {"scale", "mask", "sinks"}:
            mask, sinks = kwargs.get("mask"), kwargs.get("sinks")
            y = self._operations.attend(q, k, v, scale=kwargs["scale"], mask=mask, sinks=sinks)
        return self._original("scaled_dot_product_attention", mx.fast)(q, k, v, **kwargs) if y is None else y

    def _activation(self, original: Callable[[mx.array], mx.array], kind: Activation) -> Callable[[mx.array], mx.array]:
        def activation(x: mx.array) -> mx.array:
            y = self._operations.activate(kind, x) if self._working else None
            return original(x) if y is None else y

        return activation

    def _linear(self) -> Callable[[nn.Linear, mx.array], mx.array]:
        original = nn.Linear.__call__

        def linear(layer: nn.Linear, x: mx.array) -> mx.array:
            y = self._operations.multiply(x, Stored(weight=layer["weight"])) if self._working else None
            if y is None:
                return original(layer, x)
            return y + layer["bias"] if "bias" in layer else y

        return linear

    def _embedding(self) -> Callable[[nn.Embedding, mx.array], mx.array]:
        original = nn.Embedding.__call__

        def embedding(layer: nn.Embedding, ids: mx.array) -> mx.array:
            rows = original(layer, ids)
            return rows.astype(mx.float32) if self._working else rows

        return embedding

    def _quantized_embedding(self) -> Callable[[nn.QuantizedEmbedding, mx.array], mx.array]:
        original = nn.QuantizedEmbedding.__call__

        def embedding(layer: nn.QuantizedEmbedding, ids: mx.array) -> mx.array:
            scales, biases = layer["scales"], layer.get("biases")
            if not self._working or scales.dtype not in ELEMENTS:
                return original(layer, ids)
            return mx.dequantize(
                layer["weight"][ids],
                scales[ids].astype(mx.float32),
                None if biases is None else biases[ids].astype(mx.float32),
                layer.group_size,
                layer.bits,
                mode=layer.mode,
            )

        return embedding

    def _unembedding(self) -> Callable[[nn.Embedding, mx.array], mx.array]:
        original = nn.Embedding.as_linear

        def unembedding(layer: nn.Embedding, x: mx.array) -> mx.array:
            y = self._operations.multiply(x, Stored(weight=layer["weight"])) if self._working else None
            return original(layer, x) if y is None else y

        return unembedding


def keep_as_stored(model: nn.Module) -> None:
    """Give a model float32 states and small parameters, and leave its large weights as they are.

    Weights, scales and biases of linear layers, of experts and of embeddings are read in the type
    in which they are stored; so they take no more memory than on the disk.
    """
    for _, module in model.named_modules():
        kept = _kept(module)
        for name, value in module.items():
            if isinstance(value, mx.array) and mx.issubdtype(value.dtype, mx.floating) and name not in kept:
                module[name] = value.astype(mx.float32)


def _kept(module: nn.Module) -> frozenset[str]:
    if type(module) not in (*_LINEAR, *_EXPERTS, *_EMBEDDING):
        return frozenset()
    known = "scales" not in module or module["scales"].dtype in (*ELEMENTS, mx.uint8)
    return frozenset(("weight", "scales", "biases")) if known else frozenset()


def _stored(w: mx.array, **call: Any) -> Stored:
    return Stored(
        weight=w,
        scales=call["scales"],
        biases=call["biases"],
        bits=call["bits"] or 4,
        group=call["group_size"] or (64 if call["mode"] == "affine" else 32),
        mode=call["mode"],
    )


_QUANTIZED = ("scales", "biases", "transpose", "group_size", "bits", "mode")
_GATHERED = ("scales", "biases", "lhs_indices", "rhs_indices", *_QUANTIZED[2:], "global_scale")


def _quantized(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a quantised product by their names, unless something is out of the ordinary."""
    call = {"biases": None, "transpose": True, "group_size": None, "bits": None, "mode": "affine"}
    call |= dict(zip(names, args, strict=False)) | kwargs
    unusual = any(call.pop(name, None) is not None for name in ("lhs_indices", "global_scale", "stream"))
    return None if unusual or not call["transpose"] else call


def _mask_and_cache(mask: Any = None, cache: Any = None, **others: Any) -> tuple[Any, Any] | None:
    return None if others else (mask, cache)
