"""A socket that asks STUN servers, each question several times, and knows how long answers took."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec
from aioice import stun

from kafila.network.endpoint_socket import address_of, keep_whole
from kafila.protocol.links import Address

CHANGE_PORT, CHANGE_BOTH = 2, 6
"""What a server can be asked to answer from: another port, or another address and port."""

_PADDING = 0x0026
_HEADER_BYTES, _ATTRIBUTE_HEAD_BYTES = 20, 4
_LARGEST_DATAGRAM = 2048
_BATCH = 64


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which server, and when: seconds from now, until an answer comes."""

    server: Address
    at_s: Sequence[float]
    wait_s: float
    change: int = 0
    size: int = 0
    """The UDP payload to fill up to, if any."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A server's answer to one question."""

    source: Address
    seen: Address
    """Where the question seemed to come from."""
    other: Address | None
    """The server's other address and port, where it has them."""
    rtt_s: float


class StunSocket:
    """One UDP socket, and so one mapping in each router on the way."""

    def __init__(self, host: str) -> None:
        """Bind to a free port at an address of this computer. Raises OSError."""
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.settimeout(0)
            self._socket.bind((host, 0))
        except OSError:
            self._socket.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._read)
        self._open: dict[bytes, tuple[float, asyncio.Future[Reply]]] = {}
        self._knocked = asyncio.Event()
        self._awaited = b""
        self.local = Address(host, int(self._socket.getsockname()[1]))

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def keep_whole(self) -> None:
        """Send datagrams in one piece or not at all, where this system can."""
        keep_whole(self._socket)

    async def ask(self, question: Question) -> Reply | None:
        """The first answer; None where none came in time."""
        answered: asyncio.Future[Reply] = self._loop.create_future()
        asked: list[bytes] = []
        begin = self._loop.time()
        try:
            async with asyncio.timeout(question.wait_s):
                for moment in question.at_s:
                    await asyncio.wait((answered,), timeout=max(0.0, begin + moment - self._loop.time()))
                    if answered.done():
                        break
                    # Each time under another name, so that an answer's round trip is its own.
                    request = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
                    if question.change:
                        request.attributes["CHANGE-REQUEST"] = question.change
                    asked.append(request.transaction_id)
                    self._open[request.transaction_id] = (self._loop.time(), answered)
                    self.send(_pad(bytes(request), question.size), question.server)
                return await answered
        except TimeoutError:
            return None
        finally:
            for name in asked:
                self._open.pop(name, None)

    async def knocked(self, awaited: bytes, wait_s: float) -> bool:
        """Whether exactly these bytes come in from anywhere."""
        self._awaited = awaited
        self._knocked.clear()
        try:
            async with asyncio.timeout(wait_s):
                return await self._knocked.wait()
        except TimeoutError:
            return False

    def send(self, data: bytes, to: Address) -> None:
        """Send, or lose it."""
        with contextlib.suppress(OSError):
            self._socket.sendto(data, (to.host, to.port))

    def _read(self) -> None:
        for _ in range(_BATCH):
            try:
                data, source = self._socket.recvfrom(_LARGEST_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # An earlier datagram's fate, as some systems tell it.
                continue
            if self._awaited and data == self._awaited:
                self._knocked.set()
            else:
                self._hear(data, address_of(str(source[0]), int(source[1])))

    def _hear(self, data: bytes, source: Address) -> None:
        try:
            message = stun.parse_message(data)
        except (ValueError, struct.error):
            return
        asked_at, answered = self._open.get(message.transaction_id, (0.0, None))
        seen = _address(message, "XOR-MAPPED-ADDRESS") or _address(message, "MAPPED-ADDRESS")
        if message.message_class != stun.Class.RESPONSE or answered is None or answered.done() or seen is None:
            return
        rtt_s = self._loop.time() - asked_at
        answered.set_result(
            Reply(source=source, seen=seen, other=_address(message, "OTHER-ADDRESS"), rtt_s=rtt_s),
        )


def _address(message: stun.Message, name: str) -> Address | None:
    found: tuple[str, int] | None = message.attributes.get(name)
    return None if found is None else address_of(*found)


def _pad(request: bytes, size: int) -> bytes:
    """The request, filled up with an attribute that means nothing (RFC 5780, section 7.6)."""
    room = size - len(request) - _ATTRIBUTE_HEAD_BYTES
    if room < 0:
        return request
    room -= room % 4
    length = len(request) - _HEADER_BYTES + _ATTRIBUTE_HEAD_BYTES + room
    filling = struct.pack("!HH", _PADDING, room) + bytes(room)
    return request[:2] + struct.pack("!H", length) + request[4:] + filling
