import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QApplication

from gui.serving.conftest import Show
from gui.serving.hands import seen
from kafila.gui.serving.answer_view import AnswerView, CodeCard, Thinking
from kafila.gui.serving.prose import Prose
from kafila.gui.theme import Theme


def anchors(prose: Prose) -> list[str]:
    found: list[str] = []
    cursor = QTextCursor(prose.document())
    while not cursor.atEnd():
        cursor.movePosition(QTextCursor.MoveOperation.NextCharacter)
        if cursor.charFormat().isAnchor():
            found.append(cursor.charFormat().anchorHref())
    return sorted(set(found))


def has_pictures(prose: Prose) -> bool:
    cursor = QTextCursor(prose.document())
    while not cursor.atEnd():
        cursor.movePosition(QTextCursor.MoveOperation.NextCharacter)
        if cursor.charFormat().isImageFormat():
            return True
    return "\N{OBJECT REPLACEMENT CHARACTER}" in prose.toPlainText()


@pytest.fixture
def prose(theme: Theme, show: Show) -> Prose:
    prose = Prose(theme, "Answer")
    show(prose, 500, 200)
    return prose


@pytest.mark.parametrize(
    "text",
    [
        "![the bay](https://example.org/bay.png)",
        "![the bay](file:///etc/passwd)",
        "![the bay][1]\n\n[1]: https://example.org/bay.png",
        "[![the bay](https://example.org/bay.png)](https://example.org)",
    ],
)
def test_pictures_become_their_description(prose: Prose, text: str) -> None:
    prose.show_markdown(f"Look: {text} there", writing=False)
    assert not has_pictures(prose)
    assert "the bay" in prose.toPlainText()
    assert "there" in prose.toPlainText()


def test_nothing_is_ever_fetched(prose: Prose) -> None:
    assert prose.loadResource(2, QUrl("file:///etc/passwd")) is None
    assert prose.loadResource(2, QUrl("https://example.org/x.png")) is None


@pytest.mark.parametrize(
    "text",
    ["<b>bold</b>", "<img src='https://example.org/x.png'>", "<script>alert(1)</script>"],
)
def test_html_stays_text(prose: Prose, text: str) -> None:
    prose.show_markdown(f"a {text} b", writing=False)
    assert text in prose.toPlainText()
    assert not has_pictures(prose)


def test_only_web_and_mail_addresses_are_links(prose: Prose) -> None:
    prose.show_markdown(
        "[web](https://example.org/a) [mail](mailto:ada@example.org) [file](file:///etc/passwd) "
        "[rel](../x) [js](javascript:alert(1)) [app](kafila://join/47)",
        writing=False,
    )
    assert anchors(prose) == ["https://example.org/a", "mailto:ada@example.org"]
    assert "file" in prose.toPlainText()


def test_links_do_not_open_by_themselves(prose: Prose) -> None:
    assert not prose.openLinks()
    assert not prose.openExternalLinks()


def test_it_is_as_high_as_its_text(prose: Prose) -> None:
    prose.show_markdown("One line.", writing=False)
    low = prose.height()
    prose.show_markdown("\n\n".join(["A paragraph."] * 8), writing=False)
    assert prose.height() > 4 * low
    assert not seen(prose.verticalScrollBar())


def test_markdown_is_rendered(prose: Prose) -> None:
    prose.show_markdown(
        "# Head\n\nSome **bold** and `code`.\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |",
        writing=True,
    )
    shown = prose.toPlainText()
    assert "**" not in shown
    assert "|" not in shown
    assert "#" not in shown
    prose.grab()


def test_an_answer_is_prose_code_and_thinking(theme: Theme, show: Show) -> None:
    view = AnswerView(theme)
    show(view, 500, 400)
    view.show_text("<think>Hm</think>Try:\n```python\nprint(1)\n```\nDone.", writing=False)
    assert [type(part) for part in view.parts] == [Thinking, Prose, CodeCard, Prose]
    code = view.parts[2]
    assert isinstance(code, CodeCard)
    assert code.code.toPlainText() == "print(1)"
    assert code.code.accessibleName() == "Code, python"
    code.copy.click()
    assert QApplication.clipboard().text() == "print(1)"
    assert code.copy.accessibleName() == "Copied"


def test_only_what_changed_is_rendered_again(theme: Theme, show: Show) -> None:
    view = AnswerView(theme)
    show(view, 500, 400)
    view.show_text("One.\n```\nx\n```\nTw", writing=True)
    before = view.parts
    view.show_text("One.\n```\nx\n```\nTwo", writing=True)
    assert view.parts == before
    last = view.parts[2]
    assert isinstance(last, Prose)
    assert last.shown == "Two"


def test_text_that_turns_into_code_changes_its_kind(theme: Theme, show: Show) -> None:
    view = AnswerView(theme)
    show(view, 500, 400)
    view.show_text("``", writing=True)
    assert isinstance(view.parts[0], Prose)
    view.show_text("```\nx", writing=True)
    assert isinstance(view.parts[0], CodeCard)


def test_far_off_answers_keep_their_height_and_drop_their_documents(theme: Theme, show: Show) -> None:
    view = AnswerView(theme)
    show(view, 500, 400)
    view.show_text("\n\n".join(["A paragraph."] * 8), writing=False)
    height = view.height()
    view.park()
    assert view.parts == ()
    assert view.height() == height
    view.unpark()
    assert len(view.parts) == 1
