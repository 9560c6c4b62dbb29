from pathlib import Path
from typing import Any

import pytest

from helpers.model_files import LLAMA, llama_shapes, write_llama, write_safetensors
from kafila.domain.errors import UserError
from kafila.weights.index import read_index
from kafila.weights.model_folder import divide, read_model

BLOCK_WEIGHTS = 64 + 32 + 32 + 64 + 3 * 128
BLOCK_NORMS = 16


def folder_of(folder: Path, shapes: dict[str, tuple[str, tuple[int, ...]]], **config: Any) -> Path:
    write_llama(folder, config=LLAMA | config)
    write_safetensors(folder / "model.safetensors", shapes)
    return folder


def test_what_a_model_costs(tmp_path: Path) -> None:
    spec = read_model(write_llama(tmp_path / "model"))
    assert (spec.name, spec.family, spec.blocks) == ("model", "llama", 4)
    assert spec.hidden_size == 8
    assert set(spec.block_bytes) == {4 * (BLOCK_WEIGHTS + BLOCK_NORMS)}
    assert set(spec.block_flops) == {2 * BLOCK_WEIGHTS}
    # One key and one value of four float32 numbers.
    assert set(spec.kv_bytes_per_token) == {32}
    assert spec.head_resident_bytes == 4 * (2 * 32 * 8 + 8)
    assert spec.head_bytes == 4 * (32 * 8 + 8)
    assert spec.head_flops == 2 * 32 * 8
    assert spec.max_context == 128
    assert spec.weight_bytes == sum(t.size for t in read_index(tmp_path / "model").tensors.values())


def test_a_tied_unembedding_is_counted_once_and_read_per_token(tmp_path: Path) -> None:
    shapes = llama_shapes(tied=True)
    spec = read_model(folder_of(tmp_path / "model", shapes, tie_word_embeddings=True))
    assert spec.head_resident_bytes == spec.head_bytes == 4 * (32 * 8 + 8)
    assert spec.head_flops == 2 * 32 * 8


def test_a_stored_unembedding_that_is_not_used_is_not_counted(tmp_path: Path) -> None:
    spec = read_model(folder_of(tmp_path / "model", llama_shapes(), tie_word_embeddings=True))
    assert spec.head_resident_bytes == 4 * (32 * 8 + 8)


def test_16_bit_models_keep_16_bit_caches(tmp_path: Path) -> None:
    spec = read_model(folder_of(tmp_path / "model", llama_shapes(dtype="BF16")))
    assert set(spec.kv_bytes_per_token) == {16}


def test_packed_weights_count_as_what_they_stand_for(tmp_path: Path) -> None:
    shapes = llama_shapes()
    for block in range(4):
        name = f"model.layers.{block}.mlp.down_proj"
        # 8 rows of 16 weights at 4 bits, with a scale for each 8 of them.
        shapes[f"{name}.weight"] = ("U32", (8, 2))
        shapes[f"{name}.scales"] = ("BF16", (8, 2))
        shapes[f"{name}.biases"] = ("BF16", (8, 2))
    quantization = {"group_size": 64, "bits": 4} | {
        f"model.layers.{block}.mlp.down_proj": {"group_size": 8, "bits": 4} for block in range(4)
    }
    spec = read_model(folder_of(tmp_path / "model", shapes, quantization=quantization))
    assert set(spec.block_flops) == {2 * BLOCK_WEIGHTS}
    assert set(spec.block_bytes) == {4 * (BLOCK_WEIGHTS - 128 + BLOCK_NORMS) + 64 + 32 + 32}


def test_of_a_mixture_only_the_chosen_experts_compute(tmp_path: Path) -> None:
    shapes = llama_shapes()
    for block in range(4):
        shapes[f"model.layers.{block}.mlp.switch_mlp.up_proj.weight"] = ("F32", (4, 16, 8))
    spec = read_model(folder_of(tmp_path / "model", shapes, num_experts=4, num_experts_per_tok=1))
    assert set(spec.block_flops) == {2 * (BLOCK_WEIGHTS + 128)}


def test_a_share_is_its_blocks_and_the_head_if_it_is_one(tmp_path: Path) -> None:
    folder = write_llama(tmp_path / "model")
    parts = divide(read_index(folder), folder)
    middle = {tensor.name for tensor in parts.of(first=1, end=3, head=False)}
    assert middle == {name for name in llama_shapes() if name.startswith(("model.layers.1.", "model.layers.2."))}
    everything = {tensor.name for tensor in parts.of(first=0, end=4, head=True)}
    assert everything == set(llama_shapes())


def test_what_a_family_never_loads_is_no_part_of_it(tmp_path: Path) -> None:
    shapes = llama_shapes() | {
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (2,)),
        "model.layers.4.eh_proj.weight": ("F32", (8, 8)),
        "mtp.layers.0.weight": ("F32", (8, 8)),
    }
    spec = read_model(folder_of(tmp_path / "model", shapes))
    assert spec.weight_bytes == read_model(write_llama(tmp_path / "plain")).weight_bytes


@pytest.mark.parametrize("family", ["gemma3n", "rwkv7", "no such thing", None, 7, "x" * 99])
def test_another_family_is_refused_by_name(tmp_path: Path, family: object) -> None:
    folder = write_llama(tmp_path / "model", config=LLAMA | {"model_type": family})
    with pytest.raises(UserError) as refused:
        read_model(folder)
    title = refused.value.problem.title
    assert "cannot be divided" in title
    assert ("unknown" in title) == (family not in {"gemma3n", "rwkv7"})


@pytest.mark.parametrize("lost", ["model.layers.2.", "model.embed_tokens."])
def test_a_model_that_lacks_tensors(tmp_path: Path, lost: str) -> None:
    kept = {name: shape for name, shape in llama_shapes().items() if not name.startswith(lost)}
    folder = folder_of(tmp_path / "model", kept)
    with pytest.raises(UserError) as refused:
        read_model(folder)
    assert "incomplete" in refused.value.problem.title


@pytest.mark.parametrize(
    "numbers",
    [
        {"num_hidden_layers": 0},
        {"num_hidden_layers": "4"},
        {"num_attention_heads": None},
        {"hidden_size": -8},
        {"num_hidden_layers": 10**9},
    ],
)
def test_a_configuration_without_sense(tmp_path: Path, numbers: dict[str, Any]) -> None:
    folder = write_llama(tmp_path / "model", config=LLAMA | numbers)
    with pytest.raises(UserError) as refused:
        read_model(folder)
    assert "damaged" in refused.value.problem.title or "incomplete" in refused.value.problem.title
