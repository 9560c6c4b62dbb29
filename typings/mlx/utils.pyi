from collections.abc import Callable
from typing import Any

from mlx.core import array

def tree_flatten(tree: Any) -> list[tuple[str, array]]: ...
def tree_map(fn: Callable[[array], array], tree: dict[str, Any]) -> dict[str, Any]: ...
