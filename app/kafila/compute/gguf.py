"""A GGUF file of the Llama family, rewritten as an mlx-lm model folder with its tokenizer.

Quantised tensors keep their bits; their scales, and all other tensors, become float32, so that
the folder is the same wherever it is made. Import this on the MLX thread only.
"""

import json
from pathlib import Path
from typing import Any

import mlx.core as mx

_SURROUNDINGS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
_IN_BLOCK = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_GROUP = 32
"""Weights that share a scale in every quantisation of GGUF that MLX reads."""
_CONTROL_TOKEN = 3
"""GGUF's type of a token such as <|im_start|>, which never comes out of plain text."""


def convert_llama(source: Path, folder: Path) -> None:
    """Write config, weights and tokenizer into `folder`. Raises OSError or RuntimeError."""
    arrays, meta = mx.load(str(source), return_metadata=True)
    values = {key: _plain(value) for key, value in meta.items()}
    tensors = {_tensor_name(name): _in_float32(array) for name, array in arrays.items()}
    _write_json(folder / "config.json", _config(values, tensors))
    _write_json(folder / "tokenizer.json", _tokenizer(values))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(values))
    # So small a model loses the thread as soon as it may choose a word that is not the likeliest.
    _write_json(folder / "generation_config.json", {"do_sample": False})
    ordered = dict(sorted(tensors.items()))
    mx.save_safetensors(str(folder / "model.safetensors"), ordered, metadata={"format": "mlx"})


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, mx.array) else value


def _tensor_name(name: str) -> str:
    match name.split("."):
        case ["blk", block, tensor, kind]:
            return f"model.layers.{block}.{_IN_BLOCK[tensor]}.{kind}"
        case [tensor, kind]:
            return f"{_SURROUNDINGS[tensor]}.{kind}"
        case _:
            message = f"unknown tensor {name}"
            raise RuntimeError(message)


def _in_float32(array: mx.array) -> mx.array:
    return array if array.dtype == mx.uint32 else array.astype(mx.float32)


def _config(values: dict[str, Any], tensors: dict[str, mx.array]) -> dict[str, Any]:
    hidden = values["llama.embedding_length"]
    quantization: dict[str, Any] = {"group_size": _GROUP, "bits": 4}
    for name, array in tensors.items():
        layer, _, kind = name.rpartition(".")
        if kind == "weight" and array.dtype == mx.uint32:
            inputs = tensors[f"{layer}.scales"].shape[-1] * _GROUP
            bits = 32 * array.shape[-1] // inputs
            if bits != quantization["bits"]:
                quantization[layer] = {"group_size": _GROUP, "bits": bits}
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": hidden,
        "num_hidden_layers": values["llama.block_count"],
        "intermediate_size": values["llama.feed_forward_length"],
        "num_attention_heads": values["llama.attention.head_count"],
        "num_key_value_heads": values["llama.attention.head_count_kv"],
        "rms_norm_eps": float(f"{values['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "vocab_size": values["llama.vocab_size"],
        "rope_theta": values["llama.rope.freq_base"],
        # GGUF has the rows of queries and keys in the order that interleaved rotation wants.
        "rope_traditional": True,
        "max_position_embeddings": values["llama.context_length"],
        "tie_word_embeddings": True,
        "bos_token_id": values["tokenizer.ggml.bos_token_id"],
        "eos_token_id": values["tokenizer.ggml.eos_token_id"],
        "quantization": quantization,
    }


def _tokenizer(values: dict[str, Any]) -> dict[str, Any]:
    """A byte-level BPE as the `tokenizers` library keeps it on disk."""
    tokens: list[str] = values["tokenizer.ggml.tokens"]
    kinds: list[int] = values["tokenizer.ggml.token_type"]
    added = [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == _CONTROL_TOKEN
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                byte_level | {"use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": byte_level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in values["tokenizer.ggml.merges"]],
        },
    }


def _tokenizer_config(values: dict[str, Any]) -> dict[str, Any]:
    tokens: list[str] = values["tokenizer.ggml.tokens"]

    def token(role: str) -> str:
        index: int = values[f"tokenizer.ggml.{role}_token_id"]
        return tokens[index]

    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token("bos"),
        "eos_token": token("eos"),
        "pad_token": token("padding"),
        "unk_token": token("unknown"),
        "model_max_length": values["llama.context_length"],
        "chat_template": values["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
    }


def _write_json(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
