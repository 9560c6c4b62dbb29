"""Start, the two steps of hosting, joining: what they show, and what they ask of the engine."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from gui.conftest import Show
from helpers import snapshots
from kafila.domain.commands import Command, HostSession, JoinSession, TryDemo
from kafila.domain.errors import Problem
from kafila.gui.codes import code_words
from kafila.gui.pages.draft import ModelChoice
from kafila.gui.pages.host_conversations import ConversationsPage
from kafila.gui.pages.host_model import ModelPage
from kafila.gui.pages.join import JoinPage
from kafila.gui.pages.start import StartPage
from kafila.gui.theme import Theme
from kafila.gui.widgets.choices import ChoiceCard
from kafila.protocol.invitation import make_code

SPOKEN = make_code(47, b"\x01\x82\x63\x34\x95", code_words()).spoken()
LEFT = Qt.MouseButton.LeftButton


# Start -------------------------------------------------------------------------------------------


@pytest.fixture
def start(theme: Theme, sent: list[Command], show: Show) -> StartPage:
    page = StartPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.idle())
    return page


def test_start_says_that_this_computer_is_ready(start: StartPage) -> None:
    assert start.ready.text() == "Studio laptop is ready · 10.4 GB of room"


def test_start_tries_it_here(start: StartPage, sent: list[Command]) -> None:
    QTest.mouseClick(start.try_button, LEFT)
    assert sent == [TryDemo()]


def test_start_leads_to_hosting_and_joining(start: StartPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(start.host_wanted, timeout=1000):
        QTest.mouseClick(start.host_button, LEFT)
    with qtbot.waitSignal(start.join_wanted, timeout=1000):
        QTest.mouseClick(start.join_button, LEFT)


def test_a_copied_code_is_recognised_and_joined(start: StartPage, sent: list[Command]) -> None:
    assert start.copied.isHidden()
    QGuiApplication.clipboard().setText(f"Use {SPOKEN} please")
    assert start.copied.isVisible()
    assert SPOKEN in start.copied.words()
    QTest.mouseClick(start.join_copied, LEFT)
    assert sent == [JoinSession(code=SPOKEN)]


def test_a_dismissed_code_stays_away(start: StartPage) -> None:
    QGuiApplication.clipboard().setText(SPOKEN)
    QTest.mouseClick(start.dismiss, LEFT)
    assert start.copied.isHidden()
    start.show_snapshot(snapshots.idle())
    assert start.copied.isHidden()


def test_ones_own_code_is_not_offered(start: StartPage) -> None:
    start.show_snapshot(snapshots.waiting_room(code=SPOKEN))
    start.show_snapshot(snapshots.idle())
    QGuiApplication.clipboard().setText(SPOKEN)
    assert start.copied.isHidden()


def test_during_a_session_start_only_leads_back_to_it(start: StartPage, qtbot: QtBot) -> None:
    start.show_snapshot(snapshots.waiting_room())
    assert not start.host_button.isEnabled()
    assert "Sunday group" in start.going_on.words()
    with qtbot.waitSignal(start.session_wanted, timeout=1000):
        QTest.mouseClick(start.to_session, LEFT)
    start.show_snapshot(snapshots.ended())
    assert start.host_button.isEnabled()


# Which model -------------------------------------------------------------------------------------


@pytest.fixture
def model_page(theme: Theme, sent: list[Command], show: Show) -> ModelPage:
    page = ModelPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.idle())
    return page


def _cards(page: ModelPage) -> list[ChoiceCard]:
    return [card for card in page.findChildren(ChoiceCard) if card.isVisible()]


def test_the_first_model_is_chosen_and_another_can_be(model_page: ModelPage) -> None:
    assert model_page.summary.words() == "Qwen3 32B"
    QTest.mouseClick(_cards(model_page)[3], LEFT)
    assert model_page.summary.words() == "SmolLM2 135M"
    chosen: list[ModelChoice] = []
    model_page.chosen.connect(chosen.append)
    QTest.mouseClick(model_page.go_on, LEFT)
    assert chosen == [ModelChoice.of(snapshots.MODELS[3])]


def test_searching_shows_what_fits_the_words(model_page: ModelPage) -> None:
    QTest.keyClicks(model_page.search, "pictures gemma")
    assert [card.accessibleName() for card in _cards(model_page)] == ["Gemma 3 27B. Everyday help, looking at pictures"]
    model_page.search.setText("nothing like it")
    assert _cards(model_page) == []
    assert model_page.none_found.isVisible()


def test_a_choice_survives_a_new_list_of_models(model_page: ModelPage) -> None:
    QTest.mouseClick(_cards(model_page)[1], LEFT)
    model_page.show_snapshot(snapshots.snapshot(snapshots.idle().session, models=snapshots.MODELS[:2]))
    assert model_page.summary.words() == "Gemma 3 27B"


def test_a_folder_can_be_the_model(model_page: ModelPage) -> None:
    model_page.tabs.chosen.emit(1)
    assert not model_page.go_on.isEnabled()
    model_page.use_folder("/models/my-model")
    chosen: list[ModelChoice] = []
    model_page.chosen.connect(chosen.append)
    QTest.mouseClick(model_page.go_on, LEFT)
    assert chosen == [ModelChoice(id="/models/my-model", name="my-model")]


def test_without_models_one_cannot_go_on(theme: Theme, sent: list[Command], show: Show) -> None:
    page = ModelPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.snapshot(snapshots.idle().session, models=()))
    assert not page.go_on.isEnabled()


# How long, how many ------------------------------------------------------------------------------


@pytest.fixture
def talks(theme: Theme, sent: list[Command], show: Show) -> ConversationsPage:
    page = ConversationsPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.idle())
    page.set_model(ModelChoice.of(snapshots.MODELS[0]))
    return page


def test_memory_is_counted_for_all_people_together(talks: ConversationsPage) -> None:
    assert talks.need.total.text() == "20.5 GB"
    for _ in range(3):
        QTest.mouseClick(talks.people.more, LEFT)
    assert talks.need.total.text() == "27.0 GB"
    assert talks.summary.words() == "Long conversations, 4 people at once"
    assert "2 more computers like this one" in talks.need.advice.words()


def test_hosting_sends_what_was_chosen(talks: ConversationsPage, sent: list[Command]) -> None:
    QTest.mouseClick(talks.findChildren(ChoiceCard)[0], LEFT)
    QTest.mouseClick(talks.people.more, LEFT)
    QTest.keyClicks(talks.group_name, "Sunday group")
    QTest.mouseClick(talks.get_code, LEFT)
    assert sent == [HostSession(model="qwen3-32b", group="Sunday group", context=2048, concurrency=2)]


def test_the_router_is_asked_only_where_the_host_agreed(talks: ConversationsPage, sent: list[Command]) -> None:
    QTest.mouseClick(talks.get_code, LEFT)
    talks.elsewhere.click()
    QTest.mouseClick(talks.get_code, LEFT)
    assert [command.open_port for command in sent if isinstance(command, HostSession)] == [False, True]


def test_a_group_without_a_name_is_its_owners(talks: ConversationsPage, sent: list[Command]) -> None:
    QTest.mouseClick(talks.get_code, LEFT)
    assert isinstance(sent[0], HostSession)
    assert sent[0].group == "Maya’s group"


def test_what_a_model_cannot_take_cannot_be_chosen(talks: ConversationsPage) -> None:
    talks.set_model(ModelChoice.of(snapshots.MODELS[3]))
    cards = talks.findChildren(ChoiceCard)
    assert [card.isEnabled() for card in cards] == [True, True, False]


def test_an_impossible_length_gives_way(talks: ConversationsPage, sent: list[Command]) -> None:
    QTest.mouseClick(talks.findChildren(ChoiceCard)[2], LEFT)
    talks.set_model(ModelChoice(id="tiny", name="Tiny", size_bytes=10, max_context=2048))
    QTest.mouseClick(talks.get_code, LEFT)
    assert isinstance(sent[0], HostSession)
    assert sent[0].context == 2048


def test_a_folders_needs_are_counted_later(talks: ConversationsPage) -> None:
    talks.set_model(ModelChoice(id="/x", name="x"))
    assert "counted when the code is made" in talks.need.advice.words()
    assert talks.get_code.isEnabled()


def test_why_hosting_failed_is_said_here(talks: ConversationsPage) -> None:
    talks.show_problem(Problem(title="The folder is incomplete", advice="Copy it again."))
    assert talks.problem.isVisible()
    assert talks.problem.words() == "The folder is incomplete. Copy it again."


# Joining -----------------------------------------------------------------------------------------


@pytest.fixture
def join(theme: Theme, sent: list[Command], show: Show) -> JoinPage:
    page = JoinPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.idle())
    return page


def test_a_right_code_is_joined_by_return(join: JoinPage, sent: list[Command]) -> None:
    assert not join.join.isEnabled()
    QTest.keyClicks(join.field, SPOKEN)
    assert join.join.isEnabled()
    QTest.keyClick(join.field, Qt.Key.Key_Return)
    assert sent == [JoinSession(code=SPOKEN)]


def test_a_wrong_word_is_named_and_repaired(join: JoinPage, sent: list[Command]) -> None:
    join.field.setText(SPOKEN.replace("nanny", "nannny"))
    said = join.verdict.words()
    assert said == "The second word is not one of ours. Did you mean nanny? With it the code checks out."
    assert not join.join.isEnabled()
    assert join.use_guess.accessibleName() == "Use “nanny”"
    QTest.mouseClick(join.use_guess, LEFT)
    assert join.field.text() == SPOKEN
    QTest.mouseClick(join.join, LEFT)
    assert sent == [JoinSession(code=SPOKEN)]


def test_words_that_do_not_belong_together(join: JoinPage) -> None:
    parts = SPOKEN.split("-")
    join.field.setText("-".join((parts[0], parts[2], parts[1], *parts[3:])))
    assert join.verdict.words().startswith("These words do not belong together; one of them is wrong.")
    assert join.use_guess.isHidden() or not join.use_guess.isVisible()


def test_the_engines_refusal_stands_at_the_field_until_the_next_key(join: JoinPage, sent: list[Command]) -> None:
    join.field.setText(SPOKEN)
    join.show_problem(Problem(title="No session answers to 47", advice="Check the number with the person hosting."))
    assert join.verdict.words() == "No session answers to 47. Check the number with the person hosting."
    assert join.join.isEnabled()
    join.field.setFocus()
    QTest.keyClick(join.field, Qt.Key.Key_End)
    QTest.keyClick(join.field, Qt.Key.Key_Backspace)
    assert "No session answers" not in join.verdict.words()
    assert sent == []


def test_something_else_than_a_code_is_said_only_after_a_pause(join: JoinPage, qtbot: QtBot) -> None:
    join.field.setText("hello there you ")
    assert not join.verdict.isVisible()
    qtbot.waitUntil(join.verdict.isVisible)
    assert join.verdict.words().startswith("This is not a session code.")


def test_a_copied_code_is_already_in_the_field(theme: Theme, sent: list[Command], show: Show) -> None:
    QGuiApplication.clipboard().setText(SPOKEN)
    page = JoinPage(theme, sent.append)
    show(page)
    assert page.field.text() == SPOKEN


def test_escape_goes_back(join: JoinPage, qtbot: QtBot) -> None:
    with qtbot.waitSignal(join.back, timeout=1000):
        QTest.keyClick(join.field, Qt.Key.Key_Escape)
