"""Sessions of real `kafila` processes, each on a network of its own."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from helpers.processes import Home, Homes, Process
from nat.meeting import PORT
from natlab.internet import Line
from natlab.lab import MIDDLE, Lab, SiteSpec
from natlab.namespaces import Computer
from natlab.rules import Nat

PROMPT = "Once upon a time"
LINE = Line(delay_ms=10)
AT = f"{MIDDLE[0]}:{PORT}"


def laid_out(*nats: Nat) -> "closing[Lab]":
    """A site for each member, called after its place."""
    sites = [SiteSpec(name=str(place), nat=nat, line=LINE) for place, nat in enumerate(nats)]
    return closing(Lab(sites, Line(delay_ms=5)))


def start(computer: Computer, home: Home, *arguments: object) -> Process:
    """Start `kafila` on a computer of the lab."""
    return computer.call(lambda: home.start(*arguments))


def start_rendezvous(lab: Lab, home: Home, *options: object) -> Process:
    """A rendezvous in the middle, which listens."""
    listen = [option for host in MIDDLE for option in ("--listen", f"{host}:{PORT}")]
    process = start(lab.middle, home, "rendezvous", *listen, *options, "--json")
    process.event("listening")
    return process


def start_session(
    lab: Lab, homes: Homes, model: Path | str, size: int, *options: object, prompt: str = PROMPT
) -> list[Process]:
    """A host on the first site and joiners on the others, with the invitation link."""
    host = start(
        lab["0"],
        homes.new(),
        *("host", "--model", model, "--members", size, "--admit", "all", "--max-tokens", 8),
        *("--prompt", prompt, *options, "--json"),
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
