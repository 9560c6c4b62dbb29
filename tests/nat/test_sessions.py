"""Whole sessions of `kafila` processes: without any service but the host's own, and which service counts."""

import signal
from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from helpers.processes import Homes, Process
from nat.sessions import AT, LINE, PROMPT, finish, laid_out, start, start_rendezvous, start_session
from natlab.lab import Lab, SiteSpec
from natlab.port_mapper import gateway_device
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(300)]


def reaches(host: Process) -> list[str]:
    """From where the host was told that people can join, in the order of what was learned."""
    return [line.partition(".")[0] for line in host.errors().splitlines() if line.startswith("People ")]


def test_a_host_with_a_public_address_needs_no_rendezvous_service(homes: Homes, alone: Alone, tiny: Path) -> None:
    with laid_out(Nat.OPEN, Nat.PORT_RESTRICTED, Nat.SYMMETRIC) as lab:
        members = start_session(lab, homes, tiny, 3)
        answer = finish(members)
    assert reaches(members[0]) == ["People elsewhere can probably join, too", "People can join from anywhere"]
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert {edge["path"] for edge in answer["edges"]} == {"direct", "relayed"}


def test_a_host_with_public_ipv6_needs_no_rendezvous_service(homes: Homes, alone: Alone, tiny: Path) -> None:
    host = SiteSpec(name="0", nat=Nat.OPEN, ipv4=False, ipv6=True, line=LINE)
    joiner = SiteSpec(name="1", nat=Nat.SYMMETRIC, ipv6=True, line=LINE)
    with closing(Lab([host, joiner], LINE)) as lab:
        members = start_session(lab, homes, tiny, 2)
        answer = finish(members)
    assert reaches(members[0]) == ["People on this network can join", "People can join from anywhere"]
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert {edge["path"] for edge in answer["edges"]} == {"direct"}


async def test_a_host_whose_router_opens_a_port_needs_no_rendezvous_service(
    homes: Homes, alone: Alone, tiny: Path
) -> None:
    with laid_out(Nat.PORT_RESTRICTED, Nat.SYMMETRIC) as lab:
        async with gateway_device(lab.routers("0")[0]) as gateway:
            members = start_session(lab, homes, tiny, 2, "--open-port")
            answer = finish(members)
            # The lease was taken back at the end.
            assert gateway.open == {}
    assert reaches(members[0]) == ["People elsewhere can probably join, too", "People can join from anywhere"]
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)


def test_a_configured_rendezvous_that_is_another_than_before_is_refused(homes: Homes, tiny: Path) -> None:
    home, stranger = homes.new(), "was not verified"
    with laid_out(Nat.OPEN) as lab:

        def host(at: str) -> Process:
            return start(lab["0"], home, "host", "--model", tiny, "--members", 2, "--rendezvous", at, "--json")

        first = start_rendezvous(lab, homes.new())
        hosting = host(AT)
        hosting.event("code")
        hosting.sentence(stranger)
        for process in (hosting, first):
            process.send(signal.SIGINT)
            assert process.finish().code == 0

        other = start_rendezvous(lab, homes.new()).event("listening")["fingerprint"]
        refused = host(AT).finish()
        assert (refused.code, refused.out) == (1, "")
        assert "shows another certificate than before" in refused.err

        hosting = host(f"{AT}#{other[:32]}")
        assert hosting.event("code")["link"].endswith(f"&pin={other[:32]}")
        hosting.send(signal.SIGINT)
        assert stranger not in hosting.finish().err
