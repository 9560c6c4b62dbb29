"""Conversations and what can be done with them. Pure values: no Qt, no disk, no clock.

A conversation is a list of turns, a question and its answer each. Asking again and editing cut
what follows, for it answered something else. Every change gives a new value.
"""

from dataclasses import dataclass

import msgspec

from kafila.domain.chat import (
    AnswerDone,
    AnswerFailed,
    AnswerQueued,
    AnswerStats,
    AnswerText,
    ChatEvent,
)
from kafila.domain.commands import Ask, ChatMessage
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId
from kafila.gui.serving.markdown import spoken
from kafila.gui.serving.wording import LEAST_TIMED_S

TITLE_LENGTH = 48


class Waiting(msgspec.Struct, frozen=True, kw_only=True, tag="waiting"):
    """No word yet. `ahead` others come first; None where nobody said."""

    asked_s: float
    ahead: int | None = None


class Writing(msgspec.Struct, frozen=True, kw_only=True, tag="writing"):
    """Words are coming."""

    asked_s: float
    first_s: float
    last_s: float


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The answer is complete; `cut` when it reached the length that was asked for."""

    cut: bool = False


class Stopped(msgspec.Struct, frozen=True, kw_only=True, tag="stopped"):
    """The person stopped it."""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """No more will come."""

    problem: Problem


AnswerState = Waiting | Writing | Done | Stopped | Failed


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How fast an answer came."""

    first_word_s: float | None = None
    writing_s: float | None = None
    """From the first word to the last."""
    tokens: int | None = None
    tokens_per_second: float | None = None
    prompt_tokens: int | None = None
    reused_tokens: int | None = None
    circuit_ms: float | None = None
    compute_ms: float | None = None
    in_flight_ms: float | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said to one question."""

    number: int
    state: AnswerState
    text: str = ""
    figures: Figures = Figures()

    @property
    def open(self) -> bool:
        """Whether more may come."""
        return isinstance(self.state, Waiting | Writing)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A question and its answer."""

    question: str
    answer: Answer


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """What one person and the model said to each other."""

    id: ConversationId
    title: str = ""
    turns: tuple[Turn, ...] = ()
    next_answer: int = 1
    changed_at: str = ""
    """Date and time in ISO 8601, by which conversations are sorted."""

    @property
    def open_answer(self) -> Answer | None:
        """The answer being written, if any. It is always the last one."""
        if self.turns and self.turns[-1].answer.open:
            return self.turns[-1].answer
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How answers are to be made."""

    max_tokens: int = 512
    temperature: float | None = None
    """None: as the model's makers advise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A conversation with a new question, and what to send for it."""

    conversation: Conversation
    command: Ask


def ask(conversation: Conversation, question: str, settings: Settings, *, now_s: float, today: str) -> Asked:
    """Add a question at the end."""
    return _asked(conversation, question, settings, now_s=now_s, today=today)


def edit(
    conversation: Conversation,
    at: int,
    question: str,
    settings: Settings,
    *,
    now_s: float,
    today: str,
) -> Asked:
    """Put another question in the place of turn `at`, and cut what follows."""
    kept = msgspec.structs.replace(conversation, turns=conversation.turns[:at])
    return _asked(kept, question, settings, now_s=now_s, today=today)


def ask_again(conversation: Conversation, at: int, settings: Settings, *, now_s: float, today: str) -> Asked:
    """Ask for another answer to turn `at`, and cut what follows."""
    question = conversation.turns[at].question
    kept = msgspec.structs.replace(conversation, turns=conversation.turns[:at])
    return _asked(kept, question, settings, now_s=now_s, today=today)


def apply(conversation: Conversation, event: ChatEvent, *, now_s: float) -> Conversation:
    """Take in what the engine says. Answers that were cut or ended get no more text."""
    for at, turn in enumerate(conversation.turns):
        if turn.answer.number == event.answer:
            answer = _heard(turn.answer, event, now_s)
            turns = list(conversation.turns)
            turns[at] = msgspec.structs.replace(turn, answer=answer)
            return msgspec.structs.replace(conversation, turns=tuple(turns))
    return conversation


def interrupt(conversation: Conversation, problem: Problem) -> Conversation:
    """End an answer of which no more will come; what was said stays."""
    return _with_last(conversation, Failed(problem=problem))


def settle(conversation: Conversation) -> Conversation:
    """A conversation from the disk: an answer that was being written then is not now."""
    return _with_last(conversation, Stopped())


def stop(conversation: Conversation) -> Conversation:
    """Stopped by the person. What the engine still says before it hears of it is not taken in."""
    return _with_last(conversation, Stopped())


def messages(turns: tuple[Turn, ...], question: str) -> tuple[ChatMessage, ...]:
    """The whole conversation as the engine takes it. Questions without an answer are left out,
    because chat templates want question and answer in turn.
    """
    said: list[ChatMessage] = []
    for turn in turns:
        if turn.answer.text:
            said.append(ChatMessage(role="user", text=turn.question))
            said.append(ChatMessage(role="assistant", text=turn.answer.text))
    said.append(ChatMessage(role="user", text=question))
    return tuple(said)


def title_of(question: str) -> str:
    """A short name for a conversation that begins with this question."""
    line = " ".join(question.split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[:TITLE_LENGTH]
    head, _, _ = cut.rpartition(" ")
    return (head if len(head) > TITLE_LENGTH // 2 else cut).rstrip(",;:. ") + "…"


def matches(conversation: Conversation, wanted: str) -> bool:
    """Whether a search finds the conversation: every word somewhere in it."""
    text = "\n".join(
        (
            conversation.title,
            *(f"{turn.question}\n{turn.answer.text}" for turn in conversation.turns),
        )
    ).casefold()
    return all(word in text for word in wanted.casefold().split())


def as_markdown(conversation: Conversation, *, you: str, model: str) -> str:
    """The conversation as a Markdown document."""
    parts = [f"# {conversation.title}"]
    for turn in conversation.turns:
        quoted = "\n".join(f"> {line}".rstrip() for line in turn.question.split("\n"))
        parts.extend((f"**{you}**", quoted, f"**{model}**", spoken(turn.answer.text).strip()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _asked(kept: Conversation, question: str, settings: Settings, *, now_s: float, today: str) -> Asked:
    number = kept.next_answer
    turn = Turn(question=question, answer=Answer(number=number, state=Waiting(asked_s=now_s)))
    return Asked(
        conversation=msgspec.structs.replace(
            kept,
            title=kept.title if kept.turns else title_of(question),
            turns=(*kept.turns, turn),
            next_answer=number + 1,
            changed_at=today,
        ),
        command=Ask(
            conversation=kept.id,
            answer=number,
            messages=messages(kept.turns, question),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
        ),
    )


def _with_last(conversation: Conversation, state: AnswerState) -> Conversation:
    answer = conversation.open_answer
    if answer is None:
        return conversation
    ended = msgspec.structs.replace(answer, state=state, figures=_timed(answer))
    last = msgspec.structs.replace(conversation.turns[-1], answer=ended)
    return msgspec.structs.replace(conversation, turns=(*conversation.turns[:-1], last))


def _heard(answer: Answer, event: ChatEvent, now_s: float) -> Answer:
    state = answer.state
    if not isinstance(state, Waiting | Writing):
        return _told_after(answer, event)
    match event:
        case AnswerQueued():
            if isinstance(state, Waiting):
                state = Waiting(asked_s=state.asked_s, ahead=max(0, event.ahead))
            return msgspec.structs.replace(answer, state=state)
        case AnswerText():
            first = state.first_s if isinstance(state, Writing) else now_s
            writing = Writing(asked_s=state.asked_s, first_s=first, last_s=now_s)
            return msgspec.structs.replace(answer, state=writing, text=answer.text + event.text)
        case AnswerDone():
            done = Stopped() if event.finish == "stopped" else Done(cut=event.finish == "length")
            figures = _timed(answer, event.stats)
            return msgspec.structs.replace(answer, state=done, figures=figures)
        case AnswerFailed():
            failed = Failed(problem=event.problem)
            return msgspec.structs.replace(answer, state=failed, figures=_timed(answer))


def _told_after(answer: Answer, event: ChatEvent) -> Answer:
    """The engine's figures of an answer that was stopped here first."""
    if isinstance(answer.state, Stopped) and isinstance(event, AnswerDone):
        return msgspec.structs.replace(answer, figures=_timed(answer, event.stats))
    return answer


def _timed(answer: Answer, stats: AnswerStats | None = None) -> Figures:
    """What our own clock and the engine measured."""
    figures = times(answer)
    if stats is None:
        return figures
    return msgspec.structs.replace(
        figures,
        tokens=len(stats.token_ids),
        tokens_per_second=stats.tokens_per_second,
        prompt_tokens=stats.prompt_tokens,
        reused_tokens=stats.reused_tokens,
        circuit_ms=stats.circuit_ms_p50,
        compute_ms=stats.compute_ms_p50,
        in_flight_ms=stats.in_flight_ms_p50,
    )


def times(answer: Answer) -> Figures:
    """The figures so far of an answer that may still be growing."""
    state = answer.state
    if not isinstance(state, Writing):
        return answer.figures
    writing_s = state.last_s - state.first_s
    return Figures(
        first_word_s=state.first_s - state.asked_s,
        writing_s=writing_s if writing_s >= LEAST_TIMED_S else None,
    )
