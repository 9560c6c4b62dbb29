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
from itertools import zip_longest
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


def answers(folder: Path, numbers: Sequence[int], *, tokens: int = TOKENS) -> list[Answer]:
    """What is answered to some of the prompts, token by token, as a stage computes."""
    from kafila.compute.stage import Stage  # noqa: PLC0415

    model, prompts = _open(folder, numbers)
    stage = Stage(model, first=0, end=len(model.layers))
    caches, held = stage.new_caches(), list[int]()
    found: list[Answer] = []
    for prompt in prompts:
        # All prompts begin alike, and plain MLX takes its time.
        pairs = enumerate(zip_longest(held, prompt[:-1]))
        position = next((at for at, pair in pairs if pair[0] != pair[1]), len(held))
        for cache in caches:
            cache.trim(len(held) - position)
        answer, ids, held = Answer(tokens=[], margins=[]), prompt[position:], prompt[:position]
        for _ in range(tokens):
            logits = _through(stage, ids, caches, len(held), rows=1)
            held += ids
            ids = [_note(answer, logits[0])]
        found.append(answer)
    return found


def followed(folder: Path, numbers: Sequence[int]) -> list[Answer]:
    """What a stage finds likeliest behind each token of the recorded answers, each fed as a whole.

    As long as it is the next token of the answer, that is what would be answered token by token.
    """
    from kafila.compute.stage import Stage  # noqa: PLC0415

    model, prompts = _open(folder, numbers)
    stage = Stage(model, first=0, end=len(model.layers))
    texts = _with_answers(prompts, numbers)
    return [_noted(_through(stage, text, stage.new_caches(), 0, rows=TOKENS)) for text in texts]


def followed_together(folder: Path, numbers: Sequence[int]) -> list[Answer]:
    """The same with the whole model, all texts in one batch, operation by operation."""
    import mlx.core as mx  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415
    from mlx_lm.models.cache import BatchKVCache  # noqa: PLC0415

    from kafila.compute.backend import computing  # noqa: PLC0415

    model, prompts = _open(folder, numbers)
    texts = _with_answers(prompts, numbers)
    longest = max(map(len, texts))
    padding = [longest - len(text) for text in texts]
    ids = mx.array([[0] * before + text for before, text in zip(padding, texts, strict=True)])
    with computing():
        logits = model(ids, cache=[BatchKVCache(padding) for _ in model.layers])[:, -TOKENS:]
    mx.eval(logits)
    return [_noted(rows) for rows in np.array(logits)]


def steps_are_alike(folder: Path, number: int, *, tokens: int) -> bool:
    """Whether an answer's logits, token by token, are bit by bit those of the answer fed as a whole."""
    import numpy as np  # noqa: PLC0415

    from kafila.compute.stage import Stage  # noqa: PLC0415

    model, prompts = _open(folder, [number])
    stage = Stage(model, first=0, end=len(model.layers))
    text = _with_answers(prompts, [number])[0][: len(prompts[0]) + tokens - 1]
    whole = _through(stage, text, stage.new_caches(), 0, rows=tokens)
    caches, start = stage.new_caches(), len(prompts[0])
    single = [_through(stage, text[:start], caches, 0, rows=1)]
    single += [_through(stage, [text[at]], caches, at, rows=1) for at in range(start, len(text))]
    return bool(np.array_equal(np.concatenate(single), whole))


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


def _with_answers(prompts: Sequence[list[int]], numbers: Sequence[int]) -> list[list[int]]:
    """Prompts with their recorded answers, but for the last token."""
    known = recorded()
    return [prompt + known[number].tokens[: TOKENS - 1] for prompt, number in zip(prompts, numbers, strict=True)]


def _through(stage: Any, ids: list[int], caches: Any, position: int, *, rows: int) -> Any:
    """Logits behind the last rows."""
    import mlx.core as mx  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    hidden = stage.run(stage.embed(mx.array([ids]), position), caches, position)
    logits = stage.unembed(hidden[:, -rows:], position + len(ids) - rows)
    mx.eval(logits)
    return np.array(logits)[0]


def _noted(rows: Any) -> Answer:
    answer = Answer(tokens=[], margins=[])
    for row in rows:
        _note(answer, row)
    return answer


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
