import pytest

from kafila.gui.serving.wording import Unit, amount, rate


def test_words_are_counted_where_there_are_spaces() -> None:
    found = amount("Make it three short stops.")
    assert (found.count, found.unit) == (5, Unit.WORDS)


@pytest.mark.parametrize("text", ["東京はとてもにぎやかです。", "สวัสดีครับ"])
def test_characters_are_counted_where_there_are_none(text: str) -> None:
    found = amount(text)
    assert (found.count, found.unit) == (len(text), Unit.CHARACTERS)


def test_arabic_and_empty_texts_count_words() -> None:
    assert amount("نحو خمسين دقيقة").count == 3
    assert amount("").count == 0


def test_a_rate_needs_time_and_more_than_one_word() -> None:
    assert rate("one two three", 0.1) is None
    assert rate("one", 5.0) is None
    assert rate("one two three four five", 2.0) == pytest.approx(2.0)
