from typing import Literal

import msgspec
import pytest

from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerQueued, AnswerStats, AnswerText
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId
from kafila.gui.serving import conversations as talk

ID = ConversationId("0" * 32)
SETTINGS = talk.Settings()
TODAY = "2026-11-29T20:00:00+00:00"
STATS = AnswerStats(
    prompt_tokens=12,
    reused_tokens=4,
    token_ids=(1, 2, 3),
    time_to_first_token_s=0.5,
    tokens_per_second=8.0,
    circuit_ms_p50=120.0,
    circuit_ms_p95=150.0,
    compute_ms_p50=80.0,
    in_flight_ms_p50=40.0,
)


def text(answer: int, words: str) -> AnswerText:
    return AnswerText(conversation=ID, answer=answer, text=words)


def done(answer: int, finish: Literal["stop", "length", "stopped"] = "stop") -> AnswerDone:
    return AnswerDone(conversation=ID, answer=answer, finish=finish, stats=STATS)


def asked(*questions: str) -> talk.Conversation:
    """Each question answered, but for the last one."""
    here = talk.Conversation(id=ID)
    for at, question in enumerate(questions):
        if at:
            number = here.turns[-1].answer.number
            here = talk.apply(here, text(number, f"Answer {at}"), now_s=at + 0.5)
            here = talk.apply(here, done(number), now_s=at + 0.9)
        here = talk.ask(here, question, SETTINGS, now_s=float(at), today=TODAY).conversation
    return here


def test_an_answer_grows_and_is_timed() -> None:
    here = asked("How long?")
    here = talk.apply(here, AnswerQueued(conversation=ID, answer=1, ahead=2), now_s=1.0)
    waiting = here.turns[0].answer.state
    assert isinstance(waiting, talk.Waiting)
    assert waiting.ahead == 2
    here = talk.apply(here, text(1, "About "), now_s=2.0)
    here = talk.apply(here, text(1, "50 minutes."), now_s=4.0)
    here = talk.apply(here, done(1), now_s=4.0)
    answer = here.turns[0].answer
    assert answer.text == "About 50 minutes."
    assert answer.state == talk.Done()
    assert answer.figures.first_word_s == pytest.approx(2.0)
    assert answer.figures.writing_s == pytest.approx(2.0)
    assert answer.figures.tokens == 3
    assert here.open_answer is None


def test_the_whole_conversation_is_sent_each_time() -> None:
    here = asked("One?", "Two?")
    here = talk.apply(here, text(2, "Second"), now_s=5.0)
    here = talk.apply(here, done(2), now_s=6.0)
    sent = talk.ask(here, "Three?", SETTINGS, now_s=7.0, today=TODAY).command
    assert [(message.role, message.text) for message in sent.messages] == [
        ("user", "One?"),
        ("assistant", "Answer 1"),
        ("user", "Two?"),
        ("assistant", "Second"),
        ("user", "Three?"),
    ]
    assert sent.answer == 3


def test_questions_that_got_no_answer_are_not_sent_on() -> None:
    here = asked("Lost?")
    here = talk.apply(
        here,
        AnswerFailed(conversation=ID, answer=1, problem=Problem(title="Away", advice="Wait.")),
        now_s=1.0,
    )
    sent = talk.ask(here, "Again?", SETTINGS, now_s=2.0, today=TODAY).command
    assert [message.text for message in sent.messages] == ["Again?"]


def test_editing_cuts_what_follows_and_asks_with_a_new_number() -> None:
    here = asked("One?", "Two?", "Three?")
    again = talk.edit(here, 1, "Other?", SETTINGS, now_s=9.0, today=TODAY)
    assert [turn.question for turn in again.conversation.turns] == ["One?", "Other?"]
    assert again.command.answer == 4
    assert [message.text for message in again.command.messages] == ["One?", "Answer 1", "Other?"]
    late = talk.apply(again.conversation, text(3, "too late"), now_s=10.0)
    assert late == again.conversation


def test_asking_again_replaces_the_answer() -> None:
    here = asked("One?", "Two?")
    again = talk.ask_again(here, 0, SETTINGS, now_s=9.0, today=TODAY)
    assert [turn.question for turn in again.conversation.turns] == ["One?"]
    assert again.conversation.turns[0].answer.text == ""
    assert [message.text for message in again.command.messages] == ["One?"]


def test_editing_the_first_question_renames_the_conversation() -> None:
    here = asked("Where is the ferry?", "Two?")
    assert here.title == "Where is the ferry?"
    again = talk.edit(here, 0, "Where is the tram?", SETTINGS, now_s=1.0, today=TODAY)
    assert again.conversation.title == "Where is the tram?"


def test_what_was_said_stays_when_stopped_and_late_words_are_not_taken_in() -> None:
    here = talk.apply(asked("One?"), text(1, "So "), now_s=1.0)
    here = talk.stop(here)
    here = talk.apply(here, text(1, "far"), now_s=2.0)
    here = talk.apply(here, done(1, "stopped"), now_s=2.0)
    answer = here.turns[0].answer
    assert answer.text == "So "
    assert answer.state == talk.Stopped()
    assert answer.figures.tokens_per_second == 8.0


def test_a_failure_keeps_the_text() -> None:
    problem = Problem(title="Attic mini left", advice="Ask again.")
    here = talk.apply(asked("One?"), text(1, "So far"), now_s=1.0)
    here = talk.interrupt(here, problem)
    assert here.turns[0].answer.state == talk.Failed(problem=problem)
    assert here.turns[0].answer.text == "So far"
    assert talk.interrupt(here, Problem(title="x", advice="y")) == here


def test_an_answer_cut_by_its_length_says_so() -> None:
    here = talk.apply(asked("One?"), text(1, "Long"), now_s=1.0)
    assert talk.apply(here, done(1, "length"), now_s=2.0).turns[0].answer.state == talk.Done(cut=True)


def test_titles_are_short_and_cut_at_a_word() -> None:
    assert talk.title_of("  Hello\nthere ") == "Hello there"
    long = talk.title_of("Suggest a slow Saturday near the water for six people, please")
    assert long.endswith("…")
    assert len(long) <= talk.TITLE_LENGTH + 1
    assert " ".join(long[:-1].split()) in "Suggest a slow Saturday near the water for six people"


def test_search_looks_everywhere() -> None:
    here = asked("Ferry times?", "And trams?")
    assert talk.matches(here, "FERRY answer")
    assert not talk.matches(here, "ferry bicycle")
    assert talk.matches(here, "")


def test_export_is_markdown_without_the_thinking() -> None:
    here = asked("One?\nReally?")
    here = talk.apply(here, text(1, "<think>hm</think>**Yes.**"), now_s=1.0)
    here = talk.apply(here, done(1), now_s=2.0)
    assert talk.as_markdown(here, you="You", model="Qwen3 32B") == (
        "# One? Really?\n\n**You**\n\n> One?\n> Really?\n\n**Qwen3 32B**\n\n**Yes.**\n"
    )


def test_a_conversation_survives_its_file() -> None:
    here = talk.apply(asked("One?", "Two?"), text(2, "half"), now_s=1.0)
    again = msgspec.json.decode(msgspec.json.encode(here), type=talk.Conversation)
    assert again == here
    assert talk.settle(again).turns[1].answer.state == talk.Stopped()
