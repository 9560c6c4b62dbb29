"""`kafila demo --headless`: rings of one to four processes say what mlx-lm alone says."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import psutil
import pytest

from end_to_end.alone import Alone
from end_to_end.contract import Figures, check_ring, read_answer
from helpers.processes import Finished, Home

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(400)]

BLOCKS = 30
TOKENS = 32
PROMPT = "Tell me about the capital of France."

Run = Callable[[int], Finished]


@pytest.fixture(scope="session")
def run(demo_home: Home) -> Run:
    """The demo with so many members, which is run once for all tests."""

    @cache
    def once(members: int) -> Finished:
        how = {"--members": members, "--prompt": PROMPT, "--max-tokens": TOKENS, "--temperature": 0}
        options = [word for option in how.items() for word in option]
        return demo_home.run("demo", "--headless", "--json", *options, within_s=300)

    return once


@pytest.fixture(scope="session")
def model(run: Run, demo_home: Home) -> Path:
    """The demo's model, as the first run has made it."""
    assert run(1).code == 0, run(1).err
    (folder,) = demo_home.models.iterdir()
    return folder


@pytest.mark.parametrize("members", [1, 2, 3, 4])
class TestRing:
    def test_prints_one_object_and_nothing_else(self, run: Run, members: int) -> None:
        ran = run(members)
        assert ran.code == 0, ran.err
        assert "Traceback" not in ran.err
        assert ran.out.count("\n") == 1
        answer = read_answer(ran.out)
        assert answer.prompt == PROMPT
        check_figures(answer)

    def test_says_what_one_process_says(self, run: Run, members: int, alone: Alone, model: Path) -> None:
        answer = read_answer(run(members).out)
        expected = alone.answer(model, PROMPT, max_tokens=TOKENS)
        assert len(expected.token_ids) == TOKENS
        assert answer.token_ids == expected.token_ids
        assert answer.text == expected.text
        assert "Paris" in answer.text

    def test_holds_every_block_once(self, run: Run, members: int, alone: Alone, model: Path) -> None:
        answer = read_answer(run(members).out)
        check_ring(answer, blocks=BLOCKS, members=members)
        resident = sum(member.resident_weight_bytes for member in answer.members)
        assert resident == alone.weight_bytes(model)

    def test_takes_the_direct_way(self, run: Run, members: int) -> None:
        answer = read_answer(run(members).out)
        assert [edge.path for edge in answer.edges] == ["direct"] * len(answer.edges)

    def test_leaves_no_process_behind(self, run: Run, members: int) -> None:
        answer = read_answer(run(members).out)
        assert not [member.pid for member in answer.members if psutil.pid_exists(member.pid)]


def check_figures(answer: Figures) -> None:
    assert answer.tokens_per_second > 0
    assert answer.time_to_first_token_s > 0
    assert answer.forming_s > 0
    assert 0 < answer.circuit_ms.p50 <= answer.circuit_ms.p95
    # Every stage of a circuit reports its own time, and what is left was spent between them.
    assert 0 < answer.compute_ms_p50 <= answer.circuit_ms.p50
    assert 0 <= answer.in_flight_ms_p50 < answer.circuit_ms.p50
