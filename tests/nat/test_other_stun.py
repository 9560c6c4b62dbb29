"""Our STUN and our classifier against those of others: coturn's client and server, and pystun3."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import stun  # pyright: ignore[reportMissingTypeStubs]

from kafila.domain.capability import Filtering, Mapping
from kafila.network.measure import measure_network
from kafila.protocol.links import Address
from nat.meeting import AT_ONCE, CLASSES, PORT, serving
from natlab.lab import MIDDLE, Lab, SiteSpec, open_lab
from natlab.rules import Nat

T = TypeVar("T")

ANYWHERE = "0.0.0.0"  # noqa: S104 - inside a network of its own
SITES = [SiteSpec(name=nat.name, nat=nat) for nat in CLASSES]

COTURN_MAPPING = {
    "Endpoint Independent Mapping": Mapping.ENDPOINT_INDEPENDENT,
    "Address and Port Dependent Mapping": Mapping.ENDPOINT_DEPENDENT,
}
COTURN_FILTERING = {
    "Endpoint Independent Filtering": Filtering.ENDPOINT_INDEPENDENT,
    "Address Dependent Filtering": Filtering.ADDRESS_DEPENDENT,
    "Address and Port Dependent Filtering": Filtering.ADDRESS_AND_PORT_DEPENDENT,
}

# What RFC 3489's tests make of each class, as pystun3 does them. It holds two of them for something
# else: a public computer whose address it is not told, and a router that an answer of its own confuses.
AS_PYSTUN_SAYS = {
    Nat.OPEN: "Full Cone",
    Nat.FIREWALLED: "Restric Port NAT",
    Nat.FULL_CONE: "Full Cone",
    Nat.ADDRESS_RESTRICTED: "Restric NAT",
    Nat.PORT_RESTRICTED: "Restric Port NAT",
    Nat.PORT_MOVED: "Restric Port NAT",
    Nat.SYMMETRIC: "Symmetric NAT",
    Nat.UDP_BLOCKED: "Blocked",
    Nat.LEAKY: "Symmetric NAT",
}


async def test_coturns_client_finds_the_classes_from_our_answers() -> None:
    said: dict[Nat, str] = {}
    async with open_lab(*SITES) as lab, serving(lab.middle), asyncio.TaskGroup() as tasks:
        for nat in CLASSES:
            tasks.create_task(_ask_coturn(lab, nat, said))
    for nat, (mapping, filtering) in CLASSES.items():
        assert _find(COTURN_MAPPING, said[nat], Mapping.UNKNOWN) is mapping, f"{nat}: {said[nat]}"
        assert _find(COTURN_FILTERING, said[nat], Filtering.UNKNOWN) is filtering, f"{nat}: {said[nat]}"


async def _ask_coturn(lab: Lab, nat: Nat, said: dict[Nat, str]) -> None:
    command = ["turnutils_natdiscovery", "-m", "-f", "-p", str(PORT), MIDDLE[0]]
    program = lab[nat.name].start(["timeout", "20", *command])
    said[nat] = "".join(await asyncio.to_thread(program.communicate))


def _find(sentences: dict[str, T], said: str, otherwise: T) -> T:
    return next((meaning for sentence, meaning in sentences.items() if sentence in said), otherwise)


@contextmanager
def coturn(lab: Lab, tmp_path: Path) -> Generator[None]:
    """coturn in the middle."""
    options = [f"--listening-ip={host}" for host in MIDDLE]
    server = lab.middle.start(
        [
            *("turnserver", "-c", "/dev/null", "--stun-only", "--no-tls", "--no-dtls", "--no-cli", "--no-auth"),
            *(f"--listening-port={PORT}", f"--pidfile={tmp_path / 'pid'}", "--log-file=stdout", *options),
        ]
    )
    try:
        yield
    finally:
        server.terminate()


async def test_our_classifier_is_right_against_coturns_server(tmp_path: Path) -> None:
    found: dict[Nat, object] = {}

    turns = asyncio.Semaphore(AT_ONCE)

    async def learn(lab: Lab, nat: Nat) -> None:
        async with turns:
            report = await lab[nat.name].do(measure_network([Address(MIDDLE[0], PORT)]))
        found[nat] = (report.mapping, report.filtering)

    async with open_lab(*SITES) as lab:
        with coturn(lab, tmp_path):
            await _until_answered(lab)
            async with asyncio.TaskGroup() as tasks:
                for nat in CLASSES:
                    tasks.create_task(learn(lab, nat))
    assert found == CLASSES


async def _until_answered(lab: Lab) -> None:
    async with asyncio.timeout(30):
        while not (await lab["OPEN"].do(measure_network([Address(MIDDLE[0], PORT)]))).udp:
            pass


@pytest.mark.slow
async def test_pystun_gives_the_answers_that_its_age_allows() -> None:
    said: dict[Nat, str] = {}

    def ask() -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(2)
            asking.bind((ANYWHERE, 54320))
            answer = stun.get_nat_type(asking, ANYWHERE, 54320, MIDDLE[0], PORT)  # pyright: ignore[reportUnknownMemberType]
        return answer[0]

    async def learn(lab: Lab, nat: Nat) -> None:
        said[nat] = await asyncio.to_thread(lab[nat.name].call, ask)

    async with open_lab(*SITES) as lab, serving(lab.middle), asyncio.TaskGroup() as tasks:
        for nat in CLASSES:
            tasks.create_task(learn(lab, nat))
    assert said == AS_PYSTUN_SAYS
