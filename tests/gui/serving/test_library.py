from itertools import count
from pathlib import Path

import pytest

from kafila.domain.chat import AnswerText
from kafila.domain.commands import Ask, Command, StopAnswer
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId
from kafila.gui.serving import conversations as talk
from kafila.gui.serving.library import Library, Surroundings
from kafila.gui.serving.store import ConversationStore


class Desk:
    """A library with a clock that a test turns."""

    def __init__(self, folder: Path | None) -> None:
        self.sent: list[Command] = []
        self.now_s = 0.0
        numbers = count(1)
        days = count(1)
        self.store = ConversationStore(folder)
        self.library = Library(
            self.sent.append,
            self.store,
            Surroundings(
                now_s=lambda: self.now_s,
                today=lambda: f"2026-01-{next(days):02}",
                new_id=lambda: ConversationId(f"{next(numbers):032x}"),
            ),
        )

    def ask(self, question: str) -> Ask:
        self.library.ask(question)
        command = self.sent[-1]
        assert isinstance(command, Ask)
        return command

    def say(self, ask: Ask, text: str) -> bool:
        return self.library.hear(AnswerText(conversation=ask.conversation, answer=ask.answer, text=text))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_an_empty_conversation_is_not_kept(desk: Desk) -> None:
    desk.library.begin()
    assert desk.library.all == ()
    assert desk.store.load().conversations == ()


def test_the_last_changed_comes_first(desk: Desk) -> None:
    desk.ask("One?")
    desk.library.begin()
    desk.ask("Two?")
    assert [one.title for one in desk.library.all] == ["Two?", "One?"]
    desk.library.open(desk.library.all[1].id)
    desk.ask("Three?")
    assert [one.title for one in desk.library.all] == ["One?", "Two?"]


def test_asking_stops_what_is_being_written(desk: Desk) -> None:
    first = desk.ask("One?")
    desk.ask("Two?")
    assert desk.sent[1] == StopAnswer(conversation=first.conversation, answer=first.answer)


def test_events_are_for_their_own_conversation(desk: Desk) -> None:
    first = desk.ask("One?")
    desk.library.begin()
    second = desk.ask("Two?")
    assert not desk.say(first, "to the first")
    assert desk.say(second, "to the second")
    assert not desk.library.hear(AnswerText(conversation=ConversationId("f" * 32), answer=1, text="nobody's"))
    assert desk.library.current.turns[0].answer.text == "to the second"


def test_a_long_answer_is_saved_now_and_then(desk: Desk) -> None:
    ask = desk.ask("One?")
    desk.now_s = 1.0
    desk.say(ask, "a")
    assert desk.store.load().conversations[0].turns[0].answer.text == ""
    desk.now_s = 3.0
    desk.say(ask, "b")
    assert desk.store.load().conversations[0].turns[0].answer.text == "ab"


def test_an_interruption_ends_every_open_answer(desk: Desk) -> None:
    desk.ask("One?")
    desk.library.begin()
    desk.ask("Two?")
    desk.library.interrupt(Problem(title="Ended", advice="Nothing to do."))
    assert all(one.open_answer is None for one in desk.library.all)
    saved = desk.store.load().conversations
    assert all(isinstance(one.turns[0].answer.state, talk.Failed) for one in saved)


def test_forgetting_turns_to_a_new_conversation(desk: Desk) -> None:
    ask = desk.ask("One?")
    desk.library.forget()
    assert desk.library.all == ()
    assert desk.library.current.id != ask.conversation
    assert isinstance(desk.sent[-1], StopAnswer)
    assert desk.store.load().conversations == ()


def test_ids_are_random() -> None:
    sent: list[Command] = []
    ids = {Library(sent.append, ConversationStore(None)).current.id for _ in range(20)}
    assert len(ids) == 20
    assert all(len(one) == 32 for one in ids)
