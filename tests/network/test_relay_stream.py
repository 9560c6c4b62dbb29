"""The relay over TCP: frames between a connection and a datagram socket, and who is let stay."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
import pytest

from helpers.tls import CERTIFICATE, TRUST, at, https
from kafila.network.relay_stream import RELAY_PATH, RelayStream
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import (
    DeliveredFrame,
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    decode_from_relay,
    encode_to_relay,
)
from kafila.protocol.rendezvous_limits import Limits

pytestmark = pytest.mark.loopback

WITHIN_S = 20.0


class OverTcp:
    """A seat, and a connection to the relay."""

    def __init__(self, seat: RelaySeat) -> None:
        self.seat = seat
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()
        self.opened, self.lost = asyncio.Event(), asyncio.Event()
        self._count = count(1)
        self.stream = RelayStream(seat, on_open=self.opened.set, on_frame=self.heard.put_nowait, on_lost=self.lost.set)

    async def sit_down(self) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self.opened.wait()
            frame = KeepAliveFrame(slot=self.seat.slot, counter=next(self._count))
            self.stream.send(encode_to_relay(frame, self.seat.key))
            answer = decode_from_relay(await self.heard.get())
        assert isinstance(answer, SeatedFrame)
        assert answer.counter == frame.counter

    def say(self, slot: int, payload: bytes) -> None:
        frame = RelayedFrame(source=self.seat.slot, counter=next(self._count), destination=slot, payload=payload)
        self.stream.send(encode_to_relay(frame, self.seat.key))

    async def hear(self) -> bytes:
        async with asyncio.timeout(WITHIN_S):
            frame = decode_from_relay(await self.heard.get())
        assert isinstance(frame, DeliveredFrame)
        return frame.payload


@asynccontextmanager
async def serving(limits: Limits | None = None) -> AsyncGenerator[RendezvousServer]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE, limits=limits)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def two_seats(server: RendezvousServer) -> AsyncGenerator[tuple[OverTcp, OverTcp]]:
    async with asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(at(server), tasks=tasks)
        guest = await RendezvousClient.connect(at(server), tasks=tasks)
        opened = await host.open_session()
        _, seat = await guest.call(opened.nameplate)
        pair = OverTcp(opened.seat), OverTcp(seat)
        try:
            yield pair
        finally:
            for each in pair:
                await each.stream.close()
            await guest.close()
            await host.close()


async def test_frames_go_both_ways() -> None:
    async with serving() as server, two_seats(server) as (host, guest):
        await host.sit_down()
        await guest.sit_down()
        payload = bytes(range(256)) * 5
        guest.say(host.seat.slot, payload)
        assert await host.hear() == payload
        host.say(guest.seat.slot, b"back")
        assert await guest.hear() == b"back"
        assert server.health().relay_connections == 2
    assert server.health().relay_connections == 0


@pytest.mark.parametrize("junk", [b"", b"\x08", bytes(5000), b"\x09" + bytes(24), "text"])
async def test_whoever_does_not_begin_with_a_seat_is_let_go(junk: bytes | str) -> None:
    async with serving() as server, https() as session:
        async with session.ws_connect(f"https://{server.addresses[0]}{RELAY_PATH}") as socket:
            await (socket.send_str(junk) if isinstance(junk, str) else socket.send_bytes(junk))
            async with asyncio.timeout(WITHIN_S):
                assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
        assert server.health().status == "serving"


async def test_a_page_in_a_browser_has_no_business_here() -> None:
    async with serving() as server, https() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            await session.ws_connect(
                f"https://{server.addresses[0]}{RELAY_PATH}", headers={"Origin": "https://example.org"}
            )


async def test_one_address_has_so_many_connections_and_no_more() -> None:
    async with serving(Limits(connections_per_source=2)) as server, two_seats(server) as (host, guest):
        await host.sit_down()
        await guest.sit_down()
        one_too_many = OverTcp(host.seat)
        async with asyncio.timeout(WITHIN_S):
            await one_too_many.lost.wait()
        assert not one_too_many.opened.is_set()
        await one_too_many.stream.close()
        guest.say(host.seat.slot, b"unhurt")
        assert await host.hear() == b"unhurt"


async def test_a_member_that_takes_nothing_loses_frames_and_disturbs_nobody() -> None:
    async with serving() as server, two_seats(server) as (host, guest), https() as session:
        await guest.sit_down()
        async with session.ws_connect(f"https://{host.seat.relay}{RELAY_PATH}", max_msg_size=2048) as deaf:
            keep = KeepAliveFrame(slot=host.seat.slot, counter=1)
            await deaf.send_bytes(encode_to_relay(keep, host.seat.key))
            await deaf.receive()
            async with asyncio.timeout(WITHIN_S):
                while not server.health().relay_frames_lost:
                    for _ in range(200):
                        guest.say(host.seat.slot, bytes(1200))
                    await asyncio.sleep(0.01)
        assert server.health().relay_connections >= 1


async def test_the_end_of_the_relay_is_told() -> None:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    async with two_seats(server) as (host, _):
        await host.sit_down()
        await server.close()
        async with asyncio.timeout(WITHIN_S):
            await host.lost.wait()
        assert not host.stream.is_open


async def test_a_relay_that_is_not_there_is_told() -> None:
    seat = RelaySeat(relay=Address("127.0.0.1", 9), slot=1, key=bytes(32), trust=TRUST)
    nowhere = OverTcp(seat)
    async with asyncio.timeout(WITHIN_S):
        await nowhere.lost.wait()
    await nowhere.stream.close()
    assert not nowhere.opened.is_set()
