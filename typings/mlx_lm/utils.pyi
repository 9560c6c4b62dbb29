from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from mlx.nn import Module
from mlx_lm.tokenizer_utils import TokenizerWrapper

class ModelArgsClass(Protocol):
    def from_dict(self, params: dict[str, Any]) -> Any: ...

ModelClass: TypeAlias = type[Module]
ModelClasses: TypeAlias = tuple[ModelClass, ModelArgsClass]

def _get_classes(config: dict[str, Any]) -> ModelClasses: ...
def load_model(
    model_path: Path,
    lazy: bool = False,
    strict: bool = True,
    *,
    get_model_classes: Callable[[dict[str, Any]], ModelClasses] = ...,
) -> tuple[Module, dict[str, Any]]: ...
def load_tokenizer(model_path: Path, tokenizer_config_extra: dict[str, Any] | None = None) -> TokenizerWrapper: ...
def maybe_set_recommended_wired_limit() -> int | None: ...
