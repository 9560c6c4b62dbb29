from mlx.core import array

def layer_norm(x: array, weight: array | None, bias: array | None, eps: float) -> array: ...
def rms_norm(x: array, weight: array | None, eps: float) -> array: ...
def rope(
    a: array,
    dims: int,
    *,
    traditional: bool,
    base: float | None,
    scale: float,
    offset: int | array,
    freqs: array | None = None,
) -> array: ...
def scaled_dot_product_attention(
    q: array, k: array, v: array, *, scale: float, mask: str | array | None = None, sinks: array | None = None
) -> array: ...
