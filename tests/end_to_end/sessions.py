"""Sessions of a host and joiners in processes of their own, as tests of several kinds need them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.processes import Home, Homes, Process

LOCAL = "127.0.0.1:0"


def start_host(home: Home, model: Path | str, *options: object, members: int = 2) -> Process:
    """A host that lets in whoever proves the code, on this computer's loopback interface."""
    where = () if "--rendezvous" in options or "--listen" in options else ("--listen", LOCAL)
    who = () if "--admit" in options else ("--admit", "all")
    return home.start("host", "--model", model, "--members", members, *who, *where, *options, "--json")


def link_of(host: Process) -> str:
    """The host's invitation link, once there is one."""
    return host.event("code")["link"]


def start_joiner(home: Home, host: Process, *options: object) -> Process:
    """A joiner that uses the link."""
    return home.start("join", link_of(host), *options, "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Processes that have formed a ring, the host first, and who of them is who in it."""

    processes: Sequence[Process]
    homes: Sequence[Home]

    @property
    def host(self) -> Process:
        """The one with the code."""
        return self.processes[0]

    @property
    def joiners(self) -> Sequence[Process]:
        """The others."""
        return self.processes[1:]

    def plan(self) -> dict[str, Any]:
        """Who holds what."""
        return self.host.event("plan")

    def members(self) -> dict[str, Process]:
        """The processes by their ids in the session."""
        ids = {event["name"]: event["id"] for event in self.host.events() if event["event"] == "member"}
        joiners = {ids[name_of(place)]: joiner for place, joiner in enumerate(self.joiners)}
        (host,) = ids.keys() - {name_of(place) for place in range(len(self.joiners))}
        return {ids[host]: self.host} | joiners


def name_of(joiner: int) -> str:
    """What the joiner with this number is called in the session."""
    return f"joiner {joiner}"


def start_session(homes: Homes, model: Path | str, *options: object, members: int = 2) -> Session:
    """Start a host and joiners. What happens from then on is for the test to wait for."""
    places = [homes.new(name) for name in ("host", *("joiner",) * (members - 1))]
    host = start_host(places[0], model, *options, members=members)
    link_of(host)
    joiners = [start_joiner(home, host, "--name", name_of(place)) for place, home in enumerate(places[1:])]
    return Session(processes=(host, *joiners), homes=places)


def form_ring(homes: Homes, model: Path | str, *options: object, members: int = 2) -> Session:
    """A session that serves, as every one of its processes says."""
    session = start_session(homes, model, *options, members=members)
    for process in session.processes:
        process.event("ready")
    return session
