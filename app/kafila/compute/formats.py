"""In which format a model's weights are stored, as far as its sizes tell, and how it may grow.

Pure: no MLX, so that room can be reckoned without it.
"""

from dataclasses import dataclass

from kafila.domain.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantisation:
    """Weights of `bits` bits, and a scale and a bias for each `group` of them."""

    bits: int
    group: int

    def bits_per_weight(self, element_bytes: int) -> float:
        """Scales and biases counted."""
        return self.bits + 16 * element_bytes / self.group


# Where two need the same bytes, the commoner one is nearer to the front.
_QUANTISATIONS = tuple(Quantisation(bits=bits, group=group) for bits in (4, 8, 6, 3, 2) for group in (64, 32, 128))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFormat:
    """How weights are stored. `element_bytes` is the size of a scale, or of a weight by itself."""

    quantisation: Quantisation | None
    element_bytes: int


def format_of(spec: ModelSpec, block: int) -> StoredFormat:
    """The format of a block, by how many bytes it has for each weight that computes.

    A mixture of experts has more bytes than what computes for one token; the commonest
    quantisation is taken for it.
    """
    bits_per_weight = 16 * spec.block_bytes[block] / max(1, spec.block_flops[block])
    full = 8 * spec.element_bytes
    if 0.8 * full < bits_per_weight < 1.2 * full:
        quantisation = None
    elif bits_per_weight > full:
        quantisation = _QUANTISATIONS[0]
    else:
        quantisation = min(
            _QUANTISATIONS,
            key=lambda one: abs(one.bits_per_weight(spec.element_bytes) - bits_per_weight),
        )
    return StoredFormat(quantisation=quantisation, element_bytes=spec.element_bytes)


def growth(spec: ModelSpec, *, element_bytes: int, tokens: int, as_stored: bool = False) -> float:
    """How many times larger a model gets, with `tokens` in its caches, in elements of that size.

    With `as_stored`, its weights stay as they are, and only the caches grow.
    """
    if element_bytes <= spec.element_bytes:
        return 1.0
    longer = element_bytes / spec.element_bytes
    stored, grown = 0.0, 0.0
    for block, size in enumerate(spec.block_bytes):
        kept = spec.kv_bytes_per_token[block] * tokens
        stored += size + kept
        weights = 1.0 if as_stored else _weight_growth(format_of(spec, block), element_bytes)
        grown += size * weights + kept * longer
    return grown / stored


def _weight_growth(form: StoredFormat, element_bytes: int) -> float:
    if form.quantisation is None:
        return element_bytes / form.element_bytes
    stored = form.quantisation.bits_per_weight(form.element_bytes)
    return form.quantisation.bits_per_weight(element_bytes) / stored
