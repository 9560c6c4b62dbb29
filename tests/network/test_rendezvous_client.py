"""Clients and a rendezvous over real sockets: opaque messages, refusals, cuts and restarts."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from helpers.cutting_proxy import cutting_proxy
from helpers.tls import CERTIFICATE, at, known
from kafila.domain.errors import UserError
from kafila.network.rendezvous_client import Exchange, RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.rendezvous import MAX_BODY_BYTES
from kafila.protocol.rendezvous_limits import Limits, Rate
from kafila.protocol.rendezvous_session import (
    ExchangeClosedError,
    HostSeat,
    HostSeatChanged,
    SeatGone,
    SignallingBack,
    SignallingEvent,
    SignallingLost,
)

pytestmark = pytest.mark.loopback

ANY_PORT = [Address("127.0.0.1", 0)]
SECRET = b"s" * 32


class Meeting:
    """A host and a joiner at a rendezvous, with an exchange between them."""

    def __init__(self, host: RendezvousClient, guest: RendezvousClient) -> None:
        self.host = host
        self.guest = guest
        self.host_events: asyncio.Queue[SignallingEvent] = asyncio.Queue()
        self.guest_events: asyncio.Queue[SignallingEvent] = asyncio.Queue()
        self.host_seat: HostSeat
        self.guest_seat: RelaySeat
        self.host_exchange: Exchange
        self.guest_exchange: Exchange


@asynccontextmanager
async def serving(
    listen: list[Address] | None = None, *, secret: bytes = SECRET, limits: Limits | None = None
) -> AsyncGenerator[RendezvousServer]:
    server = await RendezvousServer.open(listen or ANY_PORT, CERTIFICATE, secret=secret, limits=limits)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def meeting(address: Address, tasks: asyncio.TaskGroup) -> AsyncGenerator[Meeting]:
    host_events, guest_events = asyncio.Queue[SignallingEvent](), asyncio.Queue[SignallingEvent]()
    host = await RendezvousClient.connect(known(address), tasks=tasks, on_event=host_events.put_nowait)
    guest = await RendezvousClient.connect(known(address), tasks=tasks, on_event=guest_events.put_nowait)
    both = Meeting(host, guest)
    both.host_events, both.guest_events = host_events, guest_events
    both.host_seat = await host.open_session()
    both.guest_exchange, both.guest_seat = await guest.call(both.host_seat.nameplate)
    both.host_exchange = await anext(host.incoming())
    try:
        yield both
    finally:
        await guest.close()
        await host.close()


async def test_opaque_messages_pass_both_ways() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        largest = bytes(range(256)) * (MAX_BODY_BYTES // 256)
        await both.guest_exchange.say(largest)
        await both.guest_exchange.say(b"")
        assert await both.host_exchange.hear() == largest
        assert await both.host_exchange.hear() == b""
        await both.host_exchange.say(b"answer")
        assert await both.guest_exchange.hear() == b"answer"
        relays = {both.host_seat.seat.relay, both.guest_seat.relay}
        assert relays == {server.addresses[0]}


async def test_more_than_the_window_arrives_in_order() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        for number in range(200):
            await both.guest_exchange.say(number.to_bytes(2, "big") * 5000)
        heard = [await both.host_exchange.hear() for _ in range(200)]
        assert [int.from_bytes(body[:2], "big") for body in heard] == list(range(200))


async def test_a_wrong_nameplate_is_answered_in_words() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks:
        guest = await RendezvousClient.connect(at(server), tasks=tasks)
        with pytest.raises(UserError) as raised:
            await guest.call(47)
        assert raised.value.problem.sentence() == (
            "No session answers to 47. Check the number with the person hosting."
        )
        await guest.close()


async def test_a_new_nameplate_replaces_the_old_and_a_closed_one_takes_no_calls() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        old, new = both.host_seat.nameplate, await both.host.new_nameplate()
        with pytest.raises(UserError):
            await both.guest.call(old)
        exchange, seat = await both.guest.call(new)
        assert seat == both.guest_seat
        exchange.hang_up()
        both.host.close_nameplate()
        # On the host's line this goes after the closing, so the closing has been seen to.
        await both.host_exchange.say(b"closed")
        await both.guest_exchange.hear()
        with pytest.raises(UserError):
            await both.guest.call(new)


async def test_hanging_up_ends_hearing_and_saying_after_what_was_said() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        await both.host_exchange.say(b"last words")
        both.host_exchange.hang_up()
        assert await both.guest_exchange.hear() == b"last words"
        for _ in range(2):
            with pytest.raises(ExchangeClosedError):
                await both.guest_exchange.hear()
        with pytest.raises(ExchangeClosedError):
            await both.guest_exchange.say(b"too late")


async def test_a_caller_that_is_turned_away_at_once_hears_why() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:

        async def turn_away() -> None:
            async for exchange in both.host.incoming():
                await exchange.say(b"not you")
                exchange.hang_up()

        turning = tasks.create_task(turn_away())
        for _ in range(5):
            exchange, _ = await both.guest.call(both.host_seat.nameplate)
            await asyncio.sleep(0.01)
            assert await exchange.hear() == b"not you"
            with pytest.raises(ExchangeClosedError):
                await exchange.hear()
        turning.cancel()


async def test_a_host_that_closes_ends_the_exchange_and_its_own_calls() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        await both.host.close()
        with pytest.raises(ExchangeClosedError):
            await both.guest_exchange.hear()
        assert [exchange async for exchange in both.host.incoming()] == []
        with pytest.raises(UserError):
            await both.guest.call(both.host_seat.nameplate)


async def test_an_exchange_that_nobody_hears_is_hung_up() -> None:
    async with (
        serving(limits=Limits(messages=Rate(5000, 1))) as server,
        asyncio.TaskGroup() as tasks,
        meeting(server.addresses[0], tasks) as both,
    ):

        async def talk() -> None:
            for _ in range(2000):
                await both.guest_exchange.say(b"x")
                await asyncio.sleep(0)

        with pytest.raises(ExchangeClosedError):
            await talk()


async def test_a_cut_connection_comes_back_with_everything_said_meanwhile() -> None:
    async with (
        serving() as server,
        cutting_proxy(server.addresses[0]) as proxy,
        asyncio.TaskGroup() as tasks,
        meeting(proxy.address, tasks) as both,
    ):
        proxy.is_open = False
        proxy.cut()
        assert await both.host_events.get() == SignallingLost()
        assert await both.guest_events.get() == SignallingLost()
        await both.guest_exchange.say(b"said while away")
        await both.host_exchange.say(b"this too")
        proxy.is_open = True
        assert await both.host_events.get() == SignallingBack()
        assert await both.guest_events.get() == SignallingBack()
        assert await both.host_exchange.hear() == b"said while away"
        assert await both.guest_exchange.hear() == b"this too"
        assert server.health().signalling.sessions == 1
        exchange, seat = await both.guest.call(both.host_seat.nameplate)
        assert seat == both.guest_seat
        exchange.hang_up()


async def test_a_restarted_rendezvous_with_its_secret_gives_seats_back() -> None:
    async with asyncio.TaskGroup() as tasks:
        async with serving() as server:
            context = meeting(server.addresses[0], tasks)
            both = await context.__aenter__()
        assert await both.host_events.get() == SignallingLost()
        async with serving([server.addresses[0]]):
            assert await both.host_events.get() == SignallingBack()
            await until(both.guest_events, SignallingBack())
            with pytest.raises(ExchangeClosedError):
                await both.guest_exchange.hear()
            _, seat = await both.guest.call(both.host_seat.nameplate)
            assert seat == both.guest_seat
            await context.__aexit__(None, None, None)


async def test_a_restarted_rendezvous_without_its_secret_opens_the_session_anew() -> None:
    async with asyncio.TaskGroup() as tasks:
        async with serving() as server:
            context = meeting(server.addresses[0], tasks)
            both = await context.__aenter__()
        async with serving([server.addresses[0]], secret=b"o" * 32):
            changed = await until(both.host_events, None)
            assert isinstance(changed, HostSeatChanged)
            assert changed.seat.nameplate == both.host_seat.nameplate
            assert changed.seat.seat != both.host_seat.seat
            await until(both.guest_events, SeatGone())
            await context.__aexit__(None, None, None)


async def until(events: asyncio.Queue[SignallingEvent], wanted: SignallingEvent | None) -> SignallingEvent:
    """Take events up to the wanted one, or to a changed seat."""
    while (event := await events.get()) != wanted and not isinstance(event, HostSeatChanged):
        pass
    return event


async def test_an_address_where_nobody_listens() -> None:
    async with serving() as server:
        address = server.addresses[0]
    with pytest.raises(UserError, match="Nobody can be reached"):
        await connect_alone(address)


async def test_a_server_of_another_kind() -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=CERTIFICATE.context)
    await site.start()
    with pytest.raises(UserError, match="Nobody can be reached"):
        await connect_alone(Address(*runner.addresses[0][:2]))
    await runner.cleanup()


async def test_a_rendezvous_that_is_full() -> None:
    async with serving(limits=Limits(connections=0)) as server:
        with pytest.raises(UserError, match="no room"):
            await connect_alone(server.addresses[0])


async def connect_alone(address: Address) -> None:
    """Connect where it will not work; the refusal must leave the task group unharmed."""
    refusals = list[UserError]()
    async with asyncio.TaskGroup() as tasks:
        try:
            await RendezvousClient.connect(known(address), tasks=tasks)
        except UserError as error:
            refusals.append(error)
    raise refusals[0]


async def test_too_large_a_body_is_our_own_mistake() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, meeting(server.addresses[0], tasks) as both:
        with pytest.raises(ValueError, match="bytes"):
            await both.guest_exchange.say(b"x" * (MAX_BODY_BYTES + 1))


async def test_leaving_the_task_group_leaves_nothing_open() -> None:
    async def fail(address: Address) -> None:
        async with asyncio.TaskGroup() as tasks:
            client = await RendezvousClient.connect(known(address), tasks=tasks)
            await client.open_session()
            raise RuntimeError

    async with serving() as server:
        with pytest.raises(ExceptionGroup):
            await fail(server.addresses[0])
        async with asyncio.timeout(20):
            while server.health().signalling.connections:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
