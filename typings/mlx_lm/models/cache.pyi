from typing import Any

from mlx.nn import Module

def make_prompt_cache(model: Module) -> list[Any]: ...
