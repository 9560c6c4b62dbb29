"""A client of `kafila engine`, as the window is one: typed commands in, snapshots and chat events out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from helpers.processes import PATIENCE_S, Finished, Home, Process
from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerText, ChatEvent
from kafila.domain.commands import Admission, Ask, ChatMessage, Command, HostSession
from kafila.domain.ids import ConversationId
from kafila.domain.snapshot import SessionView, Snapshot, WaitingRoom
from kafila.domain.wire import Output, decode_output

View = TypeVar("View", bound=SessionView)


class EngineClient:
    """An engine process, and what it has said."""

    def __init__(self, home: Home, *options: str) -> None:
        self.process: Process = home.start("engine", *options)
        self._said: list[Output] = []
        self._answers = 0

    def do(self, command: Command) -> None:
        """Ask the engine for something."""
        self.process.say(msgspec.json.encode(command).decode())

    def said(self) -> list[Output]:
        """Everything that it has said so far."""
        self._said += [decode_output(line.encode()) for line in self.process.lines(len(self._said))]
        return self._said

    def until(
        self, page: type[View], look: Callable[[View], bool] = lambda _: True, *, within_s: float = PATIENCE_S
    ) -> View:
        """What is to be seen, once it is this page and looks so."""
        seen: list[View] = []

        def there() -> bool:
            snapshots = [output for output in self.said() if isinstance(output, Snapshot)]
            seen[:] = [s.session for s in snapshots[-1:] if isinstance(s.session, page) and look(s.session)]
            return bool(seen)

        self.process.wait_until(there, f"the page {page.__name__}", within_s=within_s)
        return seen[0]

    # Chat

    def ask(self, conversation: str, *turns: str, max_tokens: int) -> Ask:
        """Ask something at temperature 0; the conversation's sides take turns."""
        self._answers += 1
        messages = tuple(
            ChatMessage(role="assistant" if place % 2 else "user", text=turn) for place, turn in enumerate(turns)
        )
        question = Ask(
            conversation=ConversationId(conversation),
            answer=self._answers,
            messages=messages,
            max_tokens=max_tokens,
            temperature=0.0,
            top_p=1.0,
        )
        self.do(question)
        return question

    def heard(self, question: Ask) -> Sequence[ChatEvent]:
        """What was said of one answer so far."""
        return [
            output
            for output in self.said()
            if not isinstance(output, Snapshot)
            and (output.conversation, output.answer) == (question.conversation, question.answer)
        ]

    def begun(self, question: Ask) -> None:
        """Wait for the first words of an answer."""
        look = lambda: any(isinstance(event, AnswerText) for event in self.heard(question))  # noqa: E731
        self.process.wait_until(look, "a word of an answer")

    def answered(self, question: Ask) -> AnswerDone | AnswerFailed:
        """How an answer ended."""
        ends: list[AnswerDone | AnswerFailed] = []

        def over() -> bool:
            ends[:] = [event for event in self.heard(question) if isinstance(event, AnswerDone | AnswerFailed)]
            return bool(ends)

        self.process.wait_until(over, "the end of an answer")
        return ends[0]

    def text(self, question: Ask) -> str:
        """The words of an answer so far."""
        return "".join(event.text for event in self.heard(question) if isinstance(event, AnswerText))

    def leave(self) -> Finished:
        """Go away; the engine ends."""
        self.process.close_input()
        return self.process.finish()


def host_with(client: EngineClient, model: Path, *, members: int) -> str:
    """Let a client host so many; returns the invitation link."""
    client.do(
        HostSession(model=str(model), admission=Admission.ALL, start_at=members, listen="127.0.0.1:0"),
    )
    room = client.until(WaitingRoom, lambda room: room.link is not None)
    assert room.link is not None
    return room.link
