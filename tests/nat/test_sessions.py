"""Whole sessions of `kafila` processes on different networks: they form, answer alike, and name their paths."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from end_to_end.alone import Alone
from helpers.processes import Home, Homes, Process, homes_in
from nat.meeting import PATIENCE, PORT
from natlab.capture import capturing
from natlab.internet import Line
from natlab.lab import MIDDLE, Lab, SiteSpec
from natlab.namespaces import Computer
from natlab.port_mapper import gateway_device
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(300)]

PROMPT = "Once upon a time"
LINE = Line(delay_ms=10)
FORMING_WITHIN_S = 3.0
AT = f"{MIDDLE[0]}:{PORT}"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    alone = Alone(tmp_path_factory.mktemp("alone"))
    yield alone
    alone.close()


@pytest.fixture(scope="module")
def tiny(alone: Alone, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return alone.make_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    with homes_in(tmp_path) as homes:
        yield homes


def laid_out(*nats: Nat) -> "closing[Lab]":
    """A site for each member, called after its place."""
    sites = [SiteSpec(name=str(place), nat=nat, line=LINE) for place, nat in enumerate(nats)]
    return closing(Lab(sites, Line(delay_ms=5)))


def start(computer: Computer, home: Home, *arguments: object) -> Process:
    """Start `kafila` on a computer of the lab."""
    return computer.call(lambda: home.start(*arguments))


def start_session(lab: Lab, homes: Homes, model: Path, size: int, *options: object) -> list[Process]:
    """A host on the first site and joiners on the others, with the invitation link."""
    host = start(
        lab["0"],
        homes.new(),
        *("host", "--model", model, "--members", size, "--admit", "all", "--max-tokens", 8),
        *("--prompt", PROMPT, *options, "--json"),
    )
    link = host.event("code")["link"]
    joiners = [
        start(lab[str(place)], homes.new(), "join", link, "--name", str(place), "--json") for place in range(1, size)
    ]
    return [host, *joiners]


def finish(processes: Sequence[Process]) -> dict[str, Any]:
    """The answer, once all have ended well."""
    ended = [process.finish() for process in processes]
    assert [each.code for each in ended] == [0] * len(ended), "\n".join(each.said for each in ended)
    (answer,) = [event for event in ended[0].events() if event["event"] == "answer"]
    return answer


@pytest.mark.parametrize(
    ("nats", "paths"),
    [
        pytest.param(
            (Nat.PORT_RESTRICTED, Nat.FULL_CONE, Nat.SYMMETRIC), {"direct": 2, "relayed": 1}, id="mixed homes"
        ),
        pytest.param((Nat.SYMMETRIC, Nat.UDP_BLOCKED, Nat.SYMMETRIC), {"relayed": 3}, id="all by way of the relay"),
        pytest.param((Nat.OPEN, Nat.FIREWALLED, Nat.PORT_MOVED), {"direct": 3}, id="all direct"),
    ],
)
def test_a_ring_over_three_sites_answers_and_names_its_paths(
    homes: Homes, alone: Alone, tiny: Path, nats: tuple[Nat, ...], paths: dict[str, int]
) -> None:
    with laid_out(*nats) as lab:
        listen = [option for host in MIDDLE for option in ("--listen", f"{host}:{PORT}")]
        meeting_point = start(lab.middle, homes.new(), "rendezvous", *listen, "--json")
        meeting_point.event("listening")
        answer = finish(start_session(lab, homes, tiny, len(nats), "--rendezvous", AT))
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert answer["forming_s"] < PATIENCE * FORMING_WITHIN_S
    taken = [edge["path"] for edge in answer["edges"]]
    assert {path: taken.count(path) for path in set(taken)} == paths


def test_a_host_with_a_public_address_needs_no_rendezvous_service(homes: Homes, alone: Alone, tiny: Path) -> None:
    with laid_out(Nat.OPEN, Nat.PORT_RESTRICTED, Nat.SYMMETRIC) as lab:
        answer = finish(start_session(lab, homes, tiny, 3))
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert {edge["path"] for edge in answer["edges"]} == {"direct", "relayed"}


def test_a_host_with_public_ipv6_needs_no_rendezvous_service(homes: Homes, alone: Alone, tiny: Path) -> None:
    host = SiteSpec(name="0", nat=Nat.OPEN, ipv4=False, ipv6=True, line=LINE)
    joiner = SiteSpec(name="1", nat=Nat.SYMMETRIC, ipv6=True, line=LINE)
    with closing(Lab([host, joiner], LINE)) as lab:
        answer = finish(start_session(lab, homes, tiny, 2))
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)
    assert {edge["path"] for edge in answer["edges"]} == {"direct"}


async def test_a_host_whose_router_opens_a_port_needs_no_rendezvous_service(
    homes: Homes, alone: Alone, tiny: Path
) -> None:
    with laid_out(Nat.PORT_RESTRICTED, Nat.SYMMETRIC) as lab:
        async with gateway_device(lab.routers("0")[0]) as gateway:
            answer = finish(start_session(lab, homes, tiny, 2, "--open-port"))
            # The lease was taken back at the end.
            assert gateway.open == {}
    assert answer["token_ids"] == list(alone.answer(tiny, PROMPT, max_tokens=8).token_ids)


def test_the_rendezvous_sees_no_word_of_what_is_said(homes: Homes, tiny: Path) -> None:
    """Everything goes by way of the relay here, so the rendezvous sees every packet of the session."""
    with laid_out(Nat.SYMMETRIC, Nat.UDP_BLOCKED) as lab, capturing(lab.middle) as capture:
        meeting_point = start(lab.middle, homes.new(), "rendezvous", "--listen", AT, "--json")
        meeting_point.event("listening")
        host, joiner = start_session(lab, homes, tiny, 2, "--rendezvous", AT)
        invited = host.event("code")
        answer = finish([host, joiner])
        machine = socket.gethostname().split(".")[0]
    assert {edge["path"] for edge in answer["edges"]} == {"relayed"}
    assert len(capture.packets) > 100
    nameplate, *words = invited["code"].split("-")
    secrets = [*words, invited["code"], PROMPT, tiny.name, f"{machine}’s group", "model.layers"]
    for secret in secrets:
        for seen in (secret.encode(), secret.encode("utf-16-le")):
            assert not capture.holds(seen), secret
    # What is there can be found: the capture is one of this session.
    assert capture.holds(b"/signal")
    assert nameplate.isdigit()
