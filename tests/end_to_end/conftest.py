"""Homes for processes, the models that they run, and mlx-lm alone to compare them with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from helpers.processes import Home, Homes, homes_in


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """Asks mlx-lm, in a process without Kafila."""
    alone = Alone(tmp_path_factory.mktemp("alone"))
    yield alone
    alone.close()


@pytest.fixture(scope="session")
def tiny(alone: Alone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Llama of four small blocks; what it says is no language, and always the same."""
    return alone.make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which the demo's model is made once."""
    with homes_in(tmp_path_factory.mktemp("demo")) as homes:
        yield homes.new()


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    """Homes for one test."""
    with homes_in(tmp_path) as homes:
        yield homes


@pytest.fixture
def home(homes: Homes) -> Home:
    """One home for one test."""
    return homes.new()
