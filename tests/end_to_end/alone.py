"""A process of its own that asks mlx-lm alone, with nothing of Kafila: what rings are compared with.

One JSON request a line on its input, one reply a line on its output, until the input ends.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import kafila


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAlone:
    """What one process answers."""

    token_ids: tuple[int, ...]
    text: str


class Alone:
    """Asks the process; it starts with the first question."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._child: subprocess.Popen[str] | None = None
        self._answers: dict[str, dict[str, Any]] = {}

    def make_tiny(self, folder: Path, **how: Any) -> Path:
        """A tiny model, see `helpers.tiny_models.write_tiny_model`."""
        self._ask({"do": "tiny", "folder": str(folder), "how": how})
        return folder

    def answer(self, folder: Path, *turns: str, max_tokens: int) -> AnswerAlone:
        """The greedy answer to a conversation in which the two sides take turns."""
        reply = self._ask({"do": "answer", "folder": str(folder), "turns": turns, "max_tokens": max_tokens})
        return AnswerAlone(token_ids=tuple(reply["token_ids"]), text=reply["text"])

    def hidden_states(self, folder: Path, prompt: str) -> list[bytes]:
        """For every block and every token of the prompt, what goes from this block to the next."""
        reply = self._ask({"do": "hidden", "folder": str(folder), "turns": [prompt]})
        return [bytes.fromhex(row) for row in reply["rows"]]

    def weight_bytes(self, folder: Path) -> int:
        """The size of all weights, each once."""
        return self._ask({"do": "size", "folder": str(folder)})["bytes"]

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.communicate(timeout=60)

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        line = json.dumps(request)
        if line not in self._answers:
            self._answers[line] = self._ask_anew(line)
        return self._answers[line]

    def _ask_anew(self, request: str) -> dict[str, Any]:
        child = self._child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(request + "\n")
        child.stdin.flush()
        line = child.stdout.readline()
        assert line, "mlx-lm ended"
        return json.loads(line)

    def _start(self) -> subprocess.Popen[str]:
        paths = (Path(kafila.__file__).parents[1], Path(__file__).parents[1])
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "TMPDIR": str(self._scratch),
            "HF_HUB_OFFLINE": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "end_to_end.alone"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


# In the process itself: MLX is imported here, and not while tests are collected ----------------------------


def _tiny(request: dict[str, Any]) -> dict[str, object]:
    from helpers.tiny_models import write_tiny_model  # noqa: PLC0415

    write_tiny_model(Path(request["folder"]), **request["how"])
    return {}


@cache
def _loaded(folder: str) -> tuple[Any, Any]:
    from mlx_lm import load  # noqa: PLC0415

    model, tokenizer, *_ = load(folder)
    return model, tokenizer


def _prompt(request: dict[str, Any]) -> list[int]:
    turns = request["turns"]
    messages = [{"role": "assistant" if place % 2 else "user", "content": turn} for place, turn in enumerate(turns)]
    return _loaded(request["folder"])[1].apply_chat_template(messages, add_generation_prompt=True)


def _answer(request: dict[str, Any]) -> dict[str, object]:
    from mlx_lm import stream_generate  # noqa: PLC0415

    model, tokenizer = _loaded(request["folder"])
    parts = list(stream_generate(model, tokenizer, _prompt(request), max_tokens=request["max_tokens"]))
    return {"token_ids": [part.token for part in parts], "text": "".join(part.text for part in parts)}


def _hidden(request: dict[str, Any]) -> dict[str, object]:
    import mlx.core as mx  # noqa: PLC0415

    model = _loaded(request["folder"])[0].model
    rows: list[str] = []
    hidden = model.embed_tokens(mx.array([_prompt(request)]))
    for layer in model.layers:
        hidden = layer(hidden, "causal", None)
        mx.eval(hidden)
        rows += [bytes(memoryview(row)).hex() for row in hidden[0].astype(mx.float32)]
    return {"rows": rows}


def _size(request: dict[str, Any]) -> dict[str, object]:
    from mlx.utils import tree_flatten  # noqa: PLC0415

    arrays: dict[str, Any] = dict(tree_flatten(_loaded(request["folder"])[0].parameters()))
    return {"bytes": sum(array.nbytes for array in arrays.values())}


def _serve() -> None:
    import mlx.core as mx  # noqa: PLC0415

    if mx.default_device().type == mx.DeviceType.cpu:
        # Results are the same, bit by bit, and no compiler runs.
        mx.disable_compile()
    deeds = {"tiny": _tiny, "answer": _answer, "hidden": _hidden, "size": _size}
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        print(json.dumps(deeds[request["do"]](request)), flush=True)  # noqa: T201
    mx.synchronize()
    mx.clear_streams()


if __name__ == "__main__":
    _serve()
