from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gui.serving.conftest import Show, Stage
from gui.serving.hands import click, press, seen, words, write
from gui.serving.scenes import ended, paused, serving
from kafila.domain.commands import Ask, StopAnswer
from kafila.gui.serving.message import Message
from kafila.gui.serving.prose import Prose
from kafila.gui.theme import Theme


def ask(stage: Stage, text: str) -> None:
    draft = stage.page.chat.composer.draft
    write(draft, text)
    press(draft, Qt.Key.Key_Return)


def last(stage: Stage) -> Message:
    return stage.page.chat.messages.all[-1]


def answer(stage: Stage) -> str:
    return "".join(part.toPlainText() for part in last(stage).answer.parts if isinstance(part, Prose))


def test_a_question_is_sent_whole_and_its_answer_streams_in(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "How long?")
    asked = stage.engine.asked
    assert [(message.role, message.text) for message in asked.messages] == [("user", "How long?")]
    assert last(stage).bubble.text == "How long?"
    assert stage.page.chat.composer.text == ""
    stage.engine.say("About ", "**50**")
    qtbot.waitUntil(lambda: answer(stage) == "About 50")
    stage.engine.say(" minutes.")
    qtbot.waitUntil(lambda: answer(stage) == "About 50 minutes.")
    stage.engine.finish()
    assert not seen(stage.page.chat.stop)
    assert "first word after" in last(stage).footer.words()


def test_streamed_words_are_rendered_together(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "Go")
    stage.engine.say("a")
    assert answer(stage) == ""
    stage.engine.say(*[" b c d e"])
    qtbot.waitUntil(lambda: answer(stage) == "a b c d e")


def test_shift_and_enter_begin_a_line(stage: Stage) -> None:
    draft = stage.page.chat.composer.draft
    write(draft, "One")
    press(draft, Qt.Key.Key_Return, shift=True)
    write(draft, "Two")
    assert stage.sent == []
    press(draft, Qt.Key.Key_Return)
    assert stage.engine.asked.messages[0].text == "One\nTwo"


def test_nothing_is_sent_for_nothing(stage: Stage) -> None:
    ask(stage, "   ")
    assert stage.sent == []
    assert not stage.page.chat.composer.button.isEnabled()


def test_the_next_question_carries_what_was_said(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("First.")
    stage.engine.finish()
    ask(stage, "Two?")
    assert [message.text for message in stage.engine.asked.messages] == ["One?", "First.", "Two?"]
    assert stage.engine.asked.answer == 2


def test_stop_sends_stop_and_what_was_said_stays(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("So far")
    asked = stage.engine.asked
    assert seen(stage.page.chat.stop)
    click(stage.page.chat.stop)
    assert stage.sent[-1] == StopAnswer(conversation=asked.conversation, answer=asked.answer)
    stage.engine.say(" and more")
    assert answer(stage) == "So far"
    status = last(stage).status
    assert status.words.text() == "You stopped this answer."
    assert seen(status.go_on)
    assert seen(status.again)


def test_escape_stops(stage: Stage) -> None:
    ask(stage, "One?")
    press(stage.page.chat.composer.draft, Qt.Key.Key_Escape)
    assert isinstance(stage.sent[-1], StopAnswer)


def test_going_on_asks_to(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("So far")
    stage.page.chat.stop_answer()
    last(stage).status.go_on.click()
    assert [message.role for message in stage.engine.asked.messages] == [
        "user",
        "assistant",
        "user",
    ]


def test_editing_cuts_and_asks_again(stage: Stage) -> None:
    for question in ("One?", "Two?", "Three?"):
        ask(stage, question)
        stage.engine.say(f"Answer to {question}")
        stage.engine.finish()
    chat = stage.page.chat
    chat.messages.all[1].edit_question.click()
    assert chat.composer.text == "Two?"
    assert seen(chat.edit_notice)
    chat.composer.put("Other?")
    press(chat.composer.draft, Qt.Key.Key_Return)
    assert [message.bubble.text for message in chat.messages.all] == ["One?", "Other?"]
    assert [message.text for message in stage.engine.asked.messages] == [
        "One?",
        "Answer to One?",
        "Other?",
    ]
    assert stage.engine.asked.answer == 4
    assert not seen(chat.edit_notice)


def test_an_edit_can_be_left(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.finish()
    chat = stage.page.chat
    last(stage).edit_question.click()
    chat.cancel_edit.click()
    assert chat.composer.text == ""
    ask(stage, "Two?")
    assert len(chat.messages.all) == 2


def test_asking_again_replaces_the_answer(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "One?")
    stage.engine.say("First")
    stage.engine.finish()
    last(stage).ask_again.click()
    assert len(stage.page.chat.messages.all) == 1
    assert stage.engine.asked.answer == 2
    assert answer(stage) == ""
    stage.engine.say("Second")
    qtbot.waitUntil(lambda: answer(stage) == "Second")


def test_the_place_in_line_is_shown(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "One?")
    status = last(stage).status
    assert status.words.text() == "Reading your question"
    stage.engine.queue(2)
    assert status.words.text() == "2 questions are ahead of yours"
    stage.engine.queue(1)
    assert status.words.text() == "One question is ahead of yours"
    stage.engine.say("x")
    qtbot.waitUntil(lambda: not seen(status))


def test_a_failure_is_said_and_the_text_stays(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("So far")
    stage.engine.fail("Attic mini left", "Ask again.")
    notice = last(stage).failed
    assert seen(notice)
    assert notice.words() == "Attic mini left. Ask again."
    assert answer(stage) == "So far"
    assert stage.page.chat.composer.draft.isEnabled()


def test_an_answer_cut_short_can_go_on(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("Long")
    stage.engine.finish("length")
    assert last(stage).status.words.text() == "The answer reached the length asked for."
    assert seen(last(stage).status.go_on)


def test_tokens_a_second_are_behind_details(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("x")
    stage.engine.finish()
    assert "tokens" not in words(last(stage))
    last(stage).details.click()
    assert "8.0 tokens/s" in words(last(stage))


def test_while_paused_nothing_is_sent_and_the_reason_is_there(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "One?")
    stage.engine.say("the last boat leaves")
    qtbot.waitUntil(lambda: bool(answer(stage)))
    stage.play(paused())
    chat = stage.page.chat
    assert seen(last(stage).waits)
    assert "Paused after “leaves”." in last(stage).waits.words()
    sent = len(stage.sent)
    chat.stop_answer()
    chat.composer.put("Two?")
    press(chat.composer.draft, Qt.Key.Key_Return)
    assert len(stage.sent) == sent + 1
    assert chat.composer.text == "Two?"
    assert chat.composer.why.text() == "Paused: Attic mini is away."
    stage.play(serving())
    assert chat.composer.why.text() == ""
    press(chat.composer.draft, Qt.Key.Key_Return)
    assert isinstance(stage.sent[-1], Ask)


def test_when_the_session_ends_answers_end_and_conversations_stay(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("So far")
    stage.play(ended())
    assert last(stage).failed.words() == "You ended the session. Your conversations stay here."
    assert answer(stage) == "So far"
    assert stage.page.chat.composer.why.text() == "The session has ended."
    assert not last(stage).ask_again.isEnabled()


def test_a_new_conversation_leaves_the_old_one_in_the_list(stage: Stage) -> None:
    chat = stage.page.chat
    ask(stage, "About ferries?")
    first = stage.engine.asked.conversation
    stage.engine.say("Yes.")
    stage.engine.finish()
    chat.begin()
    assert chat.messages.all == ()
    ask(stage, "About trams?")
    assert stage.engine.asked.conversation != first
    chat.open_menu()
    titles = [chat.menu.list.item(at).text() for at in range(chat.menu.list.count())]
    assert sorted(titles) == ["About ferries?", "About trams?"]
    write(chat.menu.field, "ferr yes")
    assert chat.menu.list.count() == 1
    press(chat.menu.field, Qt.Key.Key_Return)
    assert chat.title.accessibleName() == "About ferries?"
    assert last(stage).bubble.text == "About ferries?"


def test_an_answer_goes_on_in_a_conversation_that_is_not_in_view(stage: Stage) -> None:
    chat = stage.page.chat
    ask(stage, "About ferries?")
    chat.begin()
    stage.engine.say("Every hour.")
    stage.engine.finish()
    assert chat.messages.all == ()
    chat.open_menu()
    press(chat.menu.field, Qt.Key.Key_Return)
    assert answer(stage) == "Every hour."


def test_conversations_outlive_the_window(stage: Stage, theme: Theme, show: Show) -> None:
    ask(stage, "One?")
    stage.engine.say("Yes.")
    stage.engine.finish()
    again = Stage(theme, stage.folder)
    show(again.page, 1204, 800)
    again.play(serving())
    again.page.chat.open_menu()
    press(again.page.chat.menu.field, Qt.Key.Key_Return)
    assert answer(again) == "Yes."


def test_a_broken_file_is_told_and_the_others_are_there(theme: Theme, show: Show, tmp_path: Path) -> None:
    (tmp_path / ("a" * 32 + ".json")).write_bytes(b"{broken")
    stage = Stage(theme, tmp_path)
    show(stage.page, 1204, 800)
    stage.play(serving())
    chat = stage.page.chat
    assert seen(chat.trouble)
    assert "set aside as" in chat.trouble.words()
    chat.got_it.click()
    assert not seen(chat.trouble)


def test_a_conversation_is_exported_as_markdown(stage: Stage, tmp_path: Path) -> None:
    ask(stage, "One?")
    stage.engine.say("**Yes.**")
    stage.engine.finish()
    chat = stage.page.chat
    chat.export_to(str(tmp_path / "out.md"))
    text = (tmp_path / "out.md").read_text("utf-8")
    assert text == "# One?\n\n**You**\n\n> One?\n\n**Qwen3 32B**\n\n**Yes.**\n"
    chat.export_to(str(tmp_path / "missing" / "out.md"))
    assert "could not be exported" in chat.trouble.words()


def test_deleting_forgets_the_file(stage: Stage) -> None:
    ask(stage, "One?")
    assert len(list(stage.folder.iterdir())) == 1
    stage.page.chat.delete()
    assert list(stage.folder.iterdir()) == []
    assert stage.page.chat.messages.all == ()


def test_questions_and_answers_can_be_copied(stage: Stage) -> None:
    ask(stage, "One?")
    stage.engine.say("**Yes.**")
    stage.engine.finish()
    last(stage).copy_question.click()
    assert QApplication.clipboard().text() == "One?"
    last(stage).copy_answer.click()
    assert QApplication.clipboard().text() == "**Yes.**"


def test_a_long_conversation_stays_at_its_end_unless_one_reads_above(stage: Stage, qtbot: QtBot) -> None:
    ask(stage, "One?")
    stage.engine.say("\n\n".join(["A paragraph of some words."] * 40))
    messages = stage.page.chat.messages
    bar = messages.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
    bar.setValue(0)
    stage.engine.say("\n\nMore words.")
    qtbot.waitUntil(lambda: "More words." in answer(stage))
    assert bar.value() == 0


def test_settings_are_sent_with_the_question(stage: Stage) -> None:
    settings = stage.page.chat.composer.settings
    settings.choose_length(2)
    settings.choose_freedom(0)
    ask(stage, "One?")
    assert (stage.engine.asked.max_tokens, stage.engine.asked.temperature) == (1024, 0.0)


@pytest.mark.parametrize("name", ["search", "new", "more", "stop"])
def test_buttons_have_names(stage: Stage, name: str) -> None:
    assert getattr(stage.page.chat, name).accessibleName()


def test_a_click_beside_the_draft_is_for_the_draft(stage: Stage, qtbot: QtBot) -> None:
    composer = stage.page.chat.composer
    stage.page.activateWindow()
    stage.page.tabs.setFocus()
    assert not composer.draft.hasFocus()
    QTest.mouseClick(composer, Qt.MouseButton.LeftButton, pos=QPoint(6, 6))
    qtbot.waitUntil(composer.draft.hasFocus)
