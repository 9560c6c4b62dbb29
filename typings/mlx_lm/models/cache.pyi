from typing import Any

from mlx.nn import Module

def make_prompt_cache(model: Module) -> list[Any]: ...

class KVCache:
    @property
    def state(self) -> Any: ...

class BatchKVCache:
    def __init__(self, left_padding: list[int]) -> None: ...
    @property
    def state(self) -> Any: ...
