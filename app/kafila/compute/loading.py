"""From a model folder to a `Stage` whose own weights are in memory, and no others.

Import this on the MLX thread only.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.utils import (
    _get_classes,  # pyright: ignore[reportPrivateUsage]  # the family's class, to watch it load
    load_model,
)

from kafila.compute.backend import compute_in_native_type
from kafila.compute.part import Part
from kafila.compute.stage import Stage, UnfitModelError
from kafila.domain.errors import Reason, UserError

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


def load_stage(folder: Path, part: Part, progress: Progress, *, name: str) -> tuple[Stage, int]:
    """The part's blocks (and the head's tensors) of the model in `folder`, with their bytes.

    `name` is what the model is called. The folder may hold only the tensors of the part. Raises
    UserError where one is missing.
    """
    model, loaded = _open_model(folder, name)
    try:
        stage = Stage(model, first=part.first, end=part.end)
    except UnfitModelError as error:
        raise UserError(
            title=f"The model “{name}” cannot be divided",
            advice="Pick a model of another family.",
            reason=Reason.MODEL,
        ) from error
    compute_in_native_type(model)
    steps = [stage.block_arrays(index) for index in range(part.first, part.end)]
    if part.head:
        steps.append(stage.head_arrays())
    _check_complete(name, steps, loaded)
    total = sum(array.nbytes for step in steps for array in step.values())
    done = 0
    for step in steps:
        mx.eval(step)
        done += sum(array.nbytes for array in step.values())
        progress(done, total)
    return stage, done


def _open_model(folder: Path, name: str) -> tuple[nn.Module, set[str]]:
    """The family's model with every tensor still unread, and the names of those in the folder."""
    loaded: set[str] = set()

    def watched_classes(config: dict[str, Any]) -> tuple[type[nn.Module], Any]:
        family, arguments = _get_classes(config)

        class Watched(family):
            def load_weights(self, file_or_weights: Any, *args: Any, **kwargs: Any) -> nn.Module:
                loaded.update(tensor for tensor, _ in file_or_weights)
                return super().load_weights(file_or_weights, *args, **kwargs)

        return Watched, arguments

    try:
        model, _ = load_model(folder, lazy=True, strict=False, get_model_classes=watched_classes)
    except Exception as error:  # What a broken file makes a family's code raise differs.
        raise _unreadable(name) from error
    return model, loaded


def _check_complete(name: str, steps: list[dict[str, mx.array]], loaded: set[str]) -> None:
    if any(tensor not in loaded for step in steps for tensor in step):
        raise _unreadable(name)


def _unreadable(name: str) -> UserError:
    return UserError(
        title=f"The model “{name}” cannot be loaded",
        advice="Its files do not fit together, or are not in MLX's format. Fetch the model again.",
        reason=Reason.MODEL,
    )
