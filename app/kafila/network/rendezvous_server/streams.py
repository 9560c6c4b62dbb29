"""The relay over TCP, for members whose UDP is blocked: a WebSocket, each message one frame."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from aiohttp import WSMsgType, web

from kafila.network.rendezvous_server.datagrams import Taken
from kafila.network.rendezvous_server.doors import settled
from kafila.network.rendezvous_server.sources import source_of, unmapped
from kafila.protocol.links import Address
from kafila.protocol.relay_frames import MAX_PAYLOAD_BYTES, RELAYED_OVERHEAD
from kafila.protocol.rendezvous_limits import Limits

log = logging.getLogger(__name__)

_MAX_FRAME_BYTES = MAX_PAYLOAD_BYTES + RELAYED_OVERHEAD
_MAX_WAITING_FRAMES = 512
_SEATED_WITHIN_S = 5.0
_SILENCE_S = 30.0
_CLOSE_WITHIN_S = 1.0
_MAX_JUNK_FRAMES = 64
"""Frames of no seat, one after another, that a connection may bring: its session may just have ended."""


class Streams:
    """Carries relay frames between connections and whoever forwards them."""

    def __init__(
        self,
        limits: Limits,
        *,
        open_stream: Callable[[Callable[[bytes], None]], int],
        close_stream: Callable[[int], None],
        take_frame: Callable[[bytes, int, Address], Taken],
    ) -> None:
        """See `Datagrams` for the three calls."""
        self.lost_frames = 0
        """Frames that a connection did not take in time."""
        self.turned_away: Counter[str] = Counter()
        """Connections that were not wanted, by reason."""
        self._limits = limits
        self._open_stream = open_stream
        self._close_stream = close_stream
        self._take_frame = take_frame
        self._by_source: Counter[str] = Counter()
        self._transports: set[asyncio.Transport] = set()

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._transports)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection, from its beginning to its end."""
        source = source_of(request.remote or "")
        transport = request.transport
        if "Origin" in request.headers or transport is None:
            raise web.HTTPForbidden
        if (full := self._where_full(source)) is not None:
            self.turned_away[full] += 1
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(
            timeout=_CLOSE_WITHIN_S, max_msg_size=_MAX_FRAME_BYTES, compress=False, autoping=False
        )
        self._by_source[source] += 1
        self._transports.add(transport)
        try:
            host, port, *_ = transport.get_extra_info("peername")
            await socket.prepare(request)
            with settled(request):
                await self._carry(socket, Address(unmapped(host), port))
        except* (ConnectionError, TimeoutError):
            log.debug("a connection to the relay broke")
        finally:
            self._transports.discard(transport)
            self._by_source[source] -= 1
            if not self._by_source[source]:
                del self._by_source[source]
        return socket

    def close_all(self) -> None:
        """Close every connection. What a connection has not taken is lost, as datagrams are."""
        for transport in self._transports:
            transport.close()

    def _where_full(self, source: str) -> str | None:
        if len(self._transports) >= self._limits.connections:
            return "too many at the relay in all"
        if self._by_source[source] >= self._limits.connections_per_source:
            return "too many at the relay from one address"
        return None

    async def _carry(self, socket: web.WebSocketResponse, peer: Address) -> None:
        outgoing: asyncio.Queue[bytes] = asyncio.Queue(_MAX_WAITING_FRAMES)

        def send(frame: bytes) -> None:
            if outgoing.full():
                self.lost_frames += 1
            else:
                outgoing.put_nowait(frame)

        async def write() -> None:
            while True:
                await socket.send_bytes(await outgoing.get())

        number = self._open_stream(send)
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(write())
                await self._read(socket, number, peer)
                writing.cancel()
        finally:
            self._close_stream(number)

    async def _read(self, socket: web.WebSocketResponse, number: int, peer: Address) -> None:
        """Only who begins by taking a seat may go on."""
        if not await self._is_seated(socket, number, peer):
            self.turned_away["no seat taken"] += 1
            await socket.close()
            return
        junk = 0
        while junk < _MAX_JUNK_FRAMES:
            message = await socket.receive(_SILENCE_S)
            match message.type:
                case WSMsgType.BINARY:
                    is_junk = self._take_frame(message.data, number, peer) is Taken.JUNK
                    junk = junk + 1 if is_junk else 0
                case WSMsgType.PING:
                    junk += 1
                    await socket.pong(message.data)
                case WSMsgType.PONG:
                    junk += 1
                case _:
                    return
        self.turned_away["nothing but junk"] += 1

    async def _is_seated(self, socket: web.WebSocketResponse, number: int, peer: Address) -> bool:
        try:
            first = await socket.receive(_SEATED_WITHIN_S)
        except TimeoutError:
            return False
        return first.type is WSMsgType.BINARY and self._take_frame(first.data, number, peer) is Taken.SEAT
