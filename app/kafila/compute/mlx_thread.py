"""The one thread that owns MLX: arrays are made, evaluated and dropped here and nowhere else.

An MLX array that is not evaluated yet belongs to the thread that recorded it, and each thread
that ever touches MLX costs an operating-system thread for the life of the process. So there is
one, and only bytes, numbers and text leave it.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import ParamSpec, TypeVar

from kafila.domain.errors import Reason, UserError

P = ParamSpec("P")
T = TypeVar("T")

OPEN_FILES = 2048
"""Open files to allow for, where the system's default is lower: a large model has many."""


class MlxThread:
    """Runs functions one after another on the thread that owns MLX.

    `kernels` is a folder of this user alone, where back ends that compile kernels at run time
    keep them: by default that is a predictable path in the shared temporary folder, and what
    lies there is loaded and run. The thread starts, and imports mlx-lm, with the first call.
    """

    def __init__(self, kernels: Path) -> None:
        self._kernels = kernels
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="mlx")
        self._start: Future[None] | None = None

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn` on the MLX thread and wait for its result.

        Raises UserError where MLX does not run on this computer.
        """
        start = self._start
        if start is None:
            start = self._start = self._executor.submit(_start, self._kernels)

        def after_start() -> T:
            start.result()
            return fn(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._executor, after_start)

    async def close(self) -> None:
        """End the thread after what it is doing. Nothing can be run any more."""
        if self._start is not None:
            await asyncio.get_running_loop().run_in_executor(self._executor, _finish, self._start)
        self._executor.shutdown(wait=True)


def _start(kernels: Path) -> None:
    kernels.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(kernels)
    # A model folder is complete or it is refused: nothing of it is looked up on a network.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        _import_mlx_lm()
        import_module("kafila.compute.backend").start()
    except (ImportError, OSError) as error:
        raise UserError(
            title="This computer cannot run models",
            advice="MLX does not start. Run “packaging/dev setup” again, which picks what fits.",
            reason=Reason.MACHINE,
        ) from error


def _finish(start: Future[None]) -> None:
    if start.exception() is None:
        import_module("kafila.compute.backend").finish()


def _no_limit(_resource: int, _limits: tuple[int, int]) -> None:
    """What mlx-lm calls while it is imported, instead of setting a limit."""


def _import_mlx_lm() -> None:
    """Import mlx-lm without its change of the process's limit of open files.

    It lowers the hard limit, which cannot be undone without privileges, and fails where the
    hard limit is lower already.
    """
    try:
        import_module("resource")
    except ImportError:  # Windows has no such limits, nor the module.
        import_module("mlx_lm")
        return
    import resource  # noqa: PLC0415

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    set_limit = resource.setrlimit
    resource.setrlimit = _no_limit
    try:
        import_module("mlx_lm")
    finally:
        resource.setrlimit = set_limit
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
