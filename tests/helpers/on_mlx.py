"""What tests run on the MLX thread. MLX is imported there, and not while tests are collected."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write_tiny(folder: Path, **how: Any) -> Path:
    """A tiny model, see `helpers.tiny_models.write_tiny_model`."""
    from helpers.tiny_models import write_tiny_model  # noqa: PLC0415

    return write_tiny_model(folder, **how)


def answer_alone(folder: Path, prompt: Sequence[int], tokens: int) -> list[int]:
    """What mlx-lm answers by itself, greedily."""
    from mlx_lm import load, stream_generate  # noqa: PLC0415

    model, tokenizer = load(str(folder))
    parts = stream_generate(model, tokenizer, list(prompt), max_tokens=tokens)
    return [part.token for part in parts]


def encode_alone(folder: Path, text: str) -> list[int]:
    """The token ids of a text, without a chat template."""
    from mlx_lm.utils import load_tokenizer  # noqa: PLC0415

    return load_tokenizer(folder).encode(text)


def differing_steps(whole: Path, shares: Sequence[Path], cuts: Sequence[int]) -> list[int]:
    """See `helpers.sweep.differing_steps`."""
    from helpers import sweep  # noqa: PLC0415

    return sweep.differing_steps(whole, shares, cuts)


def kept_bytes(whole: Path) -> list[int]:
    """See `helpers.sweep.kept_bytes`."""
    from helpers import sweep  # noqa: PLC0415

    return sweep.kept_bytes(whole)
