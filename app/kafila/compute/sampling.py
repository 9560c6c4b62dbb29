"""Which token follows, by the logits of all: the likeliest, or one drawn from the likely ones.

Pure, and by numpy: on a processor, MLX sorts all of a large vocabulary for as long as a small
model computes. The rules are mlx-lm's.
"""

from typing import Any

import numpy as np

Logits = np.ndarray[Any, np.dtype[np.float32]]


def choose(logits: Logits, *, temperature: float, top_p: float, chance: float) -> int:
    """The index of a token; `chance` is a random number from [0, 1).

    At temperature 0 it is the likeliest. Else one is drawn from the fewest likeliest ones that
    have `top_p` of all probability together; a higher temperature evens out their chances.
    """
    likeliest = int(logits.argmax())
    # What is no number, as a faulty stage may send, leaves nothing to draw from.
    with np.errstate(invalid="ignore"):
        weights = np.exp(logits - logits[likeliest])
    total = float(weights.sum(dtype=np.float64))
    if temperature <= 0 or not np.isfinite(total):
        return likeliest
    among = _nucleus(weights, top_p, total) if 0 < top_p < 1 else np.arange(len(logits))
    drawn = np.exp((logits[among] - logits[likeliest]).astype(np.float64) / temperature).cumsum()
    place = int(drawn.searchsorted(chance * drawn[-1], side="right"))
    return int(among[min(place, len(among) - 1)])


def _nucleus(weights: Logits, top_p: float, total: float) -> np.ndarray[Any, np.dtype[np.int64]]:
    # All that are rarer than this have less than 1 - top_p together, so none of them is needed.
    enough = weights >= (1 - top_p) * total / len(weights)
    candidates = np.flatnonzero(enough)
    ordered = candidates[np.argsort(-weights[candidates], kind="stable")]
    mass = weights[ordered].cumsum(dtype=np.float64)
    return ordered[: int(mass.searchsorted(top_p * total)) + 1]
