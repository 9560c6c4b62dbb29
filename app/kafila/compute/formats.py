"""In which format a model's weights are stored, as far as its sizes tell, and what it becomes.

Pure: no MLX, so that room can be reckoned wherever it is needed.
"""

from dataclasses import dataclass

from kafila.domain.model import ModelSpec

_BITS = (8, 6, 4, 3, 2)
_USUAL_BITS = 4
_GROUP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormat:
    """Bits of a quantised weight (None: not quantised), and bytes of a scale, a state, a cache."""

    bits: int | None
    element_bytes: int


def format_of(spec: ModelSpec, block: int) -> StoredFormat:
    """The format of a block, by how many bytes it has for each weight that computes.

    A mixture of experts has more bytes than compute for one token; 4 bits are taken for it.
    """
    per_weight = 16 * spec.block_bytes[block] / max(1, spec.block_flops[block])
    full = 8 * spec.element_bytes
    if per_weight > 1.2 * full:
        return StoredFormat(bits=_USUAL_BITS, element_bytes=spec.element_bytes)
    # Scales and biases of the groups come on top of the weights' own bits.
    bits = next((bits for bits in _BITS if bits < per_weight), _BITS[-1])
    quantised = per_weight < 0.8 * full
    return StoredFormat(bits=bits if quantised else None, element_bytes=spec.element_bytes)


def growth(spec: ModelSpec, *, element_bytes: int, tokens: int) -> float:
    """How much larger a model gets, with `tokens` in its caches, in elements of that size."""
    if element_bytes <= spec.element_bytes:
        return 1.0
    longer = element_bytes / spec.element_bytes
    stored, grown = 0.0, 0.0
    for block, size in enumerate(spec.block_bytes):
        bits = format_of(spec, block).bits
        kept = spec.kv_bytes_per_token[block] * tokens
        scales = 1.0 if bits is None else 16 * spec.element_bytes / (16 * spec.element_bytes + bits * _GROUP)
        stored += size + kept
        grown += size * (1 + scales * (longer - 1)) + kept * longer
    return grown / stored
