"""What the demo's model answers, greedily: by plain MLX, recorded in a file, and by whatever runs now.

`python tests/helpers/demo_answers.py record` writes the file anew, with the library for processors
switched off. Import this on the MLX thread only.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "compute" / "cpu" / "demo_answers.json"
TOKENS = 64
CLOSE = 1e-3
"""Where the two likeliest tokens are as close as this, either is a right answer."""

PROMPTS = (
    "What is the capital of France?",
    "Explain in a few sentences why the sky is blue.",
    "Write a haiku about rain.",
    "How do I make a cup of tea?",
    "Name three animals that live in the sea.",
    "What is 7 times 8?",
    "Tell me a short story about a lantern.",
    "Why do leaves fall in autumn?",
    "Write a Python function that adds two numbers.",
    "What is the difference between a comet and an asteroid?",
    "Translate “good morning” into Spanish.",
    "Give me a recipe with eggs and tomatoes.",
    "Who wrote Romeo and Juliet?",
    "How does a bicycle stay upright?",
    "List the planets of the solar system.",
    "What should I pack for a week of camping?",
    "Describe the colour green to somebody who cannot see.",
    "What is a neural network?",
    "Write a polite e-mail that asks for a day off.",
    "How far is the moon from the earth?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Token ids of an answer, and by how much each was likelier than the next."""

    tokens: list[int]
    margins: list[float]


def recorded() -> list[Answer]:
    """Plain MLX's answers to all prompts."""
    return [Answer(**answer) for answer in json.loads(FILE.read_text(encoding="utf-8"))]


def answers(folder: Path, numbers: Sequence[int], *, tokens: int = TOKENS, together: bool = False) -> list[Answer]:
    """What is answered to some of the prompts: one after another, as a stage computes; or in one
    batch, operation by operation.
    """
    from kafila.compute.backend import take_blocks  # noqa: PLC0415

    model, prompts = _open(folder, numbers)
    if together:
        return _together(model, prompts, tokens)
    take_blocks(model)
    return [_answer(model, prompt, tokens) for prompt in prompts]


def differences(found: Sequence[Answer], expected: Sequence[Answer]) -> tuple[int, int]:
    """How many answers part from what was expected, where that is not excused; and where it is."""
    wrong, excused = 0, 0
    for one, other in zip(found, expected, strict=True):
        parting = next(
            (i for i, pair in enumerate(zip(one.tokens, other.tokens, strict=False)) if pair[0] != pair[1]), None
        )
        if parting is not None:
            close = other.margins[parting] < CLOSE
            wrong, excused = wrong + (not close), excused + close
    return wrong, excused


def _open(folder: Path, numbers: Sequence[int]) -> tuple[Any, list[list[int]]]:
    from mlx_lm.utils import load_model, load_tokenizer  # noqa: PLC0415

    from kafila.compute.backend import compute_in_native_type  # noqa: PLC0415

    model, _ = load_model(folder, lazy=True)
    compute_in_native_type(model)
    tokenizer = load_tokenizer(folder)
    turns = [[{"role": "user", "content": PROMPTS[number]}] for number in numbers]
    return model, [list(tokenizer.apply_chat_template(turn, add_generation_prompt=True)) for turn in turns]


def _answer(model: Any, prompt: list[int], tokens: int) -> Answer:
    import mlx.core as mx  # noqa: PLC0415
    from mlx_lm.models.cache import make_prompt_cache  # noqa: PLC0415

    caches = make_prompt_cache(model)
    answer = Answer(tokens=[], margins=[])
    ids = prompt
    for _ in range(tokens):
        logits = _logits(model, mx.array([ids]), caches)[0]
        ids = [_note(answer, logits)]
    return answer


def _together(model: Any, prompts: list[list[int]], tokens: int) -> list[Answer]:
    import mlx.core as mx  # noqa: PLC0415
    from mlx_lm.models.cache import BatchKVCache  # noqa: PLC0415

    longest = max(map(len, prompts))
    padding = [longest - len(prompt) for prompt in prompts]
    caches = [BatchKVCache(padding) for _ in model.layers]
    found = [Answer(tokens=[], margins=[]) for _ in prompts]
    ids = mx.array([[0] * before + prompt for before, prompt in zip(padding, prompts, strict=True)])
    for _ in range(tokens):
        rows = _logits(model, ids, caches)
        ids = mx.array([[_note(answer, row)] for answer, row in zip(found, rows, strict=True)])
    return found


def _logits(model: Any, ids: Any, caches: Any) -> Any:
    import mlx.core as mx  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    from kafila.compute.backend import computing  # noqa: PLC0415

    with computing():
        logits = model(ids, cache=caches)[:, -1]
    mx.eval(logits)
    return np.array(logits)


def _note(answer: Answer, logits: Any) -> int:
    second, first = sorted(logits.argpartition(-2)[-2:], key=lambda token: logits[token])
    answer.tokens.append(int(first))
    answer.margins.append(round(float(logits[first] - logits[second]), 5))
    return answer.tokens[-1]


async def _record() -> None:
    from kafila.compute.demo_model import make_demo_model  # noqa: PLC0415
    from kafila.compute.mlx_thread import MlxThread  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        thread = MlxThread(Path(folder) / "kernels")
        model = await make_demo_model(thread, Path(folder) / "models" / "demo")
        found = await thread.run(answers, model, range(len(PROMPTS)))
        await thread.close()
    lines = [json.dumps({"tokens": answer.tokens, "margins": answer.margins}) for answer in found]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    os.environ["KAFILA_CPU_LIBRARY"] = "off"
    asyncio.run(_record())
