"""Tiny models of many families, with random weights, as mlx-lm writes them to disk."""

import copy
from typing import Any

_COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}
_MOE: dict[str, Any] = {
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
    "num_key_value_heads": 4,
}
_GRANITE: dict[str, Any] = {
    "logits_scaling": 2.0,
    "attention_multiplier": 0.3,
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.5,
}
_MINICPM: dict[str, Any] = {"dim_model_base": 32, "scale_depth": 1.4, "scale_emb": 3.0}
_WINDOW: dict[str, Any] = {"sliding_window": 8, "sliding_window_pattern": 2}

_YARN: dict[str, Any] = {
    "type": "yarn",
    "factor": 4.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 128,
    "beta_fast": 32,
    "beta_slow": 1,
}

FAMILY_CONFIGS: dict[str, dict[str, Any]] = {
    "apertus": {"post_norm": False, "qk_norm": True},
    "bailing_moe": _MOE,
    "cohere": {"layer_norm_eps": 1e-5},
    "cohere2": _WINDOW | {"layer_norm_eps": 1e-5},
    "deepseek": _MOE,
    "deepseek_v2": _MOE | _LATENT | {"rope_scaling": _YARN, "topk_method": "greedy"},
    "deepseek_v3": _MOE | _LATENT,
    "dots1": _MOE,
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
    "gemma3_text": _WINDOW | {"query_pre_attn_scalar": 16},
    "glm": {},
    "glm4": {"partial_rotary_factor": 0.5},
    "glm4_moe": _MOE | {"rope_scaling": None, "use_qk_norm": True, "partial_rotary_factor": 0.5},
    "gpt2": {"n_ctx": 512, "n_embd": 64, "n_head": 4, "n_layer": 4, "n_positions": 512, "layer_norm_epsilon": 1e-5},
    "gpt_neox": {"layer_norm_eps": 1e-5, "rotary_emb_base": 10000, "rotary_pct": 0.5},
    "gpt_oss": _MOE | {"sliding_window": 8},
    "granite": _GRANITE,
    "granitemoe": _GRANITE | _MOE,
    "helium": {},
    "hunyuan_v1_dense": {"rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}},
    "internlm2": {},
    "internlm3": {},
    "llama": {},
    "mimo": {},
    "minicpm": _MINICPM,
    "minicpm3": _MINICPM
    | _LATENT
    | {"rope_scaling": {"long_factor": [1.0] * 4, "short_factor": [1.0] * 4, "original_max_position_embeddings": 512}},
    "ministral3": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 8,
        "rope_parameters": {
            "rope_theta": 10000.0,
            "llama_4_scaling_beta": 0.1,
            "original_max_position_embeddings": 512,
        },
    },
    "mistral": {},
    "mixtral": _MOE,
    "nemotron": {"hidden_act": "relu2", "norm_eps": 1e-5},
    "olmo2": {},
    "olmo3": {"sliding_window": 8},
    "olmoe": _MOE,
    "phi": {"layer_norm_eps": 1e-5},
    "phi3": {},
    "phimoe": _MOE
    | {"rope_scaling": {"long_factor": [1.0] * 8, "short_factor": [1.0] * 8, "long_mscale": 1.0, "short_mscale": 1.0}},
    "qwen2": {},
    "qwen2_moe": _MOE,
    "qwen3": {},
    "qwen3_moe": _MOE | {"decoder_sparse_step": 1, "mlp_only_layers": []},
    "seed_oss": {},
    "smollm3": {},
    "solar_open": _MOE | {"partial_rotary_factor": 1.0},
    "stablelm": {"use_qkv_bias": False, "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5},
    "starcoder2": {"norm_epsilon": 1e-5},
    "telechat3": {},
    "lfm2": {
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": 64,
        "block_multiple_of": 16,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "layer_types": ["conv", "full_attention"] * 2,
        "full_attn_idxs": [1, 3],
    },
    "lfm2_moe": _MOE
    | {
        "num_dense_layers": 1,
        "use_expert_bias": True,
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "layer_types": ["conv", "full_attention"] * 2,
        "full_attn_idxs": [1, 3],
    },
    "gemma3": {"text_config": _COMMON | _WINDOW | {"model_type": "gemma3_text", "query_pre_attn_scalar": 16}},
    "mistral3": {
        "text_config": _COMMON
        | {
            "model_type": "ministral3",
            "rope_parameters": {
                "rope_theta": 10000.0,
                "llama_4_scaling_beta": 0.1,
                "original_max_position_embeddings": 512,
            },
        }
    },
    "qwen3_5": {
        "text_config": _COMMON
        | {
            "model_type": "qwen3_5_text",
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_conv_kernel_dim": 4,
            "full_attention_interval": 2,
        }
    },
    "qwen3_5_moe": {
        "text_config": _COMMON
        | _MOE
        | {
            "model_type": "qwen3_5_moe_text",
            "linear_num_value_heads": 4,
            "linear_num_key_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "linear_conv_kernel_dim": 4,
            "full_attention_interval": 2,
        }
    },
    "kimi_k2": _MOE | _LATENT,
    "nanochat": {"num_key_value_heads": 4},
    "gpt_bigcode": {
        "n_embd": 64,
        "n_layer": 4,
        "n_inner": 96,
        "n_head": 4,
        "n_positions": 512,
        "layer_norm_epsilon": 1e-5,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "qwen3_next": _MOE
    | {
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "partial_rotary_factor": 0.5,
        "full_attention_interval": 2,
    },
}


def config_of(family: str, **changes: Any) -> dict[str, Any]:
    """A configuration of the family, small in every direction."""
    return copy.deepcopy(_COMMON | FAMILY_CONFIGS[family] | {"model_type": family} | changes)
