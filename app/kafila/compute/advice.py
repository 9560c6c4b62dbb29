"""How a model's makers advise to choose words: generation_config.json, where the folder has one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Sampling as advised."""

    temperature: float = 0.7
    top_p: float = 0.95


def read_advice(folder: Path) -> Advice:
    """The advice of a model's folder; the usual where there is none, or none that can be."""
    usual = Advice()
    path = folder / "generation_config.json"
    try:
        if path.stat().st_size > MAX_BYTES:
            return usual
        advised: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return usual
    if not isinstance(advised, dict):
        return usual
    values = cast("dict[str, object]", advised)
    if values.get("do_sample") is False:
        return Advice(temperature=0.0, top_p=1.0)
    return Advice(
        temperature=_bounded(values.get("temperature"), usual.temperature, most=2.0),
        top_p=_bounded(values.get("top_p"), usual.top_p, most=1.0),
    )


def _bounded(value: object, usual: float, *, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return usual
    return float(value) if 0.0 <= value <= most else usual
