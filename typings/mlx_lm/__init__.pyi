# The part of mlx-lm that Kafila uses. Most of it has no types of its own.

from collections.abc import Generator, Sequence

from mlx.nn import Module
from mlx_lm.tokenizer_utils import TokenizerWrapper

class GenerationResponse:
    text: str
    token: int

def load(path_or_hf_repo: str) -> tuple[Module, TokenizerWrapper]: ...
def stream_generate(
    model: Module, tokenizer: TokenizerWrapper, prompt: Sequence[int], max_tokens: int
) -> Generator[GenerationResponse]: ...
