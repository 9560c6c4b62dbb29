"""Tests that make their own Internet. Where that cannot be, they say why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from helpers.processes import Homes, homes_in
from natlab.namespaces import why_not_here


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """Asks mlx-lm, in a process without Kafila."""
    alone = Alone(tmp_path_factory.mktemp("alone"))
    yield alone
    alone.close()


@pytest.fixture(scope="session")
def tiny(alone: Alone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model, which takes no time."""
    return alone.make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    """Homes for one test."""
    with homes_in(tmp_path) as homes:
        yield homes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip with the reason, rather than fail, where networks cannot be made."""
    reason = why_not_here()
    for item in items:
        if item.path.parent.name == "nat":
            item.add_marker(pytest.mark.nat)
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
