"""A whole session on one home's network, with nothing but the code that people say to each other."""

from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from helpers.processes import Homes
from nat.sessions import LINE, PROMPT, finish, start
from natlab.lab import Lab, SiteSpec
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(300)]


def test_the_spoken_code_is_enough_on_one_network(homes: Homes, alone: Alone, tiny: Path) -> None:
    home = SiteSpec(name="home", nat=Nat.SYMMETRIC, computers=2, line=LINE)
    with closing(Lab([home], LINE)) as lab:
        how = ("--members", 2, "--admit", "all", "--max-tokens", 8, "--prompt", PROMPT, "--json")
        host = start(lab["home"], homes.new(), "host", "--model", tiny, *how)
        joiner = start(lab["home2"], homes.new(), "join", host.event("code")["code"], "--json")
        answer = finish([host, joiner])
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert {edge["path"] for edge in answer["edges"]} == {"direct"}
