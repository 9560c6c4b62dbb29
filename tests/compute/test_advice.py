"""How a model's makers advise to sample is read where it can be, and never believed beyond reason."""

from pathlib import Path

import pytest

from kafila.compute.advice import Advice, read_advice


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"temperature": 0.6, "top_p": 0.9}', Advice(temperature=0.6, top_p=0.9)),
        ('{"do_sample": false, "temperature": 0.6}', Advice(temperature=0.0, top_p=1.0)),
        ('{"temperature": 1}', Advice(temperature=1.0)),
        ('{"temperature": 99, "top_p": -1}', Advice()),
        ('{"temperature": true, "top_p": "0.5"}', Advice()),
        ("[1, 2]", Advice()),
        ("{", Advice()),
        ("\xff", Advice()),
    ],
)
def test_the_advice_of_a_folder(tmp_path: Path, text: str, advice: Advice) -> None:
    (tmp_path / "generation_config.json").write_bytes(text.encode("latin-1"))
    assert read_advice(tmp_path) == advice


def test_without_a_file_the_usual(tmp_path: Path) -> None:
    assert read_advice(tmp_path) == Advice()
