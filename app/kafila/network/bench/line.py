"""A made-up line between two UDP sockets of this computer: delay, loss, a rate with a queue before it."""

import asyncio
import heapq
import random
import socket
from itertools import count

import msgspec

from kafila.protocol.links import Address

LOOPBACK = "127.0.0.1"
_LARGEST_DATAGRAM = 2048
_BUFFER_BYTES = 4 << 20
_IP_AND_UDP_BYTES = 28


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """How the two ends are connected; loss and rate hold for each direction by itself."""

    rtt_ms: float = 0.0
    loss: float = 0.0
    mbit: float = 50.0
    queue_ms: float = 100.0
    seed: int = 1


class Way:
    """One direction of a line."""

    def __init__(self, line: Line, seed: int) -> None:
        self._line = line
        self._random = random.Random(seed)  # noqa: S311  # the weather is no secret
        self._free_at = 0.0
        self._under_way: list[tuple[float, int, bytes]] = []
        self._count = count().__next__

    def send(self, datagram: bytes, now: float) -> None:
        """A datagram enters, or finds the queue full, or is lost on the way."""
        begins_at = max(self._free_at, now)
        if begins_at - now > self._line.queue_ms / 1000:
            return
        self._free_at = begins_at + (len(datagram) + _IP_AND_UDP_BYTES) * 8 / (self._line.mbit * 1e6)
        if self._random.random() >= self._line.loss:
            heapq.heappush(self._under_way, (self._free_at + self._line.rtt_ms / 2000, self._count(), datagram))

    def arrived(self, now: float) -> list[bytes]:
        """The datagrams that come out by now, in order."""
        out: list[bytes] = []
        while self._under_way and self._under_way[0][0] <= now:
            out.append(heapq.heappop(self._under_way)[2])
        return out

    def next_at(self) -> float | None:
        """When the next one comes out."""
        return self._under_way[0][0] if self._under_way else None


class LineBetween:
    """A line to a socket. Whoever writes to `entrance` talks to it, and is seen at the line's other end."""

    def __init__(self, line: Line, far: Address) -> None:
        self._loop = asyncio.get_running_loop()
        self._far = (far.host, far.port)
        self._near: tuple[str, int] | None = None
        self._near_side, self._far_side = _udp_socket(), _udp_socket()
        self._out, self._back = Way(line, line.seed), Way(line, line.seed + 1)
        self._timer: asyncio.TimerHandle | None = None
        self.entrance = Address(*self._near_side.getsockname())
        self._loop.add_reader(self._near_side, self._read)
        self._loop.add_reader(self._far_side, self._read)

    def _read(self) -> None:
        now = self._loop.time()
        while (found := _receive(self._near_side)) is not None:
            datagram, self._near = found
            self._out.send(datagram, now)
        while (found := _receive(self._far_side)) is not None:
            self._back.send(found[0], now)
        self._deliver()

    def _deliver(self) -> None:
        now = self._loop.time()
        for datagram in self._out.arrived(now):
            _send(self._far_side, datagram, self._far)
        for datagram in self._back.arrived(now):
            if self._near is not None:
                _send(self._near_side, datagram, self._near)
        if self._timer is not None:
            self._timer.cancel()
        due = [at for way in (self._out, self._back) if (at := way.next_at()) is not None]
        self._timer = self._loop.call_at(min(due), self._deliver) if due else None

    def close(self) -> None:
        """Carry nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        for side in (self._near_side, self._far_side):
            self._loop.remove_reader(side)
            side.close()


def _udp_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((LOOPBACK, 0))
    made.settimeout(0)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    return made


def _receive(side: socket.socket) -> tuple[bytes, tuple[str, int]] | None:
    try:
        return side.recvfrom(_LARGEST_DATAGRAM)
    except OSError:
        return None


def _send(side: socket.socket, datagram: bytes, to: tuple[str, int]) -> None:
    try:
        side.sendto(datagram, to)
    except OSError:
        return
