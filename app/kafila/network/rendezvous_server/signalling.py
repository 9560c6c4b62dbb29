"""The rendezvous's TCP side: WebSocket signalling, and two small questions over HTTP."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.typedefs import Handler

from kafila.network.rendezvous_server.doors import settled
from kafila.network.rendezvous_server.sources import source_of, unmapped
from kafila.protocol.rendezvous import MAX_SIGNAL_BYTES, RENDEZVOUS_VERSION, NameplateHere, Refusal
from kafila.protocol.rendezvous_server import Drop, Effect, RendezvousMachine, Transmit

log = logging.getLogger(__name__)

_MAX_QUEUED_BYTES = 4 << 20
"""What waits for a connection to take it; a client that takes nothing loses the connection."""
_MAX_QUEUED_BYTES_IN_ALL = 256 << 20
_MAX_QUEUED = 1024
_CLOSE_WITHIN_S = 1.0


class _Connection:
    """A WebSocket, and what waits to be sent on it; a code in the queue closes it."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport, in_all: "_Queued") -> None:
        self.socket = socket
        self.is_closing = False
        self._in_all = in_all
        self._outgoing: asyncio.Queue[bytes | WSCloseCode] = asyncio.Queue()
        self._queued_bytes = 0
        self._transport = transport

    def send(self, data: bytes) -> bool:
        """Send this after what waits; false where too much waits, and the connection is given up."""
        if (
            self._queued_bytes + len(data) > _MAX_QUEUED_BYTES
            or self._in_all.bytes + len(data) > _MAX_QUEUED_BYTES_IN_ALL
            or self._outgoing.qsize() >= _MAX_QUEUED
        ):
            self._transport.abort()
            return False
        self._count(len(data))
        self._outgoing.put_nowait(data)
        return True

    def close(self, code: WSCloseCode) -> None:
        """Close after what waits, or without it where it is not taken soon."""
        self.is_closing = True
        self._outgoing.put_nowait(code)
        asyncio.get_running_loop().call_later(_CLOSE_WITHIN_S, self._transport.abort)

    async def write(self) -> None:
        while isinstance(data := await self._outgoing.get(), bytes):
            self._count(-len(data))
            await self.socket.send_bytes(data)
        await self.socket.close(code=data)

    def forget(self) -> None:
        """What waits will not be sent."""
        self._count(-self._queued_bytes)

    def _count(self, more_bytes: int) -> None:
        self._queued_bytes += more_bytes
        self._in_all.bytes += more_bytes


class _Queued:
    """What waits on all connections together."""

    bytes = 0


class Signalling:
    """Carries messages between WebSockets and the machine."""

    def __init__(
        self,
        machine: RendezvousMachine,
        *,
        now: Callable[[], float],
        perform: Callable[[list[Effect]], None],
        health: Callable[[], msgspec.Struct],
    ) -> None:
        self.came: Callable[[str], None] | None = None
        """Told of every address that a connection comes from."""
        self.stuck = 0
        """Connections given up because their clients took nothing."""
        self._machine = machine
        self._now = now
        self._perform = perform
        self._health = health
        self._numbers = count(1)
        self._connections: dict[int, _Connection] = {}
        self._queued = _Queued()
        self.application = web.Application(middlewares=[_ask_once])
        self.application.add_routes(
            [
                web.get("/signal", self._signal),
                web.get(r"/nameplate/{nameplate:\d{1,9}}", self._look_up),
                web.get("/healthz", self._tell_health),
            ]
        )

    def carry_out(self, effect: Transmit | Drop) -> None:
        """Send or close."""
        connection = self._connections.get(effect.connection)
        if connection is None:
            return
        match effect:
            case Transmit(data=data):
                if not (connection.is_closing or connection.send(data)):
                    self.stuck += 1
            case Drop(reason=reason):
                log.info("connection %d dropped: %s", effect.connection, reason)
                connection.close(WSCloseCode.POLICY_VIOLATION)

    def close_all(self) -> None:
        """Close every connection, after what waits on it."""
        for connection in self._connections.values():
            connection.close(WSCloseCode.GOING_AWAY)

    async def _signal(self, request: web.Request) -> web.StreamResponse:
        # Only a web page in a browser says where it comes from, and no page has business here.
        transport = request.transport
        if "Origin" in request.headers or transport is None:
            raise web.HTTPForbidden
        # Pings of the WebSocket's own count as messages, and so are not answered unseen.
        socket = web.WebSocketResponse(
            timeout=_CLOSE_WITHIN_S, max_msg_size=MAX_SIGNAL_BYTES, compress=False, autoping=False
        )
        await socket.prepare(request)
        with settled(request):
            await self._converse(request, socket, transport)
        return socket

    async def _converse(
        self, request: web.Request, socket: web.WebSocketResponse, transport: asyncio.Transport
    ) -> None:
        udp_port: int = transport.get_extra_info("sockname")[1]
        number = next(self._numbers)
        connection = _Connection(socket, transport, self._queued)
        self._connections[number] = connection
        log.debug("connection %d from %s", number, request.remote)
        source = source_of(request.remote or "")
        if self.came is not None:
            self.came(unmapped(request.remote or ""))
        self._perform(self._machine.connect(number, source, udp_port, self._now()))
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(connection.write())
                await self._read(number, connection)
                if not connection.is_closing:
                    writer.cancel()
        except* ConnectionError:
            log.debug("connection %d broke", number)
        finally:
            connection.forget()
            del self._connections[number]
            self._perform(self._machine.disconnect(number, self._now()))

    async def _read(self, number: int, connection: _Connection) -> None:
        async for message in connection.socket:
            match message.type:
                case WSMsgType.PING:
                    self._perform(self._machine.count(number, self._now()))
                    await connection.socket.pong(message.data)
                case WSMsgType.PONG:
                    self._perform(self._machine.count(number, self._now()))
                case _:
                    # Text is no signalling message, and is treated like any other that cannot be read.
                    data: bytes = message.data if message.type is WSMsgType.BINARY else b""
                    self._perform(self._machine.receive(number, data, self._now()))
            if connection.is_closing:
                return

    async def _look_up(self, request: web.Request) -> web.Response:
        nameplate = int(request.match_info["nameplate"])
        source = source_of(request.remote or "")
        match self._machine.look_up(nameplate, source, self._now()):
            case Refusal():
                raise web.HTTPTooManyRequests
            case False:
                raise web.HTTPNotFound
            case True:
                return _json(NameplateHere(kafila_rendezvous=RENDEZVOUS_VERSION))

    async def _tell_health(self, _request: web.Request) -> web.Response:
        return _json(self._health())


@web.middleware
async def _ask_once(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A connection takes one request: who wants more makes another, and is counted again."""
    try:
        response = await handler(request)
    except web.HTTPException as answer:
        answer.force_close()
        raise
    response.force_close()
    return response


def _json(value: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
