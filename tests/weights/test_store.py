from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from helpers.model_files import LLAMA, llama_shapes, write_llama
from kafila.domain.errors import PeerError, UserError
from kafila.domain.model import ModelSpec
from kafila.weights import store as store_module
from kafila.weights.index import read_header
from kafila.weights.model_folder import read_model
from kafila.weights.ranges import ReadRange
from kafila.weights.source import LISTING, ModelSource
from kafila.weights.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable


class Other:
    """Another computer that has the model, and what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self._source = ModelSource(folder)
        self.asked: list[tuple[str, int, int]] = []
        self.answer: Callable[[str, bytes], bytes] = lambda _, data: data

    async def read(self, file: str, start: int, end: int) -> bytes:
        self.asked.append((file, start, end))
        return self.answer(file, self._source.read(file, start, end))

    def weight_bytes(self) -> int:
        return sum(end - start for file, start, end in self.asked if "model" in file and start > 8)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "theirs" / "model", files=2)


@pytest.fixture
def spec(model: Path) -> ModelSpec:
    return read_model(model)


@pytest.fixture
def other(model: Path) -> Other:
    return Other(model)


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


class Counted:
    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))


async def fetch(
    store: ModelStore, spec: ModelSpec, read: ReadRange, first: int, end: int, *, head: bool = False
) -> tuple[Path, Counted]:
    progress = Counted()
    folder = await store.folder_for(spec, first=first, end=end, head=head, read=read, progress=progress)
    return folder, progress


def tensors_in(folder: Path) -> dict[str, bytes]:
    """Every tensor of a folder, with its bytes."""
    found: dict[str, bytes] = {}
    for file in folder.glob("model*.safetensors"):
        data = file.read_bytes()
        found |= {t.name: data[t.start : t.end] for t in read_header(file).values()}
    return found


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


async def test_a_share_holds_its_own_tensors_bit_for_bit(
    store: ModelStore, spec: ModelSpec, other: Other, model: Path
) -> None:
    folder, progress = await fetch(store, spec, other.read, 1, 3)
    whole = tensors_in(model)
    wanted = {n for n in whole if n.startswith(("model.layers.1.", "model.layers.2."))}
    assert tensors_in(folder) == {name: whole[name] for name in wanted}
    assert (folder / "config.json").read_bytes() == (model / "config.json").read_bytes()
    total = sum(spec.block_bytes[1:3])
    assert progress.seen[0] == (0, total)
    assert progress.seen[-1] == (total, total)
    assert progress.seen == sorted(progress.seen)
    assert "tokenizer.json" not in files_in(folder)


async def test_the_head_also_gets_the_tokenizer_and_never_code(
    store: ModelStore, spec: ModelSpec, other: Other, model: Path
) -> None:
    folder, _ = await fetch(store, spec, other.read, 0, 4, head=True)
    assert tensors_in(folder) == tensors_in(model)
    assert (folder / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes()
    assert "secret.py" not in files_in(folder)


async def test_no_byte_of_other_blocks_is_asked_for(store: ModelStore, spec: ModelSpec, other: Other) -> None:
    await fetch(store, spec, other.read, 1, 2)
    assert other.weight_bytes() == spec.block_bytes[1]


async def test_a_new_plan_fetches_only_what_is_missing(store: ModelStore, spec: ModelSpec, other: Other) -> None:
    await fetch(store, spec, other.read, 0, 2)
    other.asked.clear()
    _, progress = await fetch(store, spec, other.read, 1, 3)
    assert other.weight_bytes() == spec.block_bytes[2]
    assert progress.seen[-1] == (spec.block_bytes[2], spec.block_bytes[2])
    other.asked.clear()
    _, progress = await fetch(store, spec, other.read, 0, 3)
    assert not other.asked
    assert not progress.seen


async def test_a_whole_model_that_is_kept_needs_nobody(
    store: ModelStore, spec: ModelSpec, other: Other, tmp_path: Path
) -> None:
    kept = write_llama(tmp_path / "models" / "any name", files=2)
    assert store.find_whole(spec.fingerprint) == kept
    folder, _ = await fetch(store, spec, other.read, 0, 4, head=True)
    assert folder == kept
    assert not other.asked
    assert store.find_whole("0" * 64) is None


async def test_rot_on_the_disk_is_fetched_anew(store: ModelStore, spec: ModelSpec, other: Other, model: Path) -> None:
    folder, _ = await fetch(store, spec, other.read, 1, 3)
    file = folder / "model-block-00002.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    other.asked.clear()
    await fetch(store, spec, other.read, 1, 3)
    assert other.weight_bytes() == spec.block_bytes[2]
    whole = tensors_in(model)
    assert all(whole[name] == data for name, data in tensors_in(folder).items())


@pytest.mark.parametrize("file", ["index.json", "config.json"])
async def test_a_damaged_note_is_written_anew(store: ModelStore, spec: ModelSpec, other: Other, file: str) -> None:
    folder, _ = await fetch(store, spec, other.read, 1, 2)
    (folder / file).write_bytes(b"{}")
    await fetch(store, spec, other.read, 1, 2)
    other.asked.clear()
    await fetch(store, spec, other.read, 1, 2)
    assert not other.asked


async def test_a_short_answer_leaves_nothing_half_made(
    store: ModelStore, spec: ModelSpec, other: Other, tmp_path: Path
) -> None:
    await fetch(store, spec, other.read, 0, 1)
    before = files_in(tmp_path / "models")
    other.answer = lambda _, data: data[:-1]
    with pytest.raises(PeerError):
        await fetch(store, spec, other.read, 1, 2)
    assert files_in(tmp_path / "models") == before


async def test_what_was_fetched_before_an_interruption_is_kept(
    store: ModelStore, spec: ModelSpec, other: Other
) -> None:
    pieces = 0

    async def breaks_off(file: str, start: int, end: int) -> bytes:
        nonlocal pieces
        pieces += file.startswith("model") and start > 8
        if pieces > 5:
            message = "gone"
            raise ConnectionError(message)
        return await other.read(file, start, end)

    with pytest.raises(ConnectionError):
        await fetch(store, spec, breaks_off, 0, 4)
    other.asked.clear()
    await fetch(store, spec, other.read, 0, 4)
    assert other.weight_bytes() < sum(spec.block_bytes)


async def test_another_model_than_the_plans_is_refused(store: ModelStore, spec: ModelSpec, tmp_path: Path) -> None:
    impostor = Other(write_llama(tmp_path / "impostor", files=2, seed=5))
    with pytest.raises(PeerError):
        await fetch(store, spec, impostor.read, 0, 1)
    assert not files_in(tmp_path / "models")


@pytest.mark.parametrize("fingerprint", ["", "../../etc", "g" * 64, "A" * 64])
async def test_a_fingerprint_is_no_path(store: ModelStore, spec: ModelSpec, other: Other, fingerprint: str) -> None:
    with pytest.raises(PeerError):
        await fetch(store, msgspec.structs.replace(spec, fingerprint=fingerprint), other.read, 0, 1)


@pytest.mark.parametrize(
    "listing",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"weights": {}, "texts": {"config.json": 3}, "content": ""}',
        b'{"weights": {"model.safetensors": 90}, "texts": {}, "content": ""}',
        b'{"weights": {"model.safetensors": -1}, "texts": {"config.json": 3}, "content": ""}',
        b'{"weights": {"../model.safetensors": 9}, "texts": {"config.json": 3}, "content": ""}',
        b'{"weights": {"model.safetensors": 9}, "texts": {"config.json": 99999999999}, "content": ""}',
        b'{"weights": {"model.safetensors": 9}, "texts": {"config.json": 3, "a.py": 1}, "content": ""}',
    ],
)
async def test_a_listing_that_cannot_be_one(store: ModelStore, spec: ModelSpec, listing: bytes) -> None:
    framed = len(listing).to_bytes(8, "little") + listing

    async def read(file: str, start: int, end: int) -> bytes:
        return framed[start:end] if file == LISTING else bytes(end - start)

    with pytest.raises(PeerError):
        await fetch(store, spec, read, 0, 1)


async def test_a_listing_without_end(store: ModelStore, spec: ModelSpec) -> None:
    async def read(_: str, start: int, end: int) -> bytes:
        return b"\xff" * (end - start)

    with pytest.raises(PeerError):
        await fetch(store, spec, read, 0, 1)


async def test_a_full_disk_says_so_and_leaves_nothing(
    store: ModelStore,
    spec: ModelSpec,
    other: Other,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_module, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(UserError) as refused:
        await fetch(store, spec, other.read, 0, 1)
    assert "Make room" in refused.value.problem.advice
    assert not any(name.startswith("model") for name in files_in(tmp_path / "models"))


async def test_a_root_that_cannot_be_written(spec: ModelSpec, other: Other, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError):
        await fetch(ModelStore(tmp_path / "file"), spec, other.read, 0, 1)


@pytest.mark.parametrize(
    ("file", "start", "end"),
    [
        ("model-00001-of-00002.safetensors", 0, 0),
        ("model-00001-of-00002.safetensors", -8, 0),
        ("model-00001-of-00002.safetensors", 8, 4),
        ("model-00001-of-00002.safetensors", 0, 1 << 30),
        ("secret.py", 0, 4),
        ("model.safetensors.index.json", 0, 4),
        ("../model/config.json", 0, 4),
        ("/etc/passwd", 0, 4),
        ("", 0, 4),
    ],
)
def test_a_source_gives_nothing_but_the_model(model: Path, file: str, start: int, end: int) -> None:
    with pytest.raises(PeerError):
        ModelSource(model).read(file, start, end)


async def test_a_large_tensor_comes_in_pieces(tmp_path: Path, store: ModelStore) -> None:
    shapes = llama_shapes()
    wide = LLAMA | {"vocab_size": 90_000}
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        shapes[name] = ("F32", (90_000, 8))
    folder = write_llama(tmp_path / "wide", config=wide, shapes=shapes)
    other = Other(folder)
    fetched, progress = await fetch(store, read_model(folder), other.read, 0, 1, head=True)
    assert max(end - start for _, start, end in other.asked) == 1 << 20
    whole = tensors_in(folder)
    assert all(whole[name] == data for name, data in tensors_in(fetched).items())
    assert len(progress.seen) > 5
