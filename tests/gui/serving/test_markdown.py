import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.gui.serving.markdown import Code, Prose, Thought, link_allowed, split, spoken


def test_code_becomes_its_own_segment() -> None:
    text = "Try this:\n\n```python\nprint(1)\n```\nThen run it."
    assert split(text) == (
        Prose(text="Try this:"),
        Code(language="python", text="print(1)", closed=True),
        Prose(text="Then run it."),
    )


def test_code_that_is_still_being_written() -> None:
    assert split("```sh\nls") == (Code(language="sh", text="ls", closed=False),)
    assert split("```") == (Code(language="", text="", closed=False),)


def test_a_fence_closes_only_with_its_own_kind_and_length() -> None:
    text = "````md\n```\nx\n```\n````\nafter"
    assert split(text) == (
        Code(language="md", text="```\nx\n```", closed=True),
        Prose(text="after"),
    )
    assert split("~~~\n```\n~~~") == (Code(language="", text="```", closed=True),)


def test_a_fence_in_a_list_loses_its_indentation() -> None:
    assert split("1. a\n   ```js\n   f()\n   ```")[1] == Code(language="js", text="f()", closed=True)


def test_inline_code_is_prose() -> None:
    assert split("```not a fence``` here") == (Prose(text="```not a fence``` here"),)


def test_a_language_is_one_tame_word() -> None:
    code = split("```<script>alert(1)\nx\n```")[0]
    assert isinstance(code, Code)
    assert code.language == ""
    code = split("```c++ {.numbers}\nx\n```")[0]
    assert isinstance(code, Code)
    assert code.language == "c++"


def test_thinking_is_folded_away_and_not_exported() -> None:
    text = "<think>\nLet me see.\n</think>\n\nParis."
    assert split(text) == (Thought(text="Let me see.", closed=True), Prose(text="Paris."))
    assert split("<think>Hm") == (Thought(text="Hm", closed=False),)
    assert split("<think>\n\n</think>\n\nParis.") == (Prose(text="Paris."),)
    assert spoken(text) == "Paris."


def test_long_prose_is_cut_between_paragraphs_and_cuts_stay() -> None:
    paragraph = "Some words that go on. " * 20
    text = "\n\n".join(f"{n} {paragraph}".strip() for n in range(12))
    whole = split(text)
    assert len(whole) > 2
    assert "\n\n".join(part.text for part in whole) == text
    for end in range(0, len(text), 97):
        part = split(text[:end])
        assert part[:-1] == whole[: max(0, len(part) - 1)]


def test_lists_tables_and_quotations_are_never_cut() -> None:
    long = "x" * 700
    for text in (
        f"1. {long}\n\n2. {long}\n\n3. {long}",
        f"- {long}\n\n  {long}\n\n- {long}",
        f"> {long}\n\n> {long}\n\n> {long}",
    ):
        assert len(split(text)) == 1


@given(st.text(alphabet="ab `~\n#-", max_size=200))
def test_no_visible_text_is_lost(text: str) -> None:
    kept = "".join(part.text + (part.language if isinstance(part, Code) else "") for part in split(text))
    for letter in "a":
        # The word after a fence is its language; only the first one counts.
        assert kept.count(letter) <= text.count(letter)
    if "`" not in text and "~" not in text:
        assert "".join(kept.split()) == "".join(text.split())


@pytest.mark.parametrize("address", ["https://example.org/a?b=c", "http://example.org", "mailto:ada@example.org"])
def test_links_to_the_web_are_allowed(address: str) -> None:
    assert link_allowed(address)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "/etc/passwd",
        "../secret.txt",
        "javascript:alert(1)",
        "data:text/html,x",
        "kafila://join/1",
        "smb://host/share",
        "https://",
        "https://[bad",
        "ht\ntps://example.org",
        "mailto:?attach=/etc/passwd",
        "mailto:a@b.c?attach=/etc/passwd",
        "",
        "C:\\Windows\\win.ini",
    ],
)
def test_everything_else_is_not(address: str) -> None:
    assert not link_allowed(address)
