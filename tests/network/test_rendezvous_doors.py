"""Where connections to the rendezvous come in: how many, and who has to make room."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from helpers.abuse import WITHIN_S, Abuser, Line
from helpers.tls import CERTIFICATE
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import Hello, Welcome
from kafila.protocol.rendezvous_limits import Limits

pytestmark = pytest.mark.loopback


@asynccontextmanager
async def serving(limits: Limits) -> AsyncGenerator[tuple[RendezvousServer, Abuser]]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE, limits=limits)
    try:
        yield server, Abuser(server.addresses[0], "127.0.0.1")
    finally:
        await server.close()


async def welcomed(visitor: Abuser) -> Line:
    line = await visitor.upgrade()
    await line.say(Hello(version=1))
    assert isinstance(await line.hear(), Welcome)
    return line


async def test_those_make_room_that_have_asked_nothing_for_longest() -> None:
    async with serving(Limits(unsettled_connections=5)) as (server, visitor):
        welcome = await welcomed(visitor)
        silent = [*[await visitor.knock() for _ in range(7)], await visitor.dial()]
        for line in silent[:3]:
            assert await line.ended() == b""
        assert server.health().connections_dropped == {"too many unsettled": 3}
        await silent[7].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in await silent[7].ended()
        for line in (welcome, *silent):
            line.abort()


async def test_all_together_are_bounded_and_who_leaves_makes_room() -> None:
    async with serving(Limits(tcp_connections=3)) as (server, visitor):
        here = [await welcomed(visitor) for _ in range(3)]
        assert await (await visitor.knock()).ended() == b""
        assert server.health().connections_dropped == {"too many in all": 1}
        here.pop().abort()
        async with asyncio.timeout(WITHIN_S):
            while server.health().signalling.connections == 3:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
        here.append(await welcomed(visitor))
        for line in here:
            line.abort()


async def test_a_connection_takes_one_question() -> None:
    async with serving(Limits()) as (_, visitor):
        answers = await visitor.ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answers.count(b"HTTP/1.1") == 1
        assert b"\r\nConnection: close\r\n" in answers


async def test_who_speaks_no_tls_reads_why_not() -> None:
    async with serving(Limits()) as (server, visitor):
        answer = await visitor.ask_plainly(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"use https" in answer
        assert await visitor.ask_plainly(b"\x16\x03\x01" + bytes(200)) in (b"", answer)
        assert server.health().connections_dropped == {"no TLS": 1, "no handshake": 1}


async def test_closing_ends_those_who_have_asked_nothing() -> None:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    visitor = Abuser(server.addresses[0], "127.0.0.1")
    silent, welcome = await visitor.knock(), await welcomed(visitor)
    async with asyncio.timeout(WITHIN_S):
        await server.close()
    assert await silent.ended() == b""
    await welcome.ended()
