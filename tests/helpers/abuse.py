"""Speaking to a rendezvous as nobody should: raw connections, frames made by hand, bytes that come slowly."""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress

from kafila.network.rendezvous_tls import pinned
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import FromClient, FromServer, decode_from_server, encode_signal

WITHIN_S = 30.0
"""How long anything may take on a busy machine before it counts as hung."""

UPGRADE = (
    b"GET %b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
TEXT, BINARY, CONTINUED, PING = 1, 2, 0, 9
_FINAL, _MASKED = 0x80, 0x80


def ws_frame(payload: bytes, kind: int = BINARY, *, is_last: bool = True, length: int | None = None) -> bytes:
    """A client's WebSocket frame; `length`, what it says it has."""
    said = len(payload) if length is None else length
    first = bytes([kind | (_FINAL if is_last else 0)])
    if said < 126:
        size = bytes([_MASKED | said])
    elif said < 1 << 16:
        size = bytes([_MASKED | 126]) + struct.pack("!H", said)
    else:
        size = bytes([_MASKED | 127]) + struct.pack("!Q", said)
    # A mask of zeros changes nothing.
    return first + size + bytes(4) + payload


class Line:
    """One connection, with nothing between it and the test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def write(self, data: bytes) -> None:
        """Send this, or what of it is taken before the end."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def say(self, *messages: FromClient) -> None:
        """Send signalling messages."""
        await self.write(b"".join(ws_frame(encode_signal(message)) for message in messages))

    async def hear(self) -> FromServer:
        """The next signalling message."""
        return decode_from_server(await self.hear_bytes())

    async def hear_bytes(self) -> bytes:
        """The next WebSocket message of the server."""
        async with asyncio.timeout(WITHIN_S):
            size = (await self.reader.readexactly(2))[1]
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            elif size == 127:
                size = int.from_bytes(await self.reader.readexactly(8), "big")
            return await self.reader.readexactly(size)

    async def dribble(self, data: bytes, *, every_s: float = 0.1) -> None:
        """Send a byte at a time until the other side ends it; nothing more once all is sent."""
        async with asyncio.TaskGroup() as tasks:
            end = tasks.create_task(self.ended())
            for byte in data:
                if end.done():
                    break
                await self.write(bytes([byte]))
                await asyncio.wait((end,), timeout=every_s)

    async def ended(self) -> bytes:
        """Wait for the other side to end it; what it said before."""
        said = b""
        try:
            async with asyncio.timeout(WITHIN_S):
                while data := await self.reader.read(1 << 16):
                    said = (said + data)[: 1 << 20]
        except ConnectionError:
            pass
        finally:
            self.abort()
        return said

    def abort(self) -> None:
        """End it."""
        self.writer.transport.abort()


class Abuser:
    """Somebody with an address."""

    def __init__(self, rendezvous: Address, source: str) -> None:
        self.rendezvous = rendezvous
        self.source = source

    async def knock(self) -> Line:
        """A new connection that does not yet speak TLS."""
        return await self._connect(None)

    async def dial(self) -> Line:
        """A new connection behind TLS."""
        return await self._connect(pinned(b"").context)

    async def _connect(self, tls: ssl.SSLContext | None) -> Line:
        reader, writer = await asyncio.open_connection(
            self.rendezvous.host, self.rendezvous.port, local_addr=(self.source, 0), ssl=tls
        )
        return Line(reader, writer)

    async def upgrade(self, path: bytes = b"/signal") -> Line:
        """A new WebSocket."""
        line = await self.dial()
        await line.write(UPGRADE % path)
        async with asyncio.timeout(WITHIN_S):
            head = await line.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head
        return line

    async def ask(self, request: bytes) -> bytes:
        """All that is answered to an HTTP request until the connection ends."""
        line = await self.dial()
        await line.write(request)
        return await line.ended()

    async def ask_plainly(self, request: bytes) -> bytes:
        """The same without TLS."""
        line = await self.knock()
        await line.write(request)
        return await line.ended()

    async def flood(self, datagrams: Sequence[bytes]) -> int:
        """Send datagrams as fast as the test's other tasks allow; how many answers came."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.bind((self.source, 0))
            sender.settimeout(0)
            for number, datagram in enumerate(datagrams):
                with suppress(BlockingIOError):
                    sender.sendto(datagram, (self.rendezvous.host, self.rendezvous.port))
                if number % 64 == 0:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0.2)
            answers = 0
            with suppress(BlockingIOError):
                while sender.recv(2048):
                    answers += 1
            return answers


def junk(count: int, firsts: bytes, longest: int = 1400) -> list[bytes]:
    """Datagrams that say nothing, each beginning as one that would."""
    noise = os.urandom(longest)
    return [bytes([firsts[n % len(firsts)]]) + noise[: n * 37 % longest] for n in range(count)]
