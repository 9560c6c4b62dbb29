"""The library as it was built; where it was not, there is nothing to test."""

from collections.abc import Generator

import pytest

from kafila.compute.cpu import library as cpu_library
from kafila.compute.cpu.library import Kernels, Library


@pytest.fixture(scope="session")
def library() -> Generator[Library]:
    if not cpu_library.FILE.exists():
        pytest.skip("the library for processors was not built: there is no C compiler")
    loaded = Library()
    yield loaded
    loaded.close()


@pytest.fixture(params=Kernels, ids=lambda level: level.name.lower())
def each_kernels(library: Library, request: pytest.FixtureRequest) -> Generator[Library]:
    """The library with kernels of each level; those that this computer has."""
    library.use_kernels(request.param)
    yield library
    library.use_kernels(Kernels.AVX512)
