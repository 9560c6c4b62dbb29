"""A host's or joiner's connection to a rendezvous, which comes back by itself when it breaks."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Self

import aiohttp

from kafila.network.rendezvous_advice import no_way_in, refused, silent
from kafila.network.rendezvous_tls import Way, ask
from kafila.protocol.links import RelaySeat
from kafila.protocol.rendezvous import MAX_BODY_BYTES, MAX_SIGNAL_BYTES
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_client import (
    BodyHeard,
    CallHeard,
    CallTaken,
    Disconnect,
    ExchangeEnded,
    Happening,
    RendezvousClientMachine,
    RequestDenied,
    Send,
    SessionOpened,
    TurnedAway,
    retry_delay_s,
)
from kafila.protocol.rendezvous_session import (
    ExchangeClosedError,
    HostSeat,
    SignallingBack,
    SignallingEvent,
)
from kafila.protocol.trust import Certain, Trust

log = logging.getLogger(__name__)

_DIAL_WITHIN_S = 5.0
_WELCOME_WITHIN_S = 10.0
_ANSWER_WITHIN_S = 15.0
_CLOSE_WITHIN_S = 2.0
_TICK_S = 1.0
_MAX_UNHEARD = 256
"""Bodies that wait to be heard on one exchange; a side that says more is hung up on."""

_Answer = tuple[SessionOpened | CallTaken | RequestDenied, "Exchange | None"]
"""With a call that was taken, its exchange, which may be over before the caller looks."""


class Exchange:
    """A conversation with one other member, through the rendezvous, which cannot tell what it is."""

    def __init__(self, client: "RendezvousClient", number: int, remote: str) -> None:
        """Made by the client."""
        self.remote = remote
        """The same for calls from the same address; empty at the joiner's end."""
        self.number = number
        self._client = client
        self._heard: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._is_over = False

    async def say(self, body: bytes) -> None:
        """Send at most `MAX_BODY_BYTES`. Raises ExchangeClosedError once the exchange is over."""
        if len(body) > MAX_BODY_BYTES:
            message = f"a body of {len(body)} bytes"
            raise ValueError(message)
        await self._client.wait_for_room()
        if self._is_over:
            raise ExchangeClosedError
        self._client.say(self.number, body)

    async def hear(self) -> bytes:
        """The next thing said. Raises ExchangeClosedError when nothing more will come."""
        body = await self._heard.get()
        if body is None:
            self._heard.put_nowait(None)
            raise ExchangeClosedError
        return body

    def hang_up(self) -> None:
        """End the exchange for both sides; of no effect where it is over."""
        self._client.hang_up(self.number)

    def take(self, body: bytes) -> None:
        """For the client: the other side said this."""
        if self._heard.qsize() >= _MAX_UNHEARD:
            log.info("exchange %d hung up: more was said than is heard", self.number)
            self.hang_up()
        else:
            self._heard.put_nowait(body)

    def end(self) -> None:
        """For the client: it is over."""
        self._is_over = True
        self._heard.put_nowait(None)


class RendezvousClient:
    """One line to one rendezvous. A client either hosts one session or calls others."""

    def __init__(self, at: RendezvousAt, on_event: Callable[[SignallingEvent], None], source: str | None) -> None:
        """Use `connect`."""
        self.address = at.address
        self.trust: Trust = at.trust
        """Once connected, the certificate that counts from then on."""
        self._loop = asyncio.get_running_loop()
        self._on_event = on_event
        self._source = None if source is None else (source, 0)
        self._machine = RendezvousClientMachine()
        self._welcomed: asyncio.Future[None] = self._loop.create_future()
        self._answers: dict[int, asyncio.Future[_Answer]] = {}
        self._exchanges: dict[int, Exchange] = {}
        self._calls: asyncio.Queue[Exchange | None] = asyncio.Queue()
        self._outgoing: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._attempt = 0
        self._is_closing = False
        self._running: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls,
        at: RendezvousAt,
        *,
        tasks: asyncio.TaskGroup,
        on_event: Callable[[SignallingEvent], None] = lambda _: None,
        source: str | None = None,
    ) -> Self:
        """Connect, and keep connected by a task in the group until `close`.

        `source` is the address to connect from, where it matters which of this computer's it is.
        Raises UserError where the rendezvous cannot be reached now, shows a certificate that does
        not count, or does not want us.
        """
        client = cls(at, on_event, source)
        client._running = tasks.create_task(client._run())
        try:
            async with asyncio.timeout(_WELCOME_WITHIN_S):
                await client._welcomed
        except BaseException as error:
            client._running.cancel()
            if isinstance(error, TimeoutError):
                raise silent(at.address) from error
            raise
        return client

    async def open_session(self, nameplate: int | None = None) -> HostSeat:
        """Open a session, under this nameplate where it is free. Raises UserError."""
        match await self._ask(self._machine.open(nameplate)):
            case SessionOpened(seat=seat), _:
                return seat
            case RequestDenied(reason=reason), _:
                raise refused(reason, called=None)
            case _:
                raise silent(self.address)

    async def new_nameplate(self) -> int:
        """End the present code and have another nameplate for the session. Raises UserError."""
        return (await self.open_session()).nameplate

    def close_nameplate(self) -> None:
        """End the present code: nobody can call any more. The session goes on."""
        self._machine.close_code()
        self._perform()

    async def incoming(self) -> AsyncIterator[Exchange]:
        """Those who call the session, until the client is closed."""
        while (exchange := await self._calls.get()) is not None:
            yield exchange

    async def call(self, nameplate: int) -> tuple[Exchange, RelaySeat]:
        """Reach the host of a session. Raises UserError where nobody answers to the nameplate."""
        match await self._ask(self._machine.call(nameplate)):
            case CallTaken(seat=seat), Exchange() as exchange:
                return exchange, seat
            case RequestDenied(reason=reason), _:
                raise refused(reason, called=nameplate)
            case _:
                raise silent(self.address)

    async def close(self) -> None:
        """Leave for good: a host's session ends, a joiner's seat is given up."""
        running = self._running
        if running is None or self._is_closing:
            return
        self._is_closing = True
        self._machine.bye()
        self._perform()
        self._outgoing.put_nowait(None)
        self._calls.put_nowait(None)
        await asyncio.wait((running,), timeout=_CLOSE_WITHIN_S)
        running.cancel()

    def say(self, exchange: int, body: bytes) -> None:
        """For an exchange: send this."""
        self._machine.say(exchange, body)
        self._perform()

    def hang_up(self, exchange: int) -> None:
        """For an exchange: end it."""
        self._machine.hang_up(exchange)
        self._perform()

    async def wait_for_room(self) -> None:
        """For an exchange: wait until the rendezvous has taken enough of what was said before."""
        await self._room.wait()

    async def _ask(self, request: int) -> _Answer:
        answer: asyncio.Future[_Answer] = self._loop.create_future()
        self._answers[request] = answer
        self._perform()
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await answer
        except TimeoutError as error:
            raise silent(self.address) from error
        finally:
            del self._answers[request]
            self._machine.abandon(request)

    def _perform(self) -> None:
        for output in self._machine.drain():
            match output:
                case Send(data=data):
                    self._outgoing.put_nowait(data)
                case Disconnect(reason=reason):
                    log.info("leaving the connection to the rendezvous: %s", reason)
                    self._outgoing.put_nowait(None)
                case _:
                    self._happened(output)
        if self._machine.has_room or self._is_closing:
            self._room.set()
        else:
            self._room.clear()

    def _happened(self, happening: Happening) -> None:
        match happening:
            case CallHeard(exchange=number, remote=remote):
                self._calls.put_nowait(self._add_exchange(number, remote))
            case BodyHeard(exchange=number, body=body):
                if number in self._exchanges:
                    self._exchanges[number].take(body)
            case ExchangeEnded(exchange=number):
                if number in self._exchanges:
                    self._exchanges.pop(number).end()
            case SessionOpened() | CallTaken() | RequestDenied():
                self._answered(happening)
            case _:
                self._line_changed(happening)

    def _line_changed(self, event: TurnedAway | SignallingEvent) -> None:
        match event:
            case TurnedAway(reason=reason):
                log.info("turned away by the rendezvous: %s", reason.name)
                self._attempt += 4
                if not self._welcomed.done():
                    self._welcomed.set_exception(refused(reason, called=None))
            case SignallingBack() if not self._welcomed.done():
                self._welcomed.set_result(None)
            case _ if not self._is_closing:
                self._attempt = 0
                self._on_event(event)
            case _:
                pass

    def _answered(self, answer: SessionOpened | CallTaken | RequestDenied) -> None:
        exchange = self._add_exchange(answer.exchange, "") if isinstance(answer, CallTaken) else None
        waiting = self._answers.get(answer.request)
        if waiting is not None and not waiting.done():
            waiting.set_result((answer, exchange))
        elif exchange is not None:  # The caller has just given up.
            exchange.hang_up()

    def _add_exchange(self, number: int, remote: str) -> Exchange:
        exchange = Exchange(self, number, remote)
        self._exchanges[number] = exchange
        return exchange

    async def _run(self) -> None:
        connector = aiohttp.TCPConnector(local_addr=self._source)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:
            while not self._is_closing:
                try:
                    socket, certain = await self._dial(session)
                    self.trust = certain
                    await self._converse(socket, certain)
                except (aiohttp.ClientError, OSError) as error:
                    log.debug("reaching the rendezvous: %s", type(error).__name__)
                    if not self._welcomed.done():
                        self._welcomed.set_exception(no_way_in(self.address, self.trust, error))
                        return
                if self._is_closing:
                    return
                chance = random.random()  # noqa: S311 - spreads clients, hides nothing
                await asyncio.sleep(retry_delay_s(self._attempt, chance))
                self._attempt += 1

    async def _dial(self, session: aiohttp.ClientSession) -> tuple[aiohttp.ClientWebSocketResponse, Certain]:
        url = f"https://{self.address}/signal"

        async def connect(way: Way) -> aiohttp.ClientWebSocketResponse:
            return await session.ws_connect(
                url, max_msg_size=MAX_SIGNAL_BYTES, ssl=way.context, server_hostname=way.server_name
            )

        async with asyncio.timeout(_DIAL_WITHIN_S):
            return await ask(self.address.host, self.trust, connect)

    async def _converse(self, socket: aiohttp.ClientWebSocketResponse, certain: Certain) -> None:
        self._outgoing = asyncio.Queue()
        relay_host: str = socket.get_extra_info("peername")[0]
        self._machine.connected(relay_host, certain, self._loop.time())
        self._perform()
        try:
            async with asyncio.TaskGroup() as tasks:
                chores = (tasks.create_task(self._write(socket)), tasks.create_task(self._tick()))
                async for message in socket:
                    data: bytes = message.data if message.type is aiohttp.WSMsgType.BINARY else b""
                    self._machine.receive(data, self._loop.time())
                    self._perform()
                for chore in chores:
                    chore.cancel()
        except* (aiohttp.ClientError, OSError):
            log.debug("the connection to the rendezvous broke")
        finally:
            self._machine.disconnected()
            self._perform()
            await self._close_socket(socket)

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        outgoing = self._outgoing
        while (data := await outgoing.get()) is not None:
            await socket.send_bytes(data)
        await self._close_socket(socket)

    async def _close_socket(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                await socket.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._machine.tick(self._loop.time())
            self._perform()
