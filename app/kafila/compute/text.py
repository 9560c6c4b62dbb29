"""The head's text side: from messages to token ids, and from token ids back to text.

Import this on the MLX thread only.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlx_lm.utils import load_tokenizer

from kafila.domain.commands import ChatMessage
from kafila.domain.errors import Reason, UserError
from kafila.domain.ids import RequestId

if TYPE_CHECKING:
    from mlx_lm.tokenizer_utils import StreamingDetokenizer

_HALF_A_CHARACTER = "\ufffd"


class TextSide:
    """A model's tokenizer and chat template, and the answers that are being written."""

    def __init__(self, folder: Path, *, name: str) -> None:
        try:
            # A tokenizer that comes with code of its own would run it, or ask on the terminal.
            self._tokenizer = load_tokenizer(folder, {"trust_remote_code": False})
        except Exception as error:  # What a broken file raises differs with the tokenizer.
            raise UserError(
                title=f"The tokenizer of “{name}” cannot be loaded",
                advice="Fetch the model again, or pick another one.",
                reason=Reason.MODEL,
            ) from error
        self._answers: dict[RequestId, StreamingDetokenizer] = {}

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """The conversation in the model's own chat template, up to where the answer begins."""
        if not self._tokenizer.has_chat_template:
            raise UserError(
                title="This model was not made to chat",
                advice="Pick one whose name says “instruct” or “chat”.",
                reason=Reason.NOT_A_CHAT,
            )
        turns = [{"role": message.role, "content": message.text} for message in messages]
        try:
            ids = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True)
        except Exception as error:  # Templates are programs, and raise what they like.
            raise UserError(
                title="This model does not take such a conversation",
                advice="Begin with a question of yours, without instructions before it.",
                reason=Reason.ODD_CONVERSATION,
            ) from error
        return tuple(ids)

    def begin(self, request: RequestId) -> None:
        """A new answer of the sequence begins."""
        self._answers[request] = self._tokenizer.detokenizer

    def add(self, request: RequestId, token: int) -> tuple[str, bool]:
        """The text that a token completes, and whether it ends the answer."""
        answer = self._answers.get(request)
        if answer is None:
            answer = self._answers[request] = self._tokenizer.detokenizer
        if token in self._tokenizer.eos_token_ids:
            return self.end(request), True
        answer.add_token(token)
        return answer.last_segment, False

    def end(self, request: RequestId) -> str:
        """Text that was held back, waiting for more; the answer is over."""
        answer = self._answers.pop(request, None)
        if answer is None:
            return ""
        answer.finalize()
        return answer.last_segment.rstrip(_HALF_A_CHARACTER)
