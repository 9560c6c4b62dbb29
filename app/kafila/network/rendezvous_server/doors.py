"""Where TCP connections come in: so many of one address and in all, and none that dawdles.

What is behind a door sees a connection as if it had accepted it itself. A connection is settled
while it is a WebSocket; everything before that, and everything after, has to be over in seconds.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import cast

from aiohttp import web

from kafila.network.rendezvous_server.plain import speaks_tls
from kafila.network.rendezvous_server.sources import source_of
from kafila.protocol.rendezvous_limits import Limits

log = logging.getLogger(__name__)

SETTLES_WITHIN_S = 5.0
"""From accepting a connection until it is a WebSocket, a TLS handshake included, or its answer is sent."""
LEAVES_WITHIN_S = 2.0
"""What a connection that is over has not taken by then is lost."""

_ACCEPTED_AT_ONCE = 32
_PAUSE_S = 0.5
"""How long nothing is accepted after the system gave no file for it."""
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Visitor(asyncio.Protocol):
    """One connection on its way to the protocol behind the door."""

    def __init__(self, inner: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
        # Each of them happens once, in this order; a connection that is gone is past all.
        self.settled: asyncio.Future[None] = loop.create_future()
        self.leaving: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._inner = inner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)
        for each in (self.settled, self.leaving, self.gone):
            _happen(each)


def _happen(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_result(None)


@contextmanager
def settled(request: web.Request) -> Generator[None]:
    """The connection of this request is a WebSocket, and may stay for so long."""
    visitor = request.transport.get_protocol() if request.transport is not None else None
    if not isinstance(visitor, _Visitor):
        yield
        return
    _happen(visitor.settled)
    try:
        yield
    finally:
        _happen(visitor.leaving)


class Doors:
    """Accepts on any number of listening sockets, until `close`."""

    def __init__(self, limits: Limits, *, most: int, behind: Callable[[], asyncio.Protocol]) -> None:
        """`most` is how many connections the process has files for; `behind` makes a protocol for each."""
        self.turned_away: Counter[str] = Counter()
        """Connections that were closed here, by reason."""
        self._limits = limits
        self._most = min(most, limits.tcp_connections)
        self._behind = behind
        self._loop = asyncio.get_running_loop()
        self._by_source: Counter[str] = Counter()
        self._visits: set[asyncio.Task[None]] = set()
        # In the order in which they came: where there are too many, those go that have dawdled longest.
        self._unsettled: dict[asyncio.Task[None], None] = {}
        self._listening: dict[socket.socket, ssl.SSLContext | None] = {}

    def listen(self, at: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Accept on a socket that already listens."""
        self._listening[at] = tls
        self._loop.add_reader(at, self._accept, at)

    def shut(self) -> None:
        """Accept no more."""
        for each in self._listening:
            self._loop.remove_reader(each)
        self._listening.clear()

    async def close(self) -> None:
        """Accept no more, and end what is here."""
        self.shut()
        visits = list(self._visits)
        for visit in visits:
            visit.cancel()
        if visits:
            await asyncio.wait(visits)

    def _accept(self, at: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, peer = cast("tuple[socket.socket, tuple[str, int]]", at.accept())
            except BlockingIOError:
                return
            except OSError as error:  # For example that the other side has gone again.
                if error.errno in _OUT_OF_FILES:
                    self._pause(at)
                    return
                continue
            source = source_of(peer[0])
            if (refusal := self._why_not(source)) is not None:
                self.turned_away[refusal] += 1
                accepted.close()
                continue
            accepted.setblocking(False)  # noqa: FBT003
            self._by_source[source] += 1
            self._visit(accepted, source, self._listening[at])

    def _why_not(self, source: str) -> str | None:
        if len(self._visits) >= self._most:
            return "too many in all"
        if self._by_source[source] >= self._limits.tcp_connections_per_source:
            return "too many from one address"
        return None

    def _pause(self, at: socket.socket) -> None:
        log.warning("no connection is accepted for a moment: the system gives this process no more files")
        self.turned_away["no file for it"] += 1
        self._loop.remove_reader(at)
        self._loop.call_later(_PAUSE_S, self._go_on, at)

    def _go_on(self, at: socket.socket) -> None:
        if at in self._listening:
            self._loop.add_reader(at, self._accept, at)

    def _visit(self, accepted: socket.socket, source: str, tls: ssl.SSLContext | None) -> None:
        visit = self._loop.create_task(self._serve(accepted, tls))
        self._visits.add(visit)
        self._unsettled[visit] = None

        def ended(visit: asyncio.Task[None]) -> None:
            self._visits.discard(visit)
            self._unsettled.pop(visit, None)
            self._by_source[source] -= 1
            if not self._by_source[source]:
                del self._by_source[source]

        visit.add_done_callback(ended)
        if len(self._unsettled) > self._limits.unsettled_connections:
            oldest = next(iter(self._unsettled))
            del self._unsettled[oldest]
            self.turned_away["too many unsettled"] += 1
            oldest.cancel()

    async def _serve(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        visitor = _Visitor(self._behind(), self._loop)
        transport: asyncio.Transport | None = None
        try:
            async with asyncio.timeout(SETTLES_WITHIN_S):
                if tls is not None and not await speaks_tls(accepted):
                    self.turned_away["no TLS"] += 1
                    return
                transport, _ = await self._loop.connect_accepted_socket(lambda: visitor, accepted, ssl=tls)
                await visitor.settled
        except TimeoutError:
            self.turned_away["unsettled too long"] += 1
        except OSError:
            self.turned_away["no handshake"] += 1
        else:
            self._unsettled.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)
            await visitor.leaving
            await asyncio.wait((visitor.gone,), timeout=LEAVES_WITHIN_S)
        finally:
            if transport is None:
                accepted.close()
            else:
                transport.abort()
                # TLS that was closed twice takes no notice of that, and waits for the other side's goodbye.
                with suppress(OSError):
                    accepted.shutdown(socket.SHUT_RDWR)
                await asyncio.wait((visitor.gone,), timeout=LEAVES_WITHIN_S)
