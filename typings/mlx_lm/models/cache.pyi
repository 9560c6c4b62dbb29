from typing import Any

from mlx.core import array
from mlx.nn import Module

def make_prompt_cache(model: Module) -> list[Any]: ...

class KVCache:
    step: int
    keys: array | None
    values: array | None
    offset: int
    def __init__(self) -> None: ...
    def trim(self, n: int) -> int: ...
    @property
    def state(self) -> Any: ...

class BatchKVCache:
    def __init__(self, left_padding: list[int]) -> None: ...
    @property
    def state(self) -> Any: ...
