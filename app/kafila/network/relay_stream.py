"""The relay over TCP, for where datagrams do not get through: a WebSocket, each message one frame.

A lost connection is told and not brought back: whoever holds the seat tries datagrams first again.
Frames are datagrams here too: what the connection does not take in time is lost, and QUIC repeats
what matters.
"""

import asyncio
import logging
from collections.abc import Callable

import aiohttp

from kafila.network.rendezvous_tls import Way, ask
from kafila.protocol.links import RelaySeat
from kafila.protocol.relay_frames import MAX_PAYLOAD_BYTES, RELAYED_OVERHEAD

RELAY_PATH = "/relay"
MAX_FRAME_BYTES = MAX_PAYLOAD_BYTES + RELAYED_OVERHEAD
MAX_WAITING_FRAMES = 512
"""A round trip's worth for a fast line. A longer queue would only add delay."""

_DIAL_WITHIN_S = 5.0
_CLOSE_WITHIN_S = 1.0
_SILENCE_S = 20.0
"""The seat is kept every few seconds, and each time answered."""

log = logging.getLogger(__name__)


class RelayStream:
    """One connection to a relay, from its beginning to its end."""

    def __init__(
        self,
        seat: RelaySeat,
        *,
        on_open: Callable[[], None],
        on_frame: Callable[[bytes], None],
        on_lost: Callable[[], None],
    ) -> None:
        """Begin to connect to the seat's relay.

        All three are called from the event loop; after `on_lost` nothing more comes.
        """
        self.is_open = False
        self._relay, self._trust = seat.relay, seat.trust
        self._on_open = on_open
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._outgoing: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_WAITING_FRAMES)
        # Owned by whoever holds the stream, who closes it.
        self._running = asyncio.get_running_loop().create_task(self._run())

    def send(self, frame: bytes) -> None:
        """Send a frame, or lose it."""
        if self.is_open and not self._outgoing.full():
            self._outgoing.put_nowait(frame)

    async def close(self) -> None:
        """Send what waits, and leave."""
        if self.is_open and not self._outgoing.full():
            self._outgoing.put_nowait(None)
            await asyncio.wait((self._running,), timeout=_CLOSE_WITHIN_S)
        self.abandon()
        await asyncio.wait((self._running,))

    def abandon(self) -> None:
        """Leave at once, and tell nobody."""
        self.is_open = False
        self._running.cancel()

    async def _run(self) -> None:
        try:
            await self._converse()
        except* (aiohttp.ClientError, OSError, TimeoutError) as group:
            log.info("the relay cannot be reached over TCP: %s", type(group.exceptions[0]).__name__)
        self.is_open = False
        self._on_lost()

    async def _converse(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_DIAL_WITHIN_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            await self._dial(session) as socket,
            asyncio.TaskGroup() as tasks,
        ):
            self.is_open = True
            self._on_open()
            writing = tasks.create_task(self._write(socket))
            async for message in socket:
                if message.type is aiohttp.WSMsgType.BINARY:
                    self._on_frame(message.data)
            writing.cancel()

    async def _dial(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        async def connect(way: Way) -> aiohttp.ClientWebSocketResponse:
            return await session.ws_connect(
                f"https://{self._relay}{RELAY_PATH}",
                max_msg_size=MAX_FRAME_BYTES,
                timeout=aiohttp.ClientWSTimeout(_SILENCE_S, _CLOSE_WITHIN_S),  # pyright: ignore[reportCallIssue]
                ssl=way.context,
                server_hostname=way.server_name,
            )

        async with asyncio.timeout(_DIAL_WITHIN_S):
            socket, _ = await ask(self._relay.host, self._trust, connect)
        return socket

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while (frame := await self._outgoing.get()) is not None:
            await socket.send_bytes(frame)
        await socket.close()
