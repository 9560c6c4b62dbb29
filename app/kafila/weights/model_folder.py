"""What a model in a folder costs, block by block, from its configuration and tensor headers."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kafila.domain.errors import Reason, UserError
from kafila.domain.model import ModelSpec
from kafila.weights.families import FAMILIES, Family, Settings, kept_per_token, section
from kafila.weights.index import Tensor, TensorIndex, damaged, read_index

_EMBEDDINGS = frozenset({"embed_tokens", "word_embeddings", "tok_embeddings", "wte", "embed_in"})
_POSITIONS = frozenset({"wpe"})
_UNEMBEDDINGS = frozenset({"lm_head", "output", "embed_out"})
_NEVER_LOADED = re.compile(r"(^|\.)(rotary_emb\.inv_freq|mtp\..*)$")
_FLOAT_BYTES = {"F16": 2, "BF16": 2, "F32": 4}
_USUAL_GROUP = 64
"""Weights that share a scale, where a configuration does not say."""


class ModelParts(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors that a model uses, by who holds them."""

    blocks: tuple[tuple[Tensor, ...], ...]
    head: tuple[Tensor, ...]

    def of(self, *, first: int, end: int, head: bool) -> list[Tensor]:
        """The tensors of blocks [first, end), and of the head if it is one."""
        tensors = [tensor for block in self.blocks[first:end] for tensor in block]
        return [*tensors, *self.head] if head else tensors


def read_model(folder: Path, *, name: str | None = None) -> ModelSpec:
    """What the model in `folder` costs. It is called `name`, or as its folder is.

    Raises UserError for a folder without a whole model, or of a family that cannot be divided.
    """
    return describe(read_index(folder), folder, name=name)


def describe(index: TensorIndex, folder: Path, *, name: str | None = None) -> ModelSpec:
    """`read_model` for an index that was read before."""
    config = index.settings()
    family = _family(config)
    parts = divide(index, folder)
    settings = Settings(config)
    groups = _Groups(config)
    element_bytes = _element_bytes(parts.blocks)
    try:
        return ModelSpec(
            name=name or folder.name,
            family=config["model_type"],
            fingerprint=index.fingerprint(),
            hidden_size=settings.hidden,
            block_bytes=tuple(_bytes(block) for block in parts.blocks),
            block_flops=tuple(round(2 * _active_weights(block, groups, settings)) for block in parts.blocks),
            kv_bytes_per_token=kept_per_token(family, settings, element_bytes=element_bytes),
            head_bytes=_bytes(_read_per_token(parts.head)),
            head_flops=2 * sum(groups.weights(t, parts.head) for t in _unembedding(parts.head)),
            head_resident_bytes=_bytes(parts.head),
            max_context=settings.context,
            element_bytes=element_bytes,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(folder, "config.json") from error


def divide(index: TensorIndex, folder: Path) -> ModelParts:
    """A model's tensors by block. Raises UserError where a block has none."""
    config = index.settings()
    family = _family(config)
    settings = Settings(config)
    try:
        count = settings.blocks
    except (KeyError, TypeError) as error:
        raise damaged(folder, "config.json") from error
    blocks: list[list[Tensor]] = [[] for _ in range(count)]
    head: list[Tensor] = []
    pattern = re.compile(re.escape(f"{family.root}{family.blocks}.") + r"(\d{1,5})\.")
    for name in sorted(index.tensors):
        if not name.startswith(family.root) or _NEVER_LOADED.search(name):
            continue
        in_block = pattern.match(name)
        if in_block is None:
            head.append(index.tensors[name])
        elif int(in_block[1]) < count:
            blocks[int(in_block[1])].append(index.tensors[name])
    if settings.tied:
        head = [tensor for tensor in head if _module(tensor) not in _UNEMBEDDINGS]
    if not all(blocks) or not any(_module(tensor) in _EMBEDDINGS for tensor in head):
        raise UserError(
            title=f"The model in “{folder.name}” is incomplete or in another format",
            advice="Download it again, in MLX's format.",
            reason=Reason.MODEL,
        )
    return ModelParts(blocks=tuple(tuple(block) for block in blocks), head=tuple(head))


def _family(config: Mapping[str, Any]) -> Family:
    name = config.get("model_type")
    family = FAMILIES.get(name) if isinstance(name, str) else None
    if family is None:
        shown = name if isinstance(name, str) and re.fullmatch(r"[\w.-]{1,40}", name) else "unknown"
        raise UserError(
            title=f"Models of the family “{shown}” cannot be divided yet",
            advice="Pick a model of another family, such as Llama, Qwen, Gemma or Mistral.",
            reason=Reason.MODEL,
        )
    return family


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.size for tensor in tensors)


def _module(tensor: Tensor) -> str:
    """The last name but one: of what module the tensor is a weight, a bias, the scales."""
    return tensor.name.rpartition(".")[0].rpartition(".")[2]


def _unembedding(head: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that turn a hidden state into logits; the embedding's where they are tied."""
    own = [tensor for tensor in head if _module(tensor) in _UNEMBEDDINGS]
    return own or [tensor for tensor in head if _module(tensor) in _EMBEDDINGS]


def _read_per_token(head: tuple[Tensor, ...]) -> list[Tensor]:
    """All of the head but what is only looked up: one row of an embedding costs nothing."""
    looked_up = _POSITIONS | _EMBEDDINGS
    unembedding = _unembedding(head)
    return [t for t in head if t in unembedding or _module(t) not in looked_up]


def _element_bytes(blocks: tuple[tuple[Tensor, ...], ...]) -> int:
    """The size of the numbers that most of the blocks are stored in, or their scales."""
    elements: dict[int, int] = {}
    for block in blocks:
        for tensor in block:
            size = _FLOAT_BYTES.get(tensor.dtype)
            if size is not None:
                elements[size] = elements.get(size, 0) + tensor.elements
    return max(elements, key=lambda size: elements[size], default=2)


class _Groups:
    """How many weights a tensor stands for: quantised ones are packed, with a scale a group."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._quantization = section(config, "quantization") or section(config, "quantization_config")

    def weights(self, tensor: Tensor, siblings: Iterable[Tensor]) -> int:
        """Weights that are multiplied with for each token; none for scales and biases."""
        if not tensor.name.endswith("weight") or len(tensor.shape) < 2:
            return 0
        module = tensor.name.rpartition(".")[0]
        for sibling in siblings:
            if sibling.name == f"{module}.scales":
                return sibling.elements * self._group(module)
        return tensor.elements

    def _group(self, module: str) -> int:
        settings = Settings(section(self._quantization, module) or self._quantization)
        return settings.number("group_size") if settings.has("group_size") else _USUAL_GROUP


def _active_weights(block: tuple[Tensor, ...], groups: _Groups, settings: Settings) -> float:
    """Weights of a block that one token meets: of a mixture of experts only the chosen ones."""
    total = 0.0
    for tensor in block:
        weights = groups.weights(tensor, block)
        experts = settings.expert_share if len(tensor.shape) == 3 else 1.0
        total += weights * experts
    return total
