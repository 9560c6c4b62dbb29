"""The rendezvous's sockets: for every address TCP and UDP with the same port number."""

import contextlib
import errno
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kafila.domain.errors import UserError
from kafila.network.stun import Grid
from kafila.protocol.links import Address

_ATTEMPTS = 32
_UDP_BUFFER_BYTES = 4 << 20
_BACKLOG = 1024
"""Everybody comes back at once after a restart."""
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


@dataclass(slots=True, kw_only=True)
class Sockets:
    """Bound sockets, by the addresses they have."""

    tcp: dict[Address, socket.socket] = field(default_factory=dict[Address, socket.socket])
    udp: dict[Address, socket.socket] = field(default_factory=dict[Address, socket.socket])
    grids: list[Grid] = field(default_factory=list[Grid])
    """At most one for each family."""

    def close(self) -> None:
        """Close them all."""
        for each in (*self.tcp.values(), *self.udp.values()):
            each.close()


def bind_sockets(listen: Sequence[Address]) -> Sockets:
    """Bind every address; port 0 takes one that is free for TCP and UDP alike.

    Two addresses of one family also get each other's ports (or, where these are the same, one
    more) for UDP, so that STUN can answer from elsewhere. Raises UserError where an address cannot
    be had.
    """
    sockets = Sockets()
    try:
        for wanted in listen:
            _bind_pair(sockets, wanted)
        _bind_grid(sockets)
    except OSError as error:
        sockets.close()
        raise _explain(error, listen) from error
    return sockets


def _bind_pair(sockets: Sockets, wanted: Address) -> None:
    # A second address takes the first one's port where it has the choice.
    port = wanted.port or next((address.port for address in sockets.tcp), 0)

    def bind(port: int) -> tuple[socket.socket, socket.socket]:
        tcp = _bind(Address(wanted.host, port), socket.SOCK_STREAM)
        try:
            return tcp, _bind(Address(wanted.host, tcp.getsockname()[1]), socket.SOCK_DGRAM)
        except OSError:
            tcp.close()
            raise

    tcp, udp = _retry_clash(bind, port, is_free_choice=wanted.port == 0)
    address = Address(*tcp.getsockname()[:2])
    sockets.tcp[address], sockets.udp[address] = tcp, udp


def _bind_grid(sockets: Sockets) -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        corners = [
            address
            for address, bound in sockets.udp.items()
            if bound.family == family and address.host not in _WILDCARDS
        ]
        if len(corners) == 2 and corners[0].host != corners[1].host:
            sockets.grids.append(_bind_corners(sockets, *corners))


def _bind_corners(sockets: Sockets, first: Address, second: Address) -> Grid:
    """The other two corners beside these."""
    if first.port != second.port:
        wanted = [Address(first.host, second.port), Address(second.host, first.port)]
        for address in wanted:
            sockets.udp[address] = _bind(address, socket.SOCK_DGRAM)
        return Grid(hosts=(first.host, second.host), ports=(first.port, second.port))

    def bind(port: int) -> tuple[socket.socket, socket.socket]:
        one = _bind(Address(first.host, port), socket.SOCK_DGRAM)
        try:
            return one, _bind(Address(second.host, one.getsockname()[1]), socket.SOCK_DGRAM)
        except OSError:
            one.close()
            raise

    one, two = _retry_clash(bind, first.port + 1, is_free_choice=True)
    port: int = one.getsockname()[1]
    sockets.udp[Address(first.host, port)], sockets.udp[Address(second.host, port)] = one, two
    return Grid(hosts=(first.host, second.host), ports=(first.port, port))


def _retry_clash(
    bind: Callable[[int], tuple[socket.socket, socket.socket]], port: int, *, is_free_choice: bool
) -> tuple[socket.socket, socket.socket]:
    """Bind the port, or, with a free choice, whatever port two sockets can have."""
    for _ in range(_ATTEMPTS if is_free_choice else 0):
        try:
            return bind(port if port < 1 << 16 else 0)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            port = 0
    return bind(port)


def _bind(address: Address, kind: socket.SocketKind) -> socket.socket:
    family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=kind, flags=socket.AI_PASSIVE)[0]
    bound = socket.socket(family, kind)
    try:
        bound.settimeout(0)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if kind == socket.SOCK_STREAM:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            with contextlib.suppress(OSError):  # Some systems cap it and say so; smaller ones work.
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _UDP_BUFFER_BYTES)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UDP_BUFFER_BYTES)
        bound.bind(where)
        if kind == socket.SOCK_STREAM:
            bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _explain(error: OSError, listen: Sequence[Address]) -> UserError:
    where = " and ".join(map(str, listen))
    match error.errno:
        case errno.EADDRINUSE:
            return UserError(
                title=f"The port of {where} is in use",
                advice="Another program listens there. Stop it, or choose another port with --listen HOST:PORT.",
            )
        case errno.EACCES:
            return UserError(
                title=f"This account may not listen on {where}",
                advice="Choose a port above 1023 with --listen HOST:PORT.",
            )
        case _:
            return UserError(
                title=f"This computer has no address {where}",
                advice="Choose one of its own addresses with --listen HOST:PORT; 0.0.0.0 stands for all of them.",
            )
