"""The demo's model answers with the library as it does with plain MLX, token by token.

An answer fed as a whole tells what each of its tokens would have been followed by: as long as all
are those recorded, so is what would be answered token by token, and it takes a fifth of the time.

MLX's answers were recorded by `python tests/helpers/demo_answers.py record`; some of them are
computed anew here, by plain MLX in a process of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import demo_answers
from kafila.compute.cpu.library import Library

pytestmark = [pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(600)]

Run = Callable[..., Any]
ALL = range(len(demo_answers.PROMPTS))
BATCH = 5
CHECKED = (0, 5, 12)
"""Which of MLX's answers are computed anew: MLX takes its time."""

PLAIN = """
import asyncio, json, sys
from pathlib import Path
from helpers import demo_answers
from kafila.compute.mlx_thread import MlxThread

async def main(folder, numbers):
    thread = MlxThread(Path(sys.argv[1]))
    found = await thread.run(demo_answers.answers, folder, numbers)
    await thread.close()
    print(json.dumps([answer.tokens for answer in found]))

asyncio.run(main(Path(sys.argv[2]), json.loads(sys.argv[3])))
"""


@pytest.fixture(autouse=True)
def used(library: Library, on_thread: Run) -> None:
    """The MLX thread computes with the library."""
    from kafila.compute import backend  # noqa: PLC0415

    seam = on_thread(backend.seam)
    assert seam.library.kernels == library.kernels


def test_alone(on_thread: Run, demo: Path) -> None:
    found = on_thread(lambda: demo_answers.followed(demo, ALL))
    assert demo_answers.differences(found, demo_answers.recorded()) == (0, 0)


def test_token_by_token_it_is_the_same_bit_for_bit(on_thread: Run, demo: Path) -> None:
    assert on_thread(lambda: demo_answers.steps_are_alike(demo, 3, tokens=demo_answers.TOKENS))
    found = on_thread(lambda: demo_answers.answers(demo, ALL))
    assert demo_answers.differences(found, demo_answers.recorded()) == (0, 0)


@pytest.mark.parametrize("first", range(0, len(ALL), BATCH))
def test_in_batches(on_thread: Run, demo: Path, first: int) -> None:
    numbers = ALL[first : first + BATCH]
    found = on_thread(lambda: demo_answers.followed_together(demo, numbers))
    expected = [demo_answers.recorded()[number] for number in numbers]
    assert demo_answers.differences(found, expected) == (0, 0)


def test_what_was_recorded_is_what_mlx_answers(demo: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join(str(folder) for folder in (Path(__file__).parents[2], Path(__file__).parents[3] / "app"))
    output = subprocess.run(
        [sys.executable, "-c", PLAIN, str(tmp_path), str(demo), json.dumps(CHECKED)],
        env=os.environ | {"KAFILA_CPU_LIBRARY": "off", "PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = [demo_answers.recorded()[number].tokens for number in CHECKED]
    assert json.loads(output.splitlines()[-1]) == expected
