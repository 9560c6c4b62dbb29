"""What a model costs, block by block."""

import msgspec


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A model as the planner sees it. All per-block tuples have one value per block."""

    name: str
    """As shown to people."""
    family: str
    """The `model_type` of its configuration."""
    fingerprint: str
    """64 hexadecimal digits over configuration and tensor headers: the same on every computer."""
    hidden_size: int
    block_bytes: tuple[int, ...]
    """Weight bytes resident, and read per token."""
    block_flops: tuple[int, ...]
    """Floating-point operations per token."""
    kv_bytes_per_token: tuple[int, ...]
    head_bytes: int
    """Bytes of the unembedding (and final norm) read per token."""
    head_flops: int
    head_resident_bytes: int
    """Embedding, final norm and unembedding; once where embedding and unembedding are tied."""
    max_context: int
    element_bytes: int = 4
    """Bytes of one number of a hidden state or a cache, in the type that the model is stored in."""

    @property
    def blocks(self) -> int:
        """Number of transformer blocks."""
        return len(self.block_bytes)

    @property
    def weight_bytes(self) -> int:
        """The whole model's size, every tensor once."""
        return sum(self.block_bytes) + self.head_resident_bytes
