"""A wiretap: carries TCP and UDP from one port to the same port of another address, and listens."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

from helpers.tls import CERTIFICATE
from kafila.network.rendezvous_tls import pinned

LARGEST = 65_536


class Tap:
    """Everything that passed, by connection or datagram, as the carrier could read it.

    It stands where a rendezvous would: TLS ends here, and begins anew to the real one.
    """

    def __init__(self, host: str, target: tuple[str, int]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.address = (host, target[1])
        self._target = target
        self._tcp = socket.create_server(self.address, family=family)
        self._udp = socket.socket(family, socket.SOCK_DGRAM)
        self._udp.bind(self.address)
        self._streams: list[_Stream] = []
        self._datagrams: list[bytes] = []
        self._open: list[socket.socket] = [self._udp]
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._serving = threading.Thread(target=self._run, daemon=True)
        self._serving.start()
        threading.Thread(target=self._take_datagrams, daemon=True).start()

    def datagrams(self) -> list[bytes]:
        """What passed as UDP, in both directions."""
        return list(self._datagrams)

    def messages(self) -> list[bytes]:
        """What passed as messages of WebSockets, in both directions, without their masks."""
        return [message for stream in self._streams for message in stream.messages()]

    def close(self) -> None:
        """Carry nothing any more."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._serving.join()
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, sock=self._tcp, ssl=CERTIFICATE.context)
        await self._over.wait()
        server.close()
        for each in self._writers:
            each.transport.abort()

    async def _accept(self, near: asyncio.StreamReader, to_near: asyncio.StreamWriter) -> None:
        self._writers.append(to_near)
        with contextlib.suppress(OSError):
            host, port = self._target
            far, to_far = await asyncio.open_connection(host, port, ssl=pinned(b"").context)
            self._writers.append(to_far)
            async with asyncio.TaskGroup() as tasks:
                for source, sink in ((near, to_far), (far, to_near)):
                    stream = _Stream()
                    self._streams.append(stream)
                    tasks.create_task(_carry(source, sink, stream))
        to_near.close()

    def _take_datagrams(self) -> None:
        ways: dict[object, socket.socket] = {}
        with contextlib.suppress(OSError):
            while True:
                data, source = self._udp.recvfrom(LARGEST)
                if not data:  # the end: nobody here sends empty datagrams
                    return
                self._datagrams.append(data)
                if source not in ways:
                    way = ways[source] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    # Connected, so that nothing comes back through it but from the target.
                    way.connect(self._target)
                    self._open.append(way)
                    threading.Thread(target=self._give_back, args=(way, source), daemon=True).start()
                ways[source].send(data)

    def _give_back(self, way: socket.socket, source: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            while data := way.recv(LARGEST):
                self._datagrams.append(data)
                self._udp.sendto(data, source)


class _Stream:
    """One direction of a connection."""

    def __init__(self) -> None:
        self.data = bytearray()

    def messages(self) -> list[bytes]:
        """The WebSocket frames behind the HTTP header."""
        _, _, rest = bytes(self.data).partition(b"\r\n\r\n")
        messages: list[bytes] = []
        while len(rest) >= 2:
            masked, size, at = rest[1] & 0x80, rest[1] & 0x7F, 2
            extended = {126: 2, 127: 8}.get(size, 0)
            if extended:
                size = int.from_bytes(rest[2 : 2 + extended], "big")
                at += extended
            mask = rest[at : at + 4] if masked else bytes(4)
            at += 4 if masked else 0
            body = rest[at : at + size]
            messages.append(bytes(byte ^ mask[place % 4] for place, byte in enumerate(body)))
            rest = rest[at + size :]
        return messages


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, stream: _Stream) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(LARGEST):
            stream.data += data
            sink.write(data)
            await sink.drain()
    sink.close()


@contextmanager
def tapped(host: str, target: tuple[str, int]) -> Generator[Tap]:
    """A tap on the way to an address."""
    tap = Tap(host, target)
    try:
        yield tap
    finally:
        tap.close()
