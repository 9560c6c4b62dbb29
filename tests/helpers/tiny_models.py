"""Tiny models with random weights, of every family, as mlx-lm writes them to disk.

Import this after MLX was started by an `MlxThread`, and call it there.
"""

import copy
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes  # pyright: ignore[reportPrivateUsage]

_COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 320,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}
_EVERY_HEAD = {"num_key_value_heads": 4}
_MIXTURE: dict[str, Any] = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "norm_topk_prob": True,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_shared_experts": 1,
    "routed_scaling_factor": 1.0,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
}
_LATENT: dict[str, Any] = {
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
}
_YARN: dict[str, Any] = {
    "type": "yarn",
    "factor": 4.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 128,
    "beta_fast": 32,
    "beta_slow": 1,
}
_LONG: dict[str, Any] = {
    "long_factor": [1.0] * 8,
    "short_factor": [1.0] * 8,
    "long_mscale": 1.0,
    "short_mscale": 1.0,
    "original_max_position_embeddings": 512,
}
_SHORT_LONG: dict[str, Any] = _LONG | {"long_factor": [1.0] * 4, "short_factor": [1.0] * 4}
_GRANITE: dict[str, Any] = {
    "logits_scaling": 2.0,
    "attention_multiplier": 0.3,
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.5,
}
_WINDOW: dict[str, Any] = {"sliding_window": 8, "sliding_window_pattern": 2}
_CONVOLUTION: dict[str, Any] = {
    "norm_eps": 1e-5,
    "conv_bias": False,
    "conv_L_cache": 3,
    "layer_types": ["conv", "full_attention"] * 2,
    "full_attn_idxs": [1, 3],
}
_DELTA: dict[str, Any] = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 2,
    "partial_rotary_factor": 0.5,
}
_MINISTRAL: dict[str, Any] = {
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "sliding_window": 8,
    "rope_parameters": {
        "rope_theta": 10000.0,
        "llama_4_scaling_beta": 0.1,
        "original_max_position_embeddings": 512,
    },
}
_GPT2: dict[str, Any] = {
    "n_ctx": 512,
    "n_embd": 64,
    "n_head": 4,
    "n_layer": 4,
    "n_positions": 512,
    "layer_norm_epsilon": 1e-5,
}
_LAYER_NORM = {"layer_norm_eps": 1e-5}


def _inside(family: str, **text: Any) -> dict[str, Any]:
    return {"text_config": _COMMON | text | {"model_type": family}}


FAMILY_CONFIGS: dict[str, dict[str, Any]] = {
    "apertus": {"post_norm": False, "qk_norm": True},
    "bailing_moe": _MIXTURE,
    "cohere": _LAYER_NORM,
    "cohere2": _WINDOW | _LAYER_NORM,
    "deepseek": _MIXTURE,
    "deepseek_v2": _MIXTURE | _LATENT | {"rope_scaling": _YARN, "topk_method": "greedy"},
    "deepseek_v3": _MIXTURE | _LATENT,
    "dots1": _MIXTURE,
    "ernie4_5": {"use_bias": False},
    "ernie4_5_moe": {
        "use_bias": False,
        "moe_num_experts": 4,
        "moe_k": 2,
        "moe_intermediate_size": 32,
        "moe_num_shared_experts": 1,
    },
    "exaone": {"num_layers": 4, "layer_norm_epsilon": 1e-5},
    "exaone4": _WINDOW | {"sliding_window_pattern": "LG", "rope_scaling": None},
    "gemma": {},
    "gemma2": {"query_pre_attn_scalar": 16},
    "gemma3": _inside("gemma3_text", query_pre_attn_scalar=16, **_WINDOW),
    "gemma3_text": _WINDOW | {"query_pre_attn_scalar": 16},
    "glm": {},
    "glm4": {"partial_rotary_factor": 0.5},
    "glm4_moe": _MIXTURE | {"rope_scaling": None, "use_qk_norm": True, "partial_rotary_factor": 0.5},
    "gpt2": _GPT2 | _EVERY_HEAD,
    "gpt_neox": _LAYER_NORM | _EVERY_HEAD | {"rotary_emb_base": 10000, "rotary_pct": 0.5},
    "gpt_oss": _MIXTURE | {"sliding_window": 8},
    "granite": _GRANITE,
    "granitemoe": _GRANITE | _MIXTURE,
    "helium": {},
    "hunyuan_v1_dense": {"rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}},
    "internlm2": {},
    "internlm3": {},
    "kimi_k2": _MIXTURE | _LATENT,
    "lfm2": _CONVOLUTION
    | {
        "block_dim": 64,
        "block_multiple_of": 16,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
    },
    "lfm2_moe": _MIXTURE | _CONVOLUTION | {"num_dense_layers": 1, "use_expert_bias": True},
    "llama": {},
    "mimo": {},
    "minicpm3": _LATENT | {"rope_scaling": _SHORT_LONG, "dim_model_base": 32, "scale_depth": 1.4, "scale_emb": 3.0},
    "ministral3": _MINISTRAL,
    "mistral": {},
    "mistral3": _inside("ministral3", **_MINISTRAL),
    "mixtral": _MIXTURE,
    "nanochat": _EVERY_HEAD,
    "nemotron": {"hidden_act": "relu2", "norm_eps": 1e-5},
    "olmo2": {},
    "olmo3": {"sliding_window": 8},
    "olmoe": _MIXTURE,
    "phi": _LAYER_NORM,
    "phi3": {},
    "phimoe": _MIXTURE | {"rope_scaling": _LONG},
    "qwen2": {},
    "qwen2_moe": _MIXTURE,
    "qwen3": {},
    "qwen3_5": _inside("qwen3_5_text", **_DELTA),
    "qwen3_5_moe": _inside("qwen3_5_moe_text", **_MIXTURE, **_DELTA),
    "qwen3_moe": _MIXTURE | {"decoder_sparse_step": 1, "mlp_only_layers": []},
    "qwen3_next": _MIXTURE | _DELTA | {"decoder_sparse_step": 1, "mlp_only_layers": []},
    "seed_oss": {},
    "smollm3": {},
    "solar_open": _MIXTURE | {"partial_rotary_factor": 1.0},
    "stablelm": _LAYER_NORM | {"use_qkv_bias": False, "partial_rotary_factor": 0.5},
    "starcoder2": {"norm_epsilon": 1e-5},
    "telechat3": {},
}


def write_tiny_model(
    folder: Path, family: str = "llama", *, bits: int | None = None, seed: int = 0, **changes: Any
) -> Path:
    """A whole folder with four blocks and a tokenizer, quantised to `bits` if given."""
    folder.mkdir(parents=True)
    config = copy.deepcopy(_COMMON | FAMILY_CONFIGS[family] | {"model_type": family} | changes)
    model = new_model(config, seed=seed)
    if bits is not None:
        config["quantization"] = {"group_size": 32, "bits": bits}
        nn.quantize(model, group_size=32, bits=bits, class_predicate=_fits)
    (folder / "config.json").write_text(json.dumps(config))
    arrays = dict(sorted(tree_flatten(model.parameters())))
    mx.save_safetensors(str(folder / "model.safetensors"), arrays, metadata={"format": "mlx"})
    write_tiny_tokenizer(folder)
    return folder


def new_model(config: dict[str, Any], *, seed: int) -> nn.Module:
    """The family's own model with random weights."""
    mx.random.seed(seed)
    family, arguments = _get_classes(config)
    model = family(arguments.from_dict(copy.deepcopy(config)))
    model.eval()
    # Norms of ones and biases of zeros would hide that they were mixed up.
    noisy = {name: a + mx.random.normal(a.shape) * 0.05 for name, a in tree_flatten(model.parameters())}
    model.load_weights(list(noisy.items()))
    mx.eval(model.parameters())
    return model


def _fits(_: str, module: nn.Module) -> bool:
    return hasattr(module, "to_quantized") and module["weight"].shape[-1] % 32 == 0


def write_tiny_tokenizer(folder: Path) -> None:
    """One token for each byte; 256 and 257 begin and end a turn, and 257 ends an answer."""
    # How byte-level tokenizers write bytes: printable ones as they are, others moved up.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in plain]
    spelt = {byte: chr(byte) for byte in plain} | {b: chr(256 + i) for i, b in enumerate(moved)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    special = ["<|im_start|>", "<|im_end|>"]
    added = [
        {
            "id": 256 + index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for index, token in enumerate(special)
    ]
    vocabulary = {spelt[byte]: byte for byte in range(256)} | {t: 256 + i for i, t in enumerate(special)}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    template = (
        "{% for message in messages %}<|im_start|>{{ message['role'][0] }}:{{ message['content'] }}"
        "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>a:{% endif %}"
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "chat_template": template,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
