"""Chats over the engine's wire: a ring that has answered before says what a fresh process would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from end_to_end.engine_client import EngineClient, host_with
from helpers.processes import Home, homes_in
from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerQueued
from kafila.domain.commands import Ask, JoinSession, LeaveSession, StopAnswer, TryDemo
from kafila.domain.snapshot import Ended, Idle, Serving

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(300)]

SHORT, LONG = 12, 400


class Friends:
    """Two engines that serve a ring, each with its own person."""

    def __init__(self, host: EngineClient, joiner: EngineClient, model: Path, alone: Alone) -> None:
        self.host, self.joiner = host, joiner
        self._model, self._alone = model, alone

    def ask(self, client: EngineClient, conversation: str, *turns: str) -> str:
        """Ask, and check the answer against what one process says; returns its text."""
        question = client.ask(conversation, *turns, max_tokens=SHORT)
        return self.check(client, question, *turns)

    def check(self, client: EngineClient, question: Ask, *turns: str) -> str:
        """That an answer is what one process says to a conversation."""
        done = client.answered(question)
        assert isinstance(done, AnswerDone), done
        expected = self._alone.answer(self._model, *turns, max_tokens=SHORT)
        assert done.stats.token_ids == expected.token_ids
        text = client.text(question)
        assert text == expected.text.rstrip("\ufffd")
        return text

    def reused(self, client: EngineClient, question: Ask) -> int:
        """How much of a conversation was still known from before."""
        done = client.answered(question)
        assert isinstance(done, AnswerDone)
        return done.stats.reused_tokens


@pytest.fixture(scope="module")
def friends(alone: Alone, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Friends]:
    with homes_in(tmp_path_factory.mktemp("friends")) as homes:
        host, joiner = EngineClient(homes.new()), EngineClient(homes.new())
        joiner.until(Idle)
        joiner.do(JoinSession(code=host_with(host, tiny, members=2), listen="127.0.0.1:0"))
        for client in (host, joiner):
            client.until(Serving)
        yield Friends(host, joiner, tiny, alone)
        host.do(LeaveSession())
        ended = joiner.until(Ended)
        assert ended.reason.title == "The host ended the session"
        for client in (host, joiner):
            left = client.leave()
            assert (left.code, "Traceback" in left.err) == (0, False), left.err


def test_two_chats_one_after_the_other(friends: Friends) -> None:
    for person in (friends.host, friends.joiner):
        friends.ask(person, "one", "Where do rivers end?")
        friends.ask(person, "two", "Who was here before?")


def test_a_chat_that_goes_on(friends: Friends) -> None:
    first = "How are you?"
    answer = friends.ask(friends.joiner, "on", first)
    question = friends.joiner.ask("on", first, answer, "And now?", max_tokens=SHORT)
    friends.check(friends.joiner, question, first, answer, "And now?")
    assert friends.reused(friends.joiner, question) > len(first)


@pytest.mark.parametrize("who", ["host", "joiner"])
def test_a_question_after_a_stopped_answer(friends: Friends, who: str) -> None:
    person: EngineClient = getattr(friends, who)
    question = person.ask("stopped", "Tell me everything.", max_tokens=LONG)
    person.begun(question)
    person.do(StopAnswer(conversation=question.conversation, answer=question.answer))
    done = person.answered(question)
    assert isinstance(done, AnswerDone)
    assert done.finish == "stopped"
    assert len(done.stats.token_ids) < LONG
    friends.ask(person, "stopped", "Tell me everything.", person.text(question), "Only the end, please.")


def test_an_edited_message(friends: Friends) -> None:
    """The same length, so that nothing but the text itself tells the two apart."""
    answer = friends.ask(friends.joiner, "edited", "I like tea.")
    friends.ask(friends.joiner, "edited", "I like tea.", answer, "Do you?")
    friends.ask(friends.joiner, "edited", "I like tea.", answer, "Or not?")
    friends.ask(friends.joiner, "edited", "I hate tea.")
    friends.ask(friends.joiner, "edited", "I like tea.", answer[::-1], "Do you?")
    friends.ask(friends.joiner, "edited", "I like tea.")


def test_two_people_at_once(friends: Friends) -> None:
    first = friends.host.ask("at once", "First?", max_tokens=LONG)
    friends.host.begun(first)
    second = friends.joiner.ask("at once", "Second?", max_tokens=SHORT)
    friends.joiner.process.wait_until(lambda: bool(friends.joiner.heard(second)), "its place in the queue")
    assert isinstance(friends.joiner.heard(second)[0], AnswerQueued)
    friends.host.do(StopAnswer(conversation=first.conversation, answer=first.answer))
    friends.check(friends.joiner, second, "Second?")


def test_lines_that_are_no_commands_change_nothing(friends: Friends) -> None:
    for line in ("", "{", "[]", '{"type": "nonsense"}', '{"type": "ask"}', "x" * 100_000):
        friends.joiner.process.say(line)
    friends.ask(friends.joiner, "after", "Still there?")


def test_nobody_answers_where_there_is_no_ring(home: Home) -> None:
    client = EngineClient(home)
    question = client.ask("early", "Hello?", max_tokens=SHORT)
    failed = client.answered(question)
    assert isinstance(failed, AnswerFailed)
    assert failed.problem.advice
    left = client.leave()
    assert (left.code, "Traceback" in left.err) == (0, False), left.err


@pytest.mark.timeout(400)
def test_the_demo_in_the_window_answers_with_paris(demo_home: Home, alone: Alone) -> None:
    """Three real engines, the question that the issue names, and one more."""
    client = EngineClient(demo_home, "--profile", "window")
    client.do(TryDemo(members=3))
    serving = client.until(Serving)
    assert len({member.process_id for member in serving.ring}) == 3
    assert client.process.pid in {member.process_id for member in serving.ring}
    first = "What is the capital of France?"
    question = client.ask("demo", first, max_tokens=24)
    done = client.answered(question)
    assert isinstance(done, AnswerDone)
    answer = client.text(question)
    assert "Paris" in answer
    (model,) = demo_home.models.iterdir()
    expected = alone.answer(model, first, max_tokens=24).token_ids
    assert done.stats.token_ids == expected

    more = client.ask("demo", first, answer, "And of Italy?", max_tokens=200)
    client.begun(more)
    client.do(StopAnswer(conversation=more.conversation, answer=more.answer))
    stopped = client.answered(more)
    assert isinstance(stopped, AnswerDone)
    assert stopped.finish == "stopped"
    done = client.answered(client.ask("demo", first, max_tokens=24))
    assert isinstance(done, AnswerDone)
    assert done.stats.token_ids == expected

    client.do(LeaveSession())
    client.until(Ended)
    left = client.leave()
    assert (left.code, "Traceback" in left.err) == (0, False), left.err
