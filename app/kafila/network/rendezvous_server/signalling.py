"""The rendezvous's TCP side: WebSocket signalling, and two small questions over HTTP."""

import asyncio
import logging
from collections.abc import Callable
from itertools import count

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from kafila.network.rendezvous_server.sources import source_of
from kafila.protocol.rendezvous import MAX_SIGNAL_BYTES, RENDEZVOUS_VERSION, NameplateHere, Refusal
from kafila.protocol.rendezvous_server import Drop, Effect, RendezvousMachine, Transmit

log = logging.getLogger(__name__)

_MAX_QUEUED = 1024
"""Messages that wait for a connection to take them; a client that takes nothing loses it."""
_CLOSE_WITHIN_S = 1.0


class _Connection:
    """A WebSocket, and what waits to be sent on it; a code in the queue closes it."""

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self.socket = socket
        self.outgoing: asyncio.Queue[bytes | WSCloseCode] = asyncio.Queue(_MAX_QUEUED)
        self._transport = transport

    def put(self, data: bytes | WSCloseCode) -> None:
        try:
            self.outgoing.put_nowait(data)
        except asyncio.QueueFull:
            self._transport.abort()

    async def write(self) -> None:
        while isinstance(data := await self.outgoing.get(), bytes):
            await self.socket.send_bytes(data)
        await self.socket.close(code=data)


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
        self._machine = machine
        self._now = now
        self._perform = perform
        self._health = health
        self._numbers = count(1)
        self._connections: dict[int, _Connection] = {}
        self.application = web.Application()
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
                connection.put(data)
            case Drop(reason=reason):
                log.info("connection %d dropped: %s", effect.connection, reason)
                connection.put(WSCloseCode.POLICY_VIOLATION)

    def close_all(self) -> None:
        """Close every connection, after what waits on it."""
        for connection in self._connections.values():
            connection.put(WSCloseCode.GOING_AWAY)

    async def _signal(self, request: web.Request) -> web.StreamResponse:
        # Only a web page in a browser says where it comes from, and no page has business here.
        if "Origin" in request.headers or request.transport is None:
            raise web.HTTPForbidden
        socket = web.WebSocketResponse(timeout=_CLOSE_WITHIN_S, max_msg_size=MAX_SIGNAL_BYTES, compress=False)
        udp_port: int = request.transport.get_extra_info("sockname")[1]
        await socket.prepare(request)
        number = next(self._numbers)
        connection = _Connection(socket, request.transport)
        self._connections[number] = connection
        log.debug("connection %d from %s", number, request.remote)
        source = source_of(request.remote or "")
        self._perform(self._machine.connect(number, source, udp_port, self._now()))
        try:
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(connection.write())
                await self._read(number, socket)
                writer.cancel()
        except* ConnectionError:
            log.debug("connection %d broke", number)
        finally:
            del self._connections[number]
            self._perform(self._machine.disconnect(number, self._now()))
        return socket

    async def _read(self, number: int, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            # Text is no signalling message, and is treated like any other that cannot be read.
            data: bytes = message.data if message.type is WSMsgType.BINARY else b""
            self._perform(self._machine.receive(number, data, self._now()))

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


def _json(value: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
