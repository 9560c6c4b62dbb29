"""What the engine says about an answer while it is being written."""

import msgspec

from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId


class AnswerQueued(msgspec.Struct, frozen=True, kw_only=True, tag="queued"):
    """The question waits; `ahead` others come first."""

    conversation: ConversationId
    answer: int
    ahead: int


class AnswerText(msgspec.Struct, frozen=True, kw_only=True, tag="text"):
    """More of the answer, to be appended."""

    conversation: ConversationId
    answer: int
    text: str


class AnswerStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one answer."""

    prompt_tokens: int
    reused_tokens: int
    """Prompt tokens whose KV was still there from the turn before."""
    token_ids: tuple[int, ...]
    time_to_first_token_s: float
    tokens_per_second: float
    circuit_ms_p50: float | None
    circuit_ms_p95: float | None
    compute_ms_p50: float | None
    in_flight_ms_p50: float | None


class AnswerDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The answer is complete, or was stopped."""

    conversation: ConversationId
    answer: int
    finish: str
    """"stop": the model ended it; "length": the limit; "stopped": by the person."""
    stats: AnswerStats


class AnswerFailed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """No more of this answer will come; what was said stays."""

    conversation: ConversationId
    answer: int
    problem: Problem


ChatEvent = AnswerQueued | AnswerText | AnswerDone | AnswerFailed
