"""The values that cross between the engine and the MLX thread."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One member's part of a plan: its blocks [first, end), and the bounds of its caches."""

    first: int
    end: int
    head: bool
    """Also embeds, unembeds and samples."""
    last: bool
    """Comes last in the ring, and so cuts frames to the one row that the head asked for."""
    epoch: int
    tiling: bytes
    context: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A token as the head chose it."""

    token_id: int
    text: str
    """What can be shown now: whole characters, perhaps none yet."""
    ended: bool
    """The token ends the answer, and is no part of its text."""
    span_us: int
    """Microseconds that unembedding and sampling took; part of the head's stage time."""
