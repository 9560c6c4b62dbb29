"""What a stage needs of memory with the library is what its room is reckoned with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.on_mlx import write_tiny
from kafila.compute import measure
from kafila.compute.cpu import library as cpu_library
from kafila.compute.formats import growth
from kafila.compute.measure import LIBRARY_RUNTIME_BYTES, RUNTIME_BYTES, TYPICAL_TOKENS, room_bytes
from kafila.compute.mlx_thread import MlxThread
from kafila.domain.model import ModelSpec
from kafila.weights.model_folder import read_model

pytestmark = [pytest.mark.mlx, pytest.mark.usefixtures("library")]

ROWS, CHUNK = 384, 128
LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 4000,
}

STAGE = """
import asyncio, json, sys
from pathlib import Path
from kafila.compute.cpu.library import is_usable
from kafila.compute.mlx_thread import MlxThread
from helpers.rings import Chat, open_ring

def memory(name):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

async def main(folder, rows, chunk):
    thread = MlxThread(Path(sys.argv[1]))
    await thread.run(is_usable)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmHWM")
    async with open_ring(thread, folder, ()) as ring:
        await Chat(ring).ask([number % 250 for number in range(rows)], 4, chunk=chunk)
    await thread.close()
    print(json.dumps(memory("VmHWM") - before))

asyncio.run(main(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
"""


def make_bfloat16(folder: Path) -> None:
    from helpers import cpu_families  # noqa: PLC0415

    cpu_families.make_bfloat16(folder)


def grown(folder: Path, kernels: Path) -> int:
    """Bytes by which a process grows, at most, that answers a prompt with a model."""
    paths = os.pathsep.join(str(folder) for folder in (Path(__file__).parents[2], Path(__file__).parents[3] / "app"))
    output = subprocess.run(
        [sys.executable, "-c", STAGE, str(kernels), str(folder), str(ROWS), str(CHUNK)],
        env=os.environ | {"PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output.splitlines()[-1])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the most memory that a process ever had")
async def test_a_stage_keeps_its_weights_once_and_as_they_are_stored(thread: MlxThread, tmp_path: Path) -> None:
    folder = await thread.run(lambda: write_tiny(tmp_path / "model", **LARGE))
    await thread.run(make_bfloat16, folder)
    spec = read_model(folder)
    caches = 2 * sum(spec.kv_bytes_per_token) * 512
    found = grown(folder, tmp_path / "kernels")
    assert found < spec.weight_bytes + caches + LIBRARY_RUNTIME_BYTES // 4


def test_room_is_reckoned_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = SimpleNamespace(available=12 << 30, total=16 << 30)
    monkeypatch.setattr(measure.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(measure, "control_groups_room", lambda: iter(()))
    left = (12 << 30) - (1 << 30)
    spec = spec_of_16_bits()
    assert room_bytes() == left - LIBRARY_RUNTIME_BYTES
    caches_grow = growth(spec, element_bytes=4, tokens=TYPICAL_TOKENS, as_stored=True)
    assert 1 < caches_grow < 1.1
    assert room_bytes(spec) == round((left - LIBRARY_RUNTIME_BYTES) / caches_grow)
    monkeypatch.setenv(cpu_library.OFF, "off")
    assert room_bytes() == left - RUNTIME_BYTES
    assert room_bytes(spec) < (left - RUNTIME_BYTES) / 1.9


def spec_of_16_bits() -> ModelSpec:
    """A model of 8 billion weights in 16 bits."""
    weights = 220_000_000
    return ModelSpec(
        name="model",
        family="llama",
        fingerprint="0" * 64,
        hidden_size=4096,
        block_bytes=(2 * weights,) * 32,
        block_flops=(2 * weights,) * 32,
        kv_bytes_per_token=(4096,) * 32,
        head_bytes=1,
        head_flops=1,
        head_resident_bytes=1,
        max_context=4096,
        element_bytes=2,
    )
