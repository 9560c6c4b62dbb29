"""The demo's model is made once, whole, whoever asks for it at the same time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.rings import Chat, open_ring
from kafila.compute import demo_model
from kafila.compute.demo_model import make_demo_model
from kafila.compute.mlx_thread import MlxThread
from kafila.domain.commands import ChatMessage
from kafila.domain.errors import UserError
from kafila.weights.index import read_index
from kafila.weights.model_folder import read_model

pytestmark = pytest.mark.mlx

APP = Path(__file__).parents[2] / "app"

MAKE = """
import asyncio, sys
from pathlib import Path
from kafila.compute.demo_model import make_demo_model
from kafila.compute.mlx_thread import MlxThread

async def main():
    thread = MlxThread(Path(sys.argv[1]) / "kernels")
    sys.stdin.readline()
    await make_demo_model(thread, Path(sys.argv[1]) / "models" / "demo")
    await thread.close()

asyncio.run(main())
"""


def empty(folder: Path) -> bool:
    return not list(folder.iterdir())


def test_it_is_a_model_like_others(demo: Path) -> None:
    spec = read_model(demo)
    assert (spec.family, spec.blocks, spec.hidden_size) == ("llama", 30, 576)
    assert spec.weight_bytes == sum(t.size for t in read_index(demo).tensors.values())
    assert 100 << 20 < spec.weight_bytes < 120 << 20
    # 106 million weights in the blocks, and 28 million in the embedding.
    assert sum(spec.block_flops) // 2 == 106_168_320
    assert spec.head_flops // 2 == 28_311_552
    assert spec.max_context == 8192
    assert json.loads((demo / "config.json").read_text())["quantization"]["bits"] == 4


@pytest.mark.slow
async def test_it_knows_the_capital_of_france(thread: MlxThread, demo: Path) -> None:
    async with open_ring(thread, demo, ()) as ring:
        messages = [ChatMessage(role="user", text="What is the capital of France?")]
        prompt = await ring.head.prompt_ids(messages)
        chat = Chat(ring)
        answer = await chat.ask(prompt, 12)
        assert chat.last is not None
        assert chat.last.ended
    assert chat.text == "The capital of France is Paris."
    assert len(answer) == 8


@pytest.mark.slow
def test_several_processes_may_make_it_at_once(tmp_path: Path, demo: Path) -> None:
    left_behind = tmp_path / "models" / ".demo-killed"
    left_behind.mkdir(parents=True)
    (left_behind / "model.safetensors").write_bytes(b"half")
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(tmp_path)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": str(APP), "PATH": ""},
        )
        for _ in range(3)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write(b"\n")
        maker.stdin.flush()
    for maker in makers:
        _, errors = maker.communicate()
        assert maker.returncode == 0, errors.decode()
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["demo"]
    made = read_index(tmp_path / "models" / "demo")
    assert made.fingerprint() == read_index(demo).fingerprint()


async def test_it_is_not_made_twice(thread: MlxThread, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert await make_demo_model(thread, tmp_path / "demo") == tmp_path / "demo"
    assert empty(tmp_path / "demo")


async def test_the_package_is_not_installed(thread: MlxThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_model, "_PACKAGE", "no_such_package")
    with pytest.raises(UserError) as refused:
        await make_demo_model(thread, tmp_path / "demo")
    assert "packaging/dev setup" in refused.value.problem.advice
    assert empty(tmp_path)


async def test_a_full_disk(thread: MlxThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_model, "_NEEDED_BYTES", 1 << 60)
    with pytest.raises(UserError) as refused:
        await make_demo_model(thread, tmp_path / "demo")
    assert "room" in refused.value.problem.advice
    assert empty(tmp_path)


async def test_a_file_where_folders_should_be(thread: MlxThread, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    with pytest.raises(UserError):
        await make_demo_model(thread, tmp_path / "models" / "demo")
