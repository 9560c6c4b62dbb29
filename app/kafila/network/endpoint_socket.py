"""The one UDP socket of a member: opened with words for people, read in batches."""

import asyncio
import contextlib
import errno
import socket
import sys
from collections.abc import Callable
from functools import lru_cache

from kafila.domain.errors import UserError
from kafila.protocol.links import Address

BATCH = 64
"""Datagrams read before their effects are sent: answering one by one costs twice the CPU."""
BUFFER_BYTES = 4 << 20
"""Asked of the operating system, which may give less: a burst should wait rather than be lost."""
LARGEST_DATAGRAM = 2048

# Do not fragment. On Linux also: whatever the kernel believes of the path.
_IN_ONE_PIECE = {"linux": (10, 3), "darwin": (28, 1)}


class UdpSocket:
    """A bound socket. IPv6 and IPv4 share it where it listens everywhere and the system can."""

    def __init__(self, bound: socket.socket) -> None:
        bound.setblocking(False)  # noqa: FBT003
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            bound.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        keep_whole(bound)
        self._socket = bound
        self._sockaddr = _sockaddr_v6 if bound.family == socket.AF_INET6 else _sockaddr_v4
        host, port, *_ = bound.getsockname()
        self.local = address_of(host, port)
        self.takes_ipv6 = bound.family == socket.AF_INET6

    @classmethod
    def bind(cls, listen: Address | None) -> "UdpSocket":
        """Bind to an address, or to a free port everywhere. Raises UserError."""
        if listen is None:
            return cls(_bind_everywhere())
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        try:
            return cls(_bound(family, (listen.host, listen.port)))
        except OSError as error:
            raise _explain(error, listen) from error

    def start(self, on_batch: Callable[[], None]) -> None:
        """Call `on_batch` whenever there is something to `read`."""
        asyncio.get_running_loop().add_reader(self._socket.fileno(), on_batch)

    def read(self) -> list[tuple[bytes, Address]]:
        """A batch of datagrams that have arrived, each with its source."""
        batch: list[tuple[bytes, Address]] = []
        for _ in range(BATCH):
            try:
                data, source = self._socket.recvfrom(LARGEST_DATAGRAM)
            except BlockingIOError:
                break
            except OSError:
                # Some systems report an earlier datagram's fate here. QUIC finds out by itself.
                continue
            batch.append((data, address_of(source[0], source[1])))
        return batch

    def send(self, data: bytes, to: Address) -> None:
        """Send a datagram, or lose it: QUIC repeats what matters."""
        try:
            self._socket.sendto(data, self._sockaddr(to))
        except OSError:
            return

    def close(self) -> None:
        """Stop reading, and give the port back."""
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()


def keep_whole(udp: socket.socket) -> None:
    """Send IPv4 datagrams in one piece or not at all, where this system can."""
    option = _IN_ONE_PIECE.get(sys.platform)
    if option is not None:
        with contextlib.suppress(OSError):
            udp.setsockopt(socket.IPPROTO_IP, *option)


@lru_cache(maxsize=1024)
def address_of(host: str, port: int) -> Address:
    """A socket's word for an address as ours: IPv4 stays IPv4 on a socket that takes both."""
    return Address(host.removeprefix("::ffff:") if "." in host else host, port)


def _sockaddr_v4(address: Address) -> tuple[str, int]:
    return (address.host, address.port)


@lru_cache(maxsize=1024)
def _sockaddr_v6(address: Address) -> tuple[str, int]:
    host = address.host
    return (host if ":" in host else f"::ffff:{host}", address.port)


def _bind_everywhere() -> socket.socket:
    if socket.has_ipv6:
        try:
            return _bound(socket.AF_INET6, ("::", 0))
        except OSError:
            # Compiled in and switched off, as on many servers. IPv4 is left.
            pass
    everywhere = Address("0.0.0.0", 0)  # noqa: S104
    try:
        return _bound(socket.AF_INET, (everywhere.host, everywhere.port))
    except OSError as error:
        raise _explain(error, everywhere) from error


def _bound(family: socket.AddressFamily, sockaddr: tuple[str, int]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6 and sockaddr[0] == "::":
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(sockaddr)
    except OSError:
        made.close()
        raise
    return made


def _explain(error: OSError, listen: Address) -> UserError:
    match error.errno:
        case errno.EADDRINUSE:
            return UserError(
                title=f"Port {listen.port} is already in use",
                advice="Close the other program that uses it, or choose another port.",
            )
        case errno.EACCES:
            return UserError(
                title=f"This computer does not let you use port {listen.port}",
                advice="Choose a port above 1023.",
            )
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return UserError(
                title=f"This computer has no address {listen.host}",
                advice="Choose one of its own addresses, or leave the address out.",
            )
        case _ if isinstance(error, socket.gaierror):
            return UserError(
                title=f"{listen.host} is not an address of this computer",
                advice="Give an IP address with a port, such as 192.168.1.20:4700.",
            )
        case _:
            return UserError(
                title="The network cannot be used",
                advice="Check that this computer is connected, and that no setting blocks it.",
            )
