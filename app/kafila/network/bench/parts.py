"""The other processes of a measurement, the line and the far end: a JSON line in, one out, until there are no more."""

import asyncio
import struct
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import msgspec

from kafila.network.bench.line import LOOPBACK, Line, LineBetween
from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity, member_id
from kafila.network.link import Link, LinkClosed
from kafila.network.quic import Transport
from kafila.protocol.links import Address, Candidates, Channel, Peer

PROGRESS = struct.Struct("!Qd")
"""What the far end says of each message on PREFILL: bytes so far, seconds of CPU so far."""


class FarOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Be the far end of a link, with a key for this once."""

    transport: Transport
    secret: bytes
    near_spki_sha256: bytes
    probe_key: bytes


class LineOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Be a line to this port."""

    line: Line
    far_port: int


class Port(msgspec.Struct, frozen=True):
    """The order is being carried out, and this is where."""

    port: int


class Part:
    """One of the other processes, as the first one has it in hand."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def ask(self, order: FarOrder | LineOrder) -> int:
        """Give an order; the port that it is carried out at."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            message = "a process without pipes"
            raise RuntimeError(message)
        stdin.write(msgspec.json.encode(order) + b"\n")
        return msgspec.json.decode(await stdout.readline(), type=Port).port


@asynccontextmanager
async def started(command: Sequence[str]) -> AsyncGenerator[Part]:
    """A process that serves one part, for a while."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    try:
        yield Part(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def serve_lines() -> None:
    """Be one line after the other."""
    async with AsyncExitStack() as closing:
        while order := await _next_order():
            await closing.aclose()
            wanted = msgspec.json.decode(order, type=LineOrder)
            line = LineBetween(wanted.line, Address(LOOPBACK, wanted.far_port))
            closing.callback(line.close)
            _answer(line.entrance.port)


async def serve_far_ends() -> None:
    """Be one far end after the other, each until its link is closed."""
    while order := await _next_order():
        await be_far_end(msgspec.json.decode(order, type=FarOrder))


async def be_far_end(order: FarOrder) -> None:
    """Echo what comes on DECODE, and report what arrives on PREFILL."""
    identity = DeviceIdentity.from_bytes(order.secret)
    near = as_peer(order.near_spki_sha256, order.probe_key)
    endpoint = await Endpoint.open(identity, Address(LOOPBACK, 0), _pass_over, transport=order.transport)
    try:
        endpoint.set_peers({near.member: near})
        _answer(endpoint.local.port)
        link = await endpoint.connected(near.member)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_echo(link))
            tasks.create_task(_report(link))
    finally:
        await endpoint.close()


async def _echo(link: Link) -> None:
    with suppress(LinkClosed):
        while True:
            await link.send(Channel.DECODE, await link.receive(Channel.DECODE))


async def _report(link: Link) -> None:
    arrived = 0
    with suppress(LinkClosed):
        while True:
            arrived += len(await link.receive(Channel.PREFILL))
            await link.send(Channel.CONTROL, PROGRESS.pack(arrived, time.process_time()))


def as_peer(spki_sha256: bytes, probe_key: bytes, *addresses: Address) -> Peer:
    """The other end, as an endpoint is told of it."""
    return Peer(
        member=member_id(spki_sha256),
        spki_sha256=spki_sha256,
        probe_key=probe_key,
        candidates=Candidates(relay_slot=None, addresses=addresses),
    )


async def _next_order() -> str:
    return await asyncio.to_thread(sys.stdin.readline)


def _answer(port: int) -> None:
    sys.stdout.write(msgspec.json.encode(Port(port)).decode() + "\n")
    sys.stdout.flush()


def _pass_over(_event: object) -> None:
    """Nobody is told of the link's events here."""
