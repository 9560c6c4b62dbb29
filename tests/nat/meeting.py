"""What the tests behind routers share: a rendezvous in the middle, and what each class should be found to be."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from helpers.tls import CERTIFICATE
from kafila.domain.capability import Filtering, Mapping, Reachability
from kafila.network.measure import NetworkReport, measure_network
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from natlab.lab import MIDDLE, Lab
from natlab.namespaces import Computer
from natlab.rules import Nat

PORT = 47470
PATIENCE = 3
"""How many times as long as people are promised things may take here, where many share two cores."""

CLASSES = {
    Nat.OPEN: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ENDPOINT_INDEPENDENT),
    Nat.FIREWALLED: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_AND_PORT_DEPENDENT),
    Nat.FULL_CONE: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ENDPOINT_INDEPENDENT),
    Nat.ADDRESS_RESTRICTED: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_DEPENDENT),
    Nat.PORT_RESTRICTED: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_AND_PORT_DEPENDENT),
    Nat.PORT_MOVED: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_AND_PORT_DEPENDENT),
    Nat.SYMMETRIC: (Mapping.ENDPOINT_DEPENDENT, Filtering.ADDRESS_AND_PORT_DEPENDENT),
    Nat.UDP_BLOCKED: (Mapping.UNKNOWN, Filtering.UNKNOWN),
    Nat.LEAKY: (Mapping.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_AND_PORT_DEPENDENT),
}

AT_ONCE = 4

KAFILA = (sys.executable, "-m", "kafila")


@asynccontextmanager
async def serving(computer: Computer, hosts: Sequence[str] = MIDDLE) -> AsyncGenerator[RendezvousServer]:
    """A rendezvous with these addresses on a computer."""
    server = await computer.do(RendezvousServer.open([Address(host, PORT) for host in hosts], CERTIFICATE))
    try:
        yield server
    finally:
        await computer.do(server.close())


async def measure(lab: Lab, name: str, *hosts: str) -> NetworkReport:
    """What a computer learns of its network from these rendezvous."""
    return await lab[name].do(measure_network([Address(host, PORT) for host in hosts or MIDDLE[:1]]))


async def measure_all(lab: Lab, names: Sequence[str], *hosts: str) -> dict[str, Reachability]:
    """What the planner would know of these computers."""
    learned: dict[str, Reachability] = {}
    # All of them at once would wait for this computer, and take that for silence.
    turns = asyncio.Semaphore(AT_ONCE)

    async def learn(name: str) -> None:
        async with turns:
            learned[name] = (await measure(lab, name, *hosts)).reachability()

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(learn(name))
    return learned
