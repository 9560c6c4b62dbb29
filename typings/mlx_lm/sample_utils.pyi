from collections.abc import Callable

from mlx.core import array

def make_sampler(temp: float = 0.0, top_p: float = 0.0) -> Callable[[array], array]: ...
