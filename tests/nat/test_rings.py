"""Rings of the demo's real model over sites of every kind: formed in time, right, and true of their paths."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.processes import Home, Homes, Process, homes_in
from kafila.domain.capability import Mapping, Reachability
from kafila.planner.reachability import predict_path
from nat.meeting import CLASSES, PATIENCE
from nat.sessions import AT, finish, laid_out, start_rendezvous, start_session
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(400)]

PROMPT = "What is the capital of France?"
FORMED_WITHIN_S = 3.0
LOADED = ("connect", "first-token", "ready")
"""What the host says of a member that has its part of the model in memory."""


class Households(Homes):
    """Homes that have the demo's model already."""

    def __init__(self, folder: Path, first: Home) -> None:
        super().__init__(folder)
        self._first = first

    def new(self, name: str = "home") -> Home:
        home = super().new(name)
        home.models.parent.mkdir(parents=True)
        home.models.symlink_to(self._first.models)
        return home


@pytest.fixture(scope="module")
def first_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with homes_in(tmp_path_factory.mktemp("demo")) as homes:
        yield homes.new()


@pytest.fixture(scope="module")
def one_process(first_home: Home) -> dict[str, Any]:
    """What a ring of one answers, which needs no network."""
    ran = first_home.run("demo", "--headless", "--members", 1, "--prompt", PROMPT, "--max-tokens", 8, "--json")
    assert ran.code == 0, ran.said
    return json.loads(ran.out)


@pytest.mark.parametrize(
    "nats",
    [
        pytest.param((Nat.PORT_RESTRICTED, Nat.FULL_CONE, Nat.SYMMETRIC), id="3 mixed"),
        pytest.param(
            (Nat.SYMMETRIC, Nat.UDP_BLOCKED, Nat.SYMMETRIC, Nat.SYMMETRIC, Nat.UDP_BLOCKED), id="5 all relayed"
        ),
        pytest.param(tuple(nat for nat in CLASSES if nat is not Nat.LEAKY), id="8, one of each class"),
    ],
)
def test_a_ring_forms_in_time_answers_and_names_its_paths(
    tmp_path: Path, first_home: Home, one_process: dict[str, Any], nats: tuple[Nat, ...]
) -> None:
    homes = Households(tmp_path, first_home)
    try:
        with laid_out(*nats) as lab:
            start_rendezvous(lab, homes.new())
            processes = start_session(lab, homes, "demo", len(nats), "--rendezvous", AT, prompt=PROMPT)
            answer = finish(processes)
    finally:
        homes.end_all()
    assert answer["token_ids"] == one_process["token_ids"]
    assert "Paris" in answer["text"]
    host = processes[0]
    assert beyond_loading_s(host) < PATIENCE * FORMED_WITHIN_S
    check_times(host)
    check_paths(answer, nats)


def beyond_loading_s(host: Process) -> float:
    """How long forming took once every member had loaded its part."""
    members = host.event("plan")["blocks"]
    loaded_at = [
        min(at for state in LOADED for at in host.came_at("member", id=member, state=state)) for member in members
    ]
    (ready_at,) = host.came_at("ready")
    return ready_at - max(loaded_at)


def check_times(host: Process) -> None:
    """That every edge was soon in use, and none before the start but those with the host, whose links are older."""
    (host_id,) = host.event("plan")["blocks"].keys() - {
        event["id"] for event in host.events() if event["event"] == "member" and event["name"].isdigit()
    }
    edges = [event for event in host.events() if event["event"] == "edge"]
    firsts = {(event["from"], event["to"]): event["after_ms"] for event in reversed(edges)}
    assert len(firsts) == len(host.event("plan")["blocks"])
    assert max(firsts.values()) < PATIENCE * FORMED_WITHIN_S * 1000
    assert all(after_ms > 0 for pair, after_ms in firsts.items() if host_id not in pair)


def check_paths(answer: dict[str, Any], nats: tuple[Nat, ...]) -> None:
    """That every edge took the path which the two sites allow."""
    names = [member["name"] for member in answer["members"]]
    # The host, whose name is this computer's, is at the first site.
    sites = {name: nats[int(name) if name.isdigit() else 0] for name in names}
    assert len(names) == len(nats)
    predicted = {
        (one, other): predict_path(known_of(sites[one]), known_of(sites[other])).value
        for one, other in zip(names, [*names[1:], *names[:1]], strict=True)
    }
    assert {(edge["from"], edge["to"]): edge["path"] for edge in answer["edges"]} == predicted


def known_of(nat: Nat) -> Reachability:
    """What the planner should know of whoever is behind such a router."""
    mapping, filtering = CLASSES[nat]
    return Reachability(mapping=Mapping.UDP_BLOCKED if nat is Nat.UDP_BLOCKED else mapping, filtering=filtering)
