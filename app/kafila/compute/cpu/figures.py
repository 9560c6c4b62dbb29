"""What `kafila bench cpu` measures, as values. No MLX here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Tokens a second of a whole model; decode4 is for four conversations together."""

    decode1: float
    decode4: float
    prefill128: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTimes:
    """Milliseconds of one block, and bytes of its weights a second in decode."""

    decode1_ms: float
    decode4_ms: float
    prefill128_ms: float
    decode1_gb_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that was measured, under the names that `kafila bench cpu --json` gives it."""

    kernels: str
    threads: int
    memory_read_gb_s: float
    demo: dict[str, Rates]
    block_8b_q4: dict[str, BlockTimes]
    block_8b_q8: dict[str, BlockTimes]
    block_moe_q4: dict[str, BlockTimes]
    longest_pause_ms: dict[str, float]
    """How long another thread of the process had to wait at most while the demo model decoded."""
