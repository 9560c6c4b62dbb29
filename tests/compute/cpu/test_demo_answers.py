"""The demo's model answers with the library as it does with plain MLX, token by token.

MLX's answers were recorded by `python tests/helpers/demo_answers.py record`; some of them are
computed anew here, by plain MLX in a process of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers import demo_answers
from kafila.compute.cpu.library import Library

pytestmark = [pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(600)]

Run = Callable[..., Any]
ALL = range(len(demo_answers.PROMPTS))
CHECKED, CHECKED_TOKENS = (0, 5, 12), 16
"""Which of MLX's answers are computed anew, and how far: MLX takes its time."""

PLAIN = """
import asyncio, json, sys
from pathlib import Path
from helpers import demo_answers
from kafila.compute.mlx_thread import MlxThread

async def main(folder, numbers, tokens):
    thread = MlxThread(Path(sys.argv[1]))
    found = await thread.run(demo_answers.answers, folder, numbers, tokens=tokens)
    await thread.close()
    print(json.dumps([answer.tokens for answer in found]))

asyncio.run(main(Path(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])))
"""


@pytest.fixture(autouse=True)
def used(library: Library, on_thread: Run) -> None:
    """The MLX thread computes with the library."""
    from kafila.compute import backend  # noqa: PLC0415

    assert on_thread(backend.library_in_use) == library.kernels


def found(on_thread: Run, demo: Path, numbers: Sequence[int], *, together: bool) -> list[demo_answers.Answer]:
    return on_thread(lambda: demo_answers.answers(demo, numbers, together=together))


def test_alone(on_thread: Run, demo: Path) -> None:
    wrong, excused = demo_answers.differences(found(on_thread, demo, ALL, together=False), demo_answers.recorded())
    assert (wrong, excused) == (0, 0)


def test_in_batches(on_thread: Run, demo: Path) -> None:
    for numbers in (range(5), range(5, 10)):
        expected = [demo_answers.recorded()[number] for number in numbers]
        wrong, excused = demo_answers.differences(found(on_thread, demo, numbers, together=True), expected)
        assert (wrong, excused) == (0, 0)


def test_what_was_recorded_is_what_mlx_answers(demo: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join(str(folder) for folder in (Path(__file__).parents[2], Path(__file__).parents[3] / "app"))
    output = subprocess.run(
        [sys.executable, "-c", PLAIN, str(tmp_path), str(demo), json.dumps(CHECKED), str(CHECKED_TOKENS)],
        env=os.environ | {"KAFILA_CPU_LIBRARY": "off", "PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    expected = [demo_answers.recorded()[number].tokens[:CHECKED_TOKENS] for number in CHECKED]
    assert json.loads(output.splitlines()[-1]) == expected
