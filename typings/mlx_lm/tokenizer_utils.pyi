from collections.abc import Sequence

class StreamingDetokenizer:
    last_segment: str

    def add_token(self, token: int) -> None: ...
    def finalize(self) -> None: ...

class TokenizerWrapper:
    detokenizer: StreamingDetokenizer
    eos_token_ids: set[int]
    has_chat_template: bool

    def apply_chat_template(
        self, conversation: Sequence[dict[str, str]], *, add_generation_prompt: bool
    ) -> list[int]: ...
    def decode(self, token_ids: Sequence[int]) -> str: ...
    def encode(self, text: str) -> list[int]: ...
