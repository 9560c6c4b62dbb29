from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.model_files import LLAMA, llama_shapes, write_llama, write_raw, write_safetensors
from kafila.domain.errors import UserError
from kafila.weights.index import BrokenHeaderError, parse_header, read_header, read_index


def refusal(folder: Path) -> str:
    with pytest.raises(UserError) as refused:
        read_index(folder)
    return refused.value.problem.sentence()


@pytest.mark.parametrize("files", [1, 3])
def test_every_tensor_is_found_with_its_bytes(tmp_path: Path, files: int) -> None:
    folder = write_llama(tmp_path / "model", files=files)
    index = read_index(folder)
    assert {n: (t.dtype, t.shape) for n, t in index.tensors.items()} == llama_shapes()
    norm = index.tensors["model.norm.weight"]
    assert norm.size == 32
    assert len((folder / norm.file).read_bytes()[norm.start : norm.end]) == 32
    assert index.settings() == LLAMA


def test_the_fingerprint_is_of_the_model_not_of_its_files(tmp_path: Path) -> None:
    def fingerprint(name: str, seed: int = 0) -> str:
        return read_index(write_llama(tmp_path / name, seed=seed)).fingerprint()

    first = fingerprint("first")
    assert fingerprint("again") == first
    assert fingerprint("other weights", seed=1) != first
    longer = write_llama(tmp_path / "other config", config=LLAMA | {"rope_theta": 5.0})
    assert read_index(longer).fingerprint() != first


def test_the_fingerprint_does_not_depend_on_how_tensors_are_spread(tmp_path: Path) -> None:
    one = write_llama(tmp_path / "one")
    header = read_header(one / "model.safetensors")
    data = (one / "model.safetensors").read_bytes()
    turned = tmp_path / "turned"
    turned.mkdir()
    (turned / "config.json").write_bytes((one / "config.json").read_bytes())
    entries: dict[str, object] = {}
    body = b""
    for name in reversed(list(header)):
        tensor = header[name]
        entries[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [len(body), len(body) + tensor.size],
        }
        body += data[tensor.start : tensor.end]
    write_raw(turned / "model.safetensors", entries, body)
    assert read_index(turned).fingerprint() == read_index(one).fingerprint()


def test_a_missing_folder_and_a_folder_without_a_model(tmp_path: Path) -> None:
    assert "no model in “nowhere”" in refusal(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "no model in “empty”" in refusal(tmp_path / "empty")
    (tmp_path / "empty" / "config.json").write_text("{}")
    assert "no model in “empty”" in refusal(tmp_path / "empty")


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "no model in “file”" in refusal(tmp_path / "file")


@pytest.mark.parametrize("config", [b"", b"[]", b"{", b"\xff\xfe", b'{"a":' * 100_000])
def test_a_garbled_configuration(tmp_path: Path, config: bytes) -> None:
    folder = write_llama(tmp_path / "model")
    (folder / "config.json").write_bytes(config)
    assert "config.json" in refusal(folder)


@pytest.mark.parametrize("left", [0, 7, 8, 200, -1])
def test_a_truncated_file(tmp_path: Path, left: int) -> None:
    folder = write_llama(tmp_path / "model")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:left])
    sentence = refusal(folder)
    assert "incomplete or damaged" in sentence
    assert "model.safetensors" in sentence


def test_a_download_that_stopped_between_files(tmp_path: Path) -> None:
    folder = write_llama(tmp_path / "model", files=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert "incomplete or damaged" in refusal(folder)
    (folder / "model.safetensors.index.json").unlink()
    assert "incomplete or damaged" in refusal(folder)


def test_a_listed_tensor_that_no_file_holds(tmp_path: Path) -> None:
    folder = write_llama(tmp_path / "model")
    listing = '{"weight_map": {"model.layers.9.x": "model-extra.safetensors"}}'
    (folder / "model.safetensors.index.json").write_text(listing)
    assert "model-extra.safetensors" in refusal(folder)


GOOD = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}


@pytest.mark.parametrize(
    "entry",
    [
        GOOD | {"shape": [2, 3]},
        GOOD | {"shape": [-2, -2]},
        GOOD | {"shape": [1] * 9 + [4]},
        GOOD | {"shape": [2**40, 2**40]},
        GOOD | {"dtype": "F33"},
        GOOD | {"data_offsets": [16, 0]},
        GOOD | {"data_offsets": [-16, 0]},
        GOOD | {"data_offsets": [8, 24]},
        GOOD | {"data_offsets": [0]},
        {"dtype": "F32"},
        [],
        None,
    ],
)
def test_a_header_that_does_not_fit(tmp_path: Path, entry: object) -> None:
    write_raw(tmp_path / "model.safetensors", {"a": entry}, bytes(16))
    with pytest.raises(BrokenHeaderError):
        read_header(tmp_path / "model.safetensors")


def test_tensors_that_overlap(tmp_path: Path) -> None:
    write_raw(tmp_path / "model.safetensors", {"a": GOOD, "b": GOOD}, bytes(16))
    with pytest.raises(BrokenHeaderError):
        read_header(tmp_path / "model.safetensors")


def test_metadata_is_no_tensor(tmp_path: Path) -> None:
    entries = {"__metadata__": {"format": "mlx"}, "a": GOOD}
    write_raw(tmp_path / "model.safetensors", entries, bytes(16))
    assert list(read_header(tmp_path / "model.safetensors")) == ["a"]


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_lie_inside_the_file(header: bytes) -> None:
    try:
        tensors = parse_header(header, file="model.safetensors", file_bytes=4096)
    except BrokenHeaderError:
        return
    assert all(8 + len(header) <= t.start <= t.end <= 4096 for t in tensors.values())


def test_an_empty_tensor_is_a_tensor(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (0, 4)), "b": ("U8", (3,))})
    tensors = read_header(tmp_path / "model.safetensors")
    assert tensors["a"].size == 0
    assert tensors["b"].size == 3
