"""Model folders written byte by byte, for tests of what only reads headers and moves bytes."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 4,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "rms_norm_eps": 1e-5,
    "vocab_size": 32,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}

_BLOCK = {
    "self_attn.q_proj.weight": (8, 8),
    "self_attn.k_proj.weight": (4, 8),
    "self_attn.v_proj.weight": (4, 8),
    "self_attn.o_proj.weight": (8, 8),
    "mlp.gate_proj.weight": (16, 8),
    "mlp.up_proj.weight": (16, 8),
    "mlp.down_proj.weight": (8, 16),
    "input_layernorm.weight": (8,),
    "post_attention_layernorm.weight": (8,),
}

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]
"""Type and shape of each tensor by its name."""

_BYTES = {"F32": 4, "BF16": 2, "U32": 4, "U8": 1}


def llama_shapes(*, dtype: str = "F32", tied: bool = False) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of `LLAMA`."""
    shapes = {f"model.layers.{block}.{name}": (dtype, shape) for block in range(4) for name, shape in _BLOCK.items()}
    shapes |= {"model.embed_tokens.weight": (dtype, (32, 8)), "model.norm.weight": (dtype, (8,))}
    return shapes if tied else shapes | {"lm_head.weight": (dtype, (32, 8))}


def write_safetensors(file: Path, shapes: Shapes, *, seed: int = 0) -> None:
    """A safetensors file with random content."""
    chance = random.Random(seed)  # noqa: S311
    entries: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape) in shapes.items():
        size = _BYTES[dtype]
        for side in shape:
            size *= side
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += chance.randbytes(size)
    write_raw(file, entries, data)


def write_raw(file: Path, entries: Mapping[str, Any], data: bytes) -> None:
    """A file with any header, right or wrong."""
    header = json.dumps(entries).encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + data)


def write_llama(
    folder: Path,
    *,
    config: Mapping[str, Any] = LLAMA,
    shapes: Shapes | None = None,
    files: int = 1,
    seed: int = 0,
) -> Path:
    """A whole folder in one file, or in several with their listing."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "secret.py").write_text("raise SystemExit")
    shapes = shapes or llama_shapes()
    if files == 1:
        write_safetensors(folder / "model.safetensors", shapes, seed=seed)
        return folder
    names = list(shapes)
    listing: dict[str, str] = {}
    for number in range(files):
        part = names[number::files]
        file = f"model-{number + 1:05}-of-{files:05}.safetensors"
        write_safetensors(folder / file, {name: shapes[name] for name in part}, seed=seed + number)
        listing |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listing}))
    return folder
