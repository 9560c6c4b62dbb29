"""All conversations of this person, the one in view, and what is sent for them. No Qt.

The clock, the calendar and chance are given, so that a test can say what they say.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic

from kafila.domain.chat import AnswerText, ChatEvent
from kafila.domain.commands import Command, StopAnswer
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId
from kafila.gui.serving import conversations as talk
from kafila.gui.serving.conversations import Asked, Conversation, Settings
from kafila.gui.serving.store import ConversationStore, Trouble

SAVE_EVERY_S = 2.0
"""While an answer is being written."""


def _today() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


def _random_id() -> ConversationId:
    return ConversationId(token_hex(16))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Clock, calendar and chance."""

    now_s: Callable[[], float] = monotonic
    today: Callable[[], str] = _today
    new_id: Callable[[], ConversationId] = _random_id


class Library:
    """Holds conversations, newest first; tells the engine and the disk about changes."""

    def __init__(
        self,
        send: Callable[[Command], None],
        store: ConversationStore,
        around: Surroundings = Surroundings(),
    ) -> None:
        self._send = send
        self._store = store
        self._around = around
        self._saved_s = 0.0
        self.settings = Settings()
        self.troubles: list[Trouble] = []
        loaded = store.load()
        self.troubles.extend(loaded.troubles)
        self._all: dict[ConversationId, Conversation] = {one.id: one for one in loaded.conversations}
        self._current = self._fresh()

    @property
    def current(self) -> Conversation:
        """The conversation in view; a new one is not listed before its first question."""
        return self._all.get(self._current.id, self._current)

    @property
    def all(self) -> tuple[Conversation, ...]:
        """Every conversation, the last changed first."""
        return tuple(sorted(self._all.values(), key=lambda one: one.changed_at, reverse=True))

    def find(self, wanted: str) -> tuple[Conversation, ...]:
        """The conversations in which all the wanted words are."""
        return tuple(one for one in self.all if talk.matches(one, wanted))

    def begin(self) -> None:
        """Turn to a new conversation."""
        if self.current.turns:
            self._current = self._fresh()

    def open(self, conversation: ConversationId) -> None:
        """Turn to a conversation."""
        if conversation in self._all:
            self._current = self._all[conversation]

    def forget(self) -> None:
        """Delete the conversation in view."""
        here = self.current
        self.stop()
        self._all.pop(here.id, None)
        self._note(self._store.forget(here.id))
        self._current = self._fresh()

    def ask(self, question: str) -> None:
        """Ask in the conversation in view; an answer being written is stopped first."""
        self.stop()
        self._take(
            talk.ask(
                self.current,
                question,
                self.settings,
                now_s=self._around.now_s(),
                today=self._around.today(),
            )
        )

    def edit(self, at: int, question: str) -> None:
        """Ask something else in the place of turn `at`."""
        self.stop()
        self._take(
            talk.edit(
                self.current,
                at,
                question,
                self.settings,
                now_s=self._around.now_s(),
                today=self._around.today(),
            )
        )

    def ask_again(self, at: int) -> None:
        """Ask for another answer to turn `at`."""
        self.stop()
        self._take(
            talk.ask_again(
                self.current,
                at,
                self.settings,
                now_s=self._around.now_s(),
                today=self._around.today(),
            )
        )

    def stop(self) -> None:
        """Stop the answer being written in the conversation in view; what was said stays."""
        here = self.current
        answer = here.open_answer
        if answer is not None:
            self._send(StopAnswer(conversation=here.id, answer=answer.number))
            self._keep(talk.stop(here))

    def hear(self, event: ChatEvent) -> bool:
        """Take in what the engine says; whether it concerns the conversation in view."""
        here = self._all.get(event.conversation)
        if here is None:
            return False
        now_s = self._around.now_s()
        changed = talk.apply(here, event, now_s=now_s)
        if changed != here:
            self._all[changed.id] = changed
            if not isinstance(event, AnswerText) or now_s - self._saved_s >= SAVE_EVERY_S:
                self._saved_s = now_s
                self._keep(changed)
        return event.conversation == self.current.id

    def interrupt(self, problem: Problem) -> None:
        """No more answers will come: end those being written."""
        for here in self.all:
            if here.open_answer is not None:
                self._keep(talk.interrupt(here, problem))

    def _fresh(self) -> Conversation:
        return Conversation(id=self._around.new_id())

    def _take(self, asked: Asked) -> None:
        self._keep(asked.conversation)
        self._send(asked.command)

    def _keep(self, conversation: Conversation) -> None:
        self._all[conversation.id] = conversation
        self._note(self._store.save(conversation))

    def _note(self, trouble: Trouble | None) -> None:
        if trouble is not None and trouble not in self.troubles:
            self.troubles.append(trouble)
