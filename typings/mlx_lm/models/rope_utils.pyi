from mlx.core import array
from mlx.nn import Module

class Llama3RoPE(Module):
    dims: int
    traditional: bool
    _freqs: array

class YarnRoPE(Module):
    dims: int
    traditional: bool
    mscale: float
    _freqs: array
