from collections.abc import Callable
from typing import Any

from mlx.core import Dtype, array

class Module(dict[str, Any]):
    layers: list[Module]

    def __init__(self, args: Any = ...) -> None: ...
    def __call__(self, x: array, *args: Any, **kwargs: Any) -> array: ...
    def eval(self) -> Module: ...
    def load_weights(self, file_or_weights: Any, strict: bool = True) -> Module: ...
    def named_modules(self) -> list[tuple[str, Module]]: ...
    def parameters(self) -> dict[str, Any]: ...
    def set_dtype(self, dtype: Dtype) -> None: ...
    def update(self, parameters: dict[str, Any]) -> Module: ...  # pyright: ignore[reportIncompatibleMethodOverride]

def quantize(
    model: Module,
    group_size: int | None = None,
    bits: int | None = None,
    *,
    class_predicate: Callable[[str, Module], bool] | None = None,
) -> None: ...

class Linear(Module): ...

class QuantizedLinear(Module):
    bits: int
    group_size: int
    mode: str

class Embedding(Module):
    def as_linear(self, x: array) -> array: ...

class QuantizedEmbedding(Module):
    bits: int
    group_size: int
    mode: str

class RMSNorm(Module):
    eps: float

class RoPE(Module):
    dims: int
    traditional: bool
    base: float
    scale: float

def gelu(x: array) -> array: ...
def gelu_approx(x: array) -> array: ...
def relu2(x: array) -> array: ...
def silu(x: array) -> array: ...
