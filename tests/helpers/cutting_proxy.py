"""A TCP proxy on loopback whose connections a test can cut, as a network does."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from kafila.protocol.links import Address


class CuttingProxy:
    """Passes bytes on to one address, unless it is closed to new connections."""

    def __init__(self, target: Address) -> None:
        self.target = target
        self.address = target
        self.is_open = True
        self.carried = bytearray()
        """All that passed, both ways."""
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Break every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(self.target.host, self.target.port)
            self._writers |= {writer, far_writer}
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(reader, far_writer))
                tasks.create_task(self._pass(far_reader, writer))
            self._writers -= {writer, far_writer}
        writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                self.carried += data
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def cutting_proxy(target: Address) -> AsyncGenerator[CuttingProxy]:
    proxy = CuttingProxy(target)
    server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
    proxy.address = Address(*server.sockets[0].getsockname()[:2])
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
