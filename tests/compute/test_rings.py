"""A ring answers what one computer alone would, token for token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.on_mlx import answer_alone, encode_alone, write_tiny
from helpers.rings import Chat, open_ring
from kafila.compute.mlx_thread import MlxThread

pytestmark = pytest.mark.mlx

OnThread = Callable[..., Any]

PROMPT = [ord(letter) for letter in "Once upon a time, there was"]


@pytest.fixture(scope="module")
def demo_prompt(on_thread: OnThread, demo: Path) -> list[int]:
    return on_thread(encode_alone, demo, "Once upon a time there was")


@pytest.fixture(scope="module")
def demo_answer(on_thread: OnThread, demo: Path, demo_prompt: list[int]) -> list[int]:
    return on_thread(answer_alone, demo, demo_prompt, 32)


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(), (13,), (10, 20), (1, 9, 28)], ids=len)
async def test_the_demo_s_model_divided_and_whole(
    thread: MlxThread,
    demo: Path,
    demo_prompt: list[int],
    demo_answer: list[int],
    cuts: tuple[int, ...],
) -> None:
    async with open_ring(thread, demo, cuts) as ring:
        assert sum(ring.resident) == ring.spec.weight_bytes
        answer = await Chat(ring).ask(demo_prompt, 32)
    assert answer == demo_answer
    assert len(answer) == 32


@pytest.mark.parametrize("bits", [None, 4, 8])
@pytest.mark.parametrize("cuts", [(), (2,), (1, 3), (1, 2, 3)], ids=len)
async def test_tiny_models_divided_and_whole(
    thread: MlxThread, tmp_path: Path, cuts: tuple[int, ...], bits: int | None
) -> None:
    folder = await thread.run(write_tiny, tmp_path / "tiny", bits=bits)
    async with open_ring(thread, folder, cuts) as ring:
        assert sum(ring.resident) == ring.spec.weight_bytes
        answer = await Chat(ring).ask(PROMPT, 40)
    assert answer == await thread.run(answer_alone, folder, PROMPT, 40)


async def test_a_tied_unembedding_is_resident_once(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(write_tiny, tmp_path / "tiny", tie_word_embeddings=True)
    async with open_ring(thread, folder, (2,)) as ring:
        assert sum(ring.resident) == ring.spec.weight_bytes
        answer = await Chat(ring).ask(PROMPT, 20)
    assert answer == await thread.run(answer_alone, folder, PROMPT, 20)


async def test_long_prompts_go_in_chunks(thread: MlxThread, tiny: Path) -> None:
    prompt = [number % 250 for number in range(400)]
    async with open_ring(thread, tiny, (1, 3)) as ring:
        answer = await Chat(ring).ask(prompt, 10, chunk=64)
    assert answer == await thread.run(answer_alone, tiny, prompt, 10)


async def test_the_next_turn_keeps_what_was_said_before(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (1, 3)) as ring:
        chat = Chat(ring)
        first = await chat.ask(PROMPT, 12)
        follow_up = [*PROMPT, *first, *b" And then?"]
        second = await chat.ask(follow_up, 12)
        assert chat.reused >= len(PROMPT) + len(first) - 1
    assert second == await thread.run(answer_alone, tiny, follow_up, 12)


async def test_a_stopped_answer_leaves_no_trace(thread: MlxThread, tiny: Path) -> None:
    async with open_ring(thread, tiny, (1, 3)) as ring:
        chat = Chat(ring)
        await chat.ask(PROMPT, 7)
        other = [*PROMPT[:10], *b"something else entirely"]
        answer = await chat.ask(other, 12)
        assert chat.reused == 10
    assert answer == await thread.run(answer_alone, tiny, other, 12)


async def test_an_edited_message_is_answered_as_if_it_had_always_been(thread: MlxThread, tiny: Path) -> None:
    edited = PROMPT.copy()
    edited[5] ^= 1
    async with open_ring(thread, tiny, (2,)) as ring:
        chat = Chat(ring)
        await chat.ask(PROMPT, 9)
        answer = await chat.ask(edited, 12)
        assert chat.reused == 5
        again = await chat.ask(PROMPT, 9)
    assert answer == await thread.run(answer_alone, tiny, edited, 12)
    assert again == await thread.run(answer_alone, tiny, PROMPT, 9)


async def test_chats_in_turns_do_not_meet(thread: MlxThread, tiny: Path) -> None:
    other = list(b"It was a dark and stormy night")
    async with open_ring(thread, tiny, (1, 3)) as ring:
        mine, yours = Chat(ring, 1), Chat(ring, 2)
        my_answer, your_answer = list[int](), list[int]()
        for _ in range(6):
            my_answer += await mine.ask([*PROMPT, *my_answer], 2)
            your_answer += await yours.ask([*other, *your_answer], 2)
    assert my_answer == await thread.run(answer_alone, tiny, PROMPT, 12)
    assert your_answer == await thread.run(answer_alone, tiny, other, 12)


async def test_a_recurrent_family_starts_anew_where_it_cannot_rewind(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(write_tiny, tmp_path / "delta", family="qwen3_next")
    async with open_ring(thread, folder, (1, 3)) as ring:
        answer = await Chat(ring).ask(PROMPT, 16)
    assert answer == await thread.run(answer_alone, folder, PROMPT, 16)
