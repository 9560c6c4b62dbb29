from mlx.nn import Module

class ModelArgs:
    def __init__(
        self,
        *,
        model_type: str,
        hidden_size: int,
        num_hidden_layers: int,
        intermediate_size: int,
        num_attention_heads: int,
        num_key_value_heads: int,
        head_dim: int,
        rms_norm_eps: float,
        vocab_size: int,
    ) -> None: ...

class TransformerBlock(Module):
    def __init__(self, args: ModelArgs) -> None: ...
