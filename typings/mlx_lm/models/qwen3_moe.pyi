from typing import Any

from mlx.nn import Module

class ModelArgs:
    def __init__(self, **values: Any) -> None: ...

class Qwen3MoeDecoderLayer(Module):
    def __init__(self, args: ModelArgs, layer_idx: int) -> None: ...
