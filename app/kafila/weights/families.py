"""Which families of models can be divided, and what is particular to each.

A family is on the list because `tests/compute/test_families.py` runs it in pieces and finds
every bit of its output unchanged. Others are refused: some cannot be divided at all, because
their blocks share more than the hidden state.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import msgspec

SHORTEST_CONTEXT = 1024
"""Tokens over which the state of a recurrent block, which does not grow, is counted."""


_MODEST_CONTEXT = 4096
_MOST_BLOCKS = 1000


class Kept(Enum):
    """What an attention block keeps of each token in its cache."""

    KEYS_AND_VALUES = "keys and values"
    """One of each for every key-value head."""
    LATENT = "latent"
    """One compressed vector, and the rotated part of the key."""
    EXPANDED_LATENT = "expanded latent"
    """Keys and values of all heads, computed from a compressed vector."""


class Recurrence(Enum):
    """What a block without attention keeps of a whole sequence."""

    GATED_DELTA = "gated delta"
    SHORT_CONVOLUTION = "short convolution"


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """How a family names its tensors, and what its caches hold."""

    root: str = ""
    """What precedes the names of the language model's tensors; others are not used."""
    blocks: str = "model.layers"
    """The list of blocks, below the root."""
    kept: Kept = Kept.KEYS_AND_VALUES
    recurrence: Recurrence | None = None


_PLAIN = Family()
_GPT = Family(blocks="model.h")
_TRANSFORMER = Family(blocks="transformer.h")
_LATENT = Family(kept=Kept.LATENT)
_EXPANDED = Family(kept=Kept.EXPANDED_LATENT)
_CONVOLUTION = Family(recurrence=Recurrence.SHORT_CONVOLUTION)
_WRAPPED = Family(root="language_model.")
_WRAPPED_DELTA = Family(root="language_model.", recurrence=Recurrence.GATED_DELTA)

FAMILIES: Mapping[str, Family] = {
    "apertus": _PLAIN,
    "bailing_moe": _PLAIN,
    "cohere": _PLAIN,
    "cohere2": _PLAIN,
    "deepseek": _PLAIN,
    "deepseek_v2": _EXPANDED,
    "deepseek_v3": _LATENT,
    "dots1": _PLAIN,
    "ernie4_5": _PLAIN,
    "ernie4_5_moe": _PLAIN,
    "exaone": _TRANSFORMER,
    "exaone4": _PLAIN,
    "gemma": _PLAIN,
    "gemma2": _PLAIN,
    "gemma3": _WRAPPED,
    "gemma3_text": _PLAIN,
    "glm": _PLAIN,
    "glm4": _PLAIN,
    "glm4_moe": _PLAIN,
    "gpt2": _GPT,
    "gpt_neox": _GPT,
    "gpt_oss": _PLAIN,
    "granite": _PLAIN,
    "granitemoe": _PLAIN,
    "helium": _PLAIN,
    "hunyuan_v1_dense": _PLAIN,
    "internlm2": _PLAIN,
    "internlm3": _PLAIN,
    "kimi_k2": _LATENT,
    "lfm2": _CONVOLUTION,
    "lfm2_moe": _CONVOLUTION,
    "llama": _PLAIN,
    "mimo": _PLAIN,
    "minicpm3": _EXPANDED,
    "ministral3": _PLAIN,
    "mistral": _PLAIN,
    "mistral3": _WRAPPED,
    "mixtral": _PLAIN,
    "nanochat": _TRANSFORMER,
    "nemotron": _PLAIN,
    "olmo2": _PLAIN,
    "olmo3": _PLAIN,
    "olmoe": _PLAIN,
    "phi": _PLAIN,
    "phi3": _PLAIN,
    "phimoe": _PLAIN,
    "qwen2": _PLAIN,
    "qwen2_moe": _PLAIN,
    "qwen3": _PLAIN,
    "qwen3_5": _WRAPPED_DELTA,
    "qwen3_5_moe": _WRAPPED_DELTA,
    "qwen3_moe": _PLAIN,
    "qwen3_next": Family(recurrence=Recurrence.GATED_DELTA),
    "seed_oss": _PLAIN,
    "smollm3": _PLAIN,
    "solar_open": _PLAIN,
    "stablelm": _PLAIN,
    "starcoder2": _PLAIN,
    "telechat3": _PLAIN,
}
"""By the `model_type` of a model's configuration."""


def section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A part of a configuration that is an object itself; empty where it is none."""
    value = config.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class Settings:
    """A configuration, whose families call the same numbers by different names.

    Raises KeyError or TypeError where a number is missing or is not one.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._values: dict[str, Any] = {**config, **section(config, "text_config")}

    def number(self, *names: str) -> int:
        """The first of the names that is there, as a whole number from 1 on."""
        for name in names:
            value = self._values.get(name)
            if value is not None:
                if not isinstance(value, int) or value < 1:
                    raise TypeError(name)
                return value
        raise KeyError(names[0])

    def has(self, name: str) -> bool:
        """Whether the configuration gives it."""
        return self._values.get(name) is not None

    def kinds(self, blocks: int) -> list[bool]:
        """For each block of a family with recurrence, whether it attends."""
        if self.has("layer_types"):
            kinds: list[str] = self._values["layer_types"]
            return [kind == "full_attention" for kind in kinds]
        if self.has("full_attn_idxs"):
            attending: list[int] = self._values["full_attn_idxs"]
            return [index in attending for index in range(blocks)]
        interval = self.number("full_attention_interval")
        return [(index + 1) % interval == 0 for index in range(blocks)]

    @property
    def hidden(self) -> int:
        """Length of a hidden state."""
        return self.number("hidden_size", "n_embd")

    @property
    def blocks(self) -> int:
        """Number of transformer blocks."""
        blocks = self.number("num_hidden_layers", "num_layers", "n_layer")
        if blocks > _MOST_BLOCKS:
            raise TypeError(blocks)
        return blocks

    @property
    def context(self) -> int:
        """Tokens of the longest sequence that the model was made for, as far as it says."""
        try:
            return self.number("max_position_embeddings", "n_positions")
        except KeyError:
            return _MODEST_CONTEXT

    @property
    def expert_share(self) -> float:
        """Which part of a mixture's experts one token meets."""
        try:
            chosen = self.number("num_experts_per_tok", "moe_k")
            return chosen / self.number("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
        except KeyError:
            return 1.0

    @property
    def tied(self) -> bool:
        """Whether the configuration says that embedding and unembedding are one tensor."""
        return self._values.get("tie_word_embeddings") is True


def kept_per_token(family: Family, settings: Settings, *, element_bytes: int) -> tuple[int, ...]:
    """Bytes that the cache of each block takes per token, in numbers of `element_bytes`.

    An upper bound for blocks that look back through a window only.
    """
    attending = _attention_elements(family.kept, settings) * element_bytes
    if family.recurrence is None:
        return (attending,) * settings.blocks
    state = _state_bytes(family.recurrence, settings, element_bytes=element_bytes)
    recurring = -(-state // SHORTEST_CONTEXT)
    return tuple(attending if kind else recurring for kind in settings.kinds(settings.blocks))


def _attention_elements(kept: Kept, settings: Settings) -> int:
    heads = settings.number("num_attention_heads", "n_head")
    match kept:
        case Kept.KEYS_AND_VALUES:
            head = settings.number("head_dim") if settings.has("head_dim") else settings.hidden // heads
            kv_heads = settings.number("num_key_value_heads") if settings.has("num_key_value_heads") else heads
            return 2 * kv_heads * head
        case Kept.LATENT:
            return settings.number("kv_lora_rank") + settings.number("qk_rope_head_dim")
        case Kept.EXPANDED_LATENT:
            key = settings.number("qk_nope_head_dim") + settings.number("qk_rope_head_dim")
            value = settings.number("v_head_dim") if settings.has("v_head_dim") else settings.hidden // heads
            return heads * (key + value)


def _state_bytes(recurrence: Recurrence, settings: Settings, *, element_bytes: int) -> int:
    match recurrence:
        case Recurrence.SHORT_CONVOLUTION:
            remembered = settings.number("conv_L_cache") - 1
            return remembered * settings.hidden * element_bytes
        case Recurrence.GATED_DELTA:
            keys = settings.number("linear_num_key_heads") * settings.number("linear_key_head_dim")
            values = settings.number("linear_num_value_heads") * settings.number("linear_value_head_dim")
            remembered = settings.number("linear_conv_kernel_dim") - 1
            # The matrix of each head is kept in float32 whatever the model's type.
            matrices = values * settings.number("linear_key_head_dim") * 4
            return remembered * (2 * keys + values) * element_bytes + matrices
