"""A wiretap: carries TCP and UDP from one port to the same port of another address, and listens."""

import contextlib
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

LARGEST = 65_536


class Tap:
    """Everything that passed, by connection or datagram, as the carrier could read it."""

    def __init__(self, host: str, target: tuple[str, int]) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.address = (host, target[1])
        self._target = target
        self._tcp = socket.create_server(self.address, family=family)
        self._udp = socket.socket(family, socket.SOCK_DGRAM)
        self._udp.bind(self.address)
        self._streams: list[_Stream] = []
        self._datagrams: list[bytes] = []
        self._open: list[socket.socket] = [self._tcp, self._udp]
        for work in (self._accept, self._take_datagrams):
            threading.Thread(target=work, daemon=True).start()

    def datagrams(self) -> list[bytes]:
        """What passed as UDP, in both directions."""
        return list(self._datagrams)

    def messages(self) -> list[bytes]:
        """What passed as messages of WebSockets, in both directions, without their masks."""
        return [message for stream in self._streams for message in stream.messages()]

    def close(self) -> None:
        """Carry nothing any more."""
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._tcp.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:  # nobody is there any more
                    near.close()
                    continue
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    stream = _Stream()
                    self._streams.append(stream)
                    threading.Thread(target=_carry, args=(source, sink, stream), daemon=True).start()

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


def _carry(source: socket.socket, sink: socket.socket, stream: _Stream) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(LARGEST):
            stream.data += data
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def tapped(host: str, target: tuple[str, int]) -> Generator[Tap]:
    """A tap on the way to an address."""
    tap = Tap(host, target)
    try:
        yield tap
    finally:
        tap.close()
