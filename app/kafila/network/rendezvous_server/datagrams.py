"""The rendezvous's UDP sockets: relay frames forwarded, STUN requests answered, all else ignored.

Connections that carry relay frames, for members whose UDP is blocked, count as sockets too.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import cast

from kafila.network.rendezvous_server.sources import source_of, unmapped
from kafila.network.stun import Grid, answer_binding
from kafila.protocol.links import Address
from kafila.protocol.relay_frames import SEATED
from kafila.protocol.rendezvous_limits import Buckets, Limits
from kafila.protocol.rendezvous_relay import RelayMachine, Route

log = logging.getLogger(__name__)

_MAX_DATAGRAM_BYTES = 2048
_BATCH = 64
"""Datagrams read before the event loop's other work gets its turn."""


@lru_cache(maxsize=4096)
def _route(number: int, host: str, port: int) -> Route:
    return Route(number, Address(unmapped(host), port), source_of(host))


class Taken(Enum):
    """What a frame that came over a connection was."""

    SEAT = auto()
    """It took a seat there, or kept it."""
    FRAME = auto()
    """It was for another seat."""
    JUNK = auto()
    """No seat has sent it."""


class Datagrams:
    """Reads the sockets in batches; writes at once, and what the kernel does not take is lost."""

    def __init__(
        self,
        sockets: dict[Address, socket.socket],
        grids: Sequence[Grid],
        limits: Limits,
        now: Callable[[], float],
    ) -> None:
        self.relay = RelayMachine(limits)
        self.stun_answers = 0
        self.stun_refused = 0
        self.unsent = 0
        """Datagrams that the kernel would not take."""
        self._owns = list(sockets)
        self._sockets = list(sockets.values())
        self._numbers = {address: number for number, address in enumerate(self._owns)}
        self._grids = {host: grid for grid in grids for host in grid.hosts}
        self._stun_requests = Buckets(limits.stun_requests)
        self._now = now
        # Their numbers are negative: the others count the sockets.
        self._streams: dict[int, Callable[[bytes], None]] = {}
        self._next_stream = -1

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read."""
        for number, each in enumerate(self._sockets):
            loop.add_reader(each, self._read, number)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read no more; the sockets are the caller's to close."""
        for each in self._sockets:
            loop.remove_reader(each)

    def tick(self, now: float) -> None:
        """Forget what limits no longer need."""
        self._stun_requests.forget_idle(now)
        self.relay.tick(now)

    def open_stream(self, send: Callable[[bytes], None]) -> int:
        """Serve a connection like one more socket; the number that its frames come with."""
        number = self._next_stream
        self._next_stream -= 1
        self._streams[number] = send
        return number

    def close_stream(self, number: int) -> None:
        """The connection is gone; what is sent there from now on is lost."""
        del self._streams[number]

    def take_frame(self, data: bytes, number: int, peer: Address) -> Taken:
        """Deal with a frame that came over a connection."""
        junk = self.relay.junk
        forward = self.relay.receive(data, _route(number, peer.host, peer.port), self._now())
        if forward is None:
            return Taken.FRAME if self.relay.junk == junk else Taken.JUNK
        self._send(forward.data, forward.route.socket, forward.route.address)
        return Taken.SEAT if forward.data[0] == SEATED else Taken.FRAME

    def _read(self, number: int) -> None:
        reader = self._sockets[number]
        now = self._now()
        for _ in range(_BATCH):
            try:
                data, peer = cast("tuple[bytes, tuple[str, int]]", reader.recvfrom(_MAX_DATAGRAM_BYTES))
            except BlockingIOError:
                return
            except OSError as error:  # For example that an earlier datagram could not be delivered.
                log.debug("reading a datagram: %s", error)
                continue
            self._handle(data, _route(number, peer[0], peer[1]), now)

    def _handle(self, data: bytes, route: Route, now: float) -> None:
        if not data:
            return
        if data[0] <= 3:
            self._answer_stun(data, route.socket, route.address, now)
            return
        forward = self.relay.receive(data, route, now)
        if forward is not None:
            self._send(forward.data, forward.route.socket, forward.route.address)

    def _answer_stun(self, data: bytes, number: int, peer: Address, now: float) -> None:
        if not self._stun_requests.take(source_of(peer.host), 1, now):
            self.stun_refused += 1
            return
        own = self._owns[number]
        answer = answer_binding(data, peer, own, self._grids.get(own.host))
        if answer is not None:
            self.stun_answers += 1
            self._send(answer.data, self._numbers[answer.source], peer)

    def _send(self, data: bytes, number: int, peer: Address) -> None:
        if number < 0:
            if (send := self._streams.get(number)) is not None:
                send(data)
            return
        try:
            self._sockets[number].sendto(data, (peer.host, peer.port))
        except OSError as error:
            self.unsent += 1
            log.debug("sending a datagram: %s", error)
