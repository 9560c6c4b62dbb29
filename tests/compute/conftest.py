"""One MLX thread for all tests of this room, and the models that several of them run."""

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from helpers.on_mlx import write_tiny
from kafila.compute.demo_model import make_demo_model
from kafila.compute.mlx_thread import MlxThread


@pytest.fixture(scope="session")
def thread(tmp_path_factory: pytest.TempPathFactory) -> Generator[MlxThread]:
    thread = MlxThread(tmp_path_factory.mktemp("kernels"))
    yield thread
    asyncio.run(thread.close())


@pytest.fixture(scope="session")
def on_thread(thread: MlxThread) -> Callable[..., Any]:
    """Runs a function on the MLX thread, from a test or fixture that is not async."""

    def run(fn: Callable[..., Any], *args: Any) -> Any:
        return asyncio.run(thread.run(fn, *args))

    return run


@pytest.fixture(scope="session")
def demo(thread: MlxThread, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model."""
    return asyncio.run(make_demo_model(thread, tmp_path_factory.mktemp("models") / "demo"))


@pytest.fixture(scope="session")
def tiny(on_thread: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of four small blocks."""
    return on_thread(write_tiny, tmp_path_factory.mktemp("models") / "tiny")
