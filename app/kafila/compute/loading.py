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
from kafila.compute.stage import Stage
from kafila.domain.errors import UserError

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


def load_stage(folder: Path, part: Part, progress: Progress) -> tuple[Stage, int]:
    """The part's blocks (and the head's tensors) of the model in `folder`, with their bytes.

    The folder may hold only the tensors of the part. Raises UserError where one is missing.
    """
    model, loaded = _open_model(folder)
    stage = Stage(model, first=part.first, end=part.end)
    compute_in_native_type(model)
    steps = [stage.block_arrays(index) for index in range(part.first, part.end)]
    if part.head:
        steps.append(stage.head_arrays())
    _check_complete(folder, steps, loaded)
    total = sum(array.nbytes for step in steps for array in step.values())
    done = 0
    for step in steps:
        mx.eval(step)
        done += sum(array.nbytes for array in step.values())
        progress(done, total)
    return stage, done


def _open_model(folder: Path) -> tuple[nn.Module, set[str]]:
    """The family's model with every tensor still unread, and the names of those in the folder."""
    loaded: set[str] = set()

    def watched_classes(config: dict[str, Any]) -> tuple[type[nn.Module], type]:
        family, arguments = _get_classes(config)

        class Watched(family):
            def load_weights(self, file_or_weights: Any, *args: Any, **kwargs: Any) -> nn.Module:
                loaded.update(name for name, _ in file_or_weights)
                return super().load_weights(file_or_weights, *args, **kwargs)

        return Watched, arguments

    try:
        model, _ = load_model(folder, lazy=True, strict=False, get_model_classes=watched_classes)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise _unreadable(folder) from error
    return model, loaded


def _check_complete(folder: Path, steps: list[dict[str, mx.array]], loaded: set[str]) -> None:
    if any(name not in loaded for step in steps for name in step):
        raise _unreadable(folder)


def _unreadable(folder: Path) -> UserError:
    return UserError(
        title=f"The model in “{folder.name}” cannot be loaded",
        advice="Its files do not fit together, or are not in MLX's format. Fetch the model again.",
    )
