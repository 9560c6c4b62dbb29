"""A port that the router keeps open for this computer, for as long as it is needed and no longer.

Only where the person agreed. The lease is short and renewed by half of its time, and taken back at
the end; where taking it back fails, it runs out by itself.
"""

import asyncio
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from typing import Self, TypeVar

from kafila.domain.errors import PeerError
from kafila.network.measure_gateway import find_gateway
from kafila.network.port_mapping_frames import (
    NONCE_BYTES,
    ROUTER_PORT,
    TCP,
    UDP,
    Granted,
    Refused,
    Wish,
    pcp_request,
    pmp_address_request,
    pmp_request,
    read_pcp,
    read_pmp,
    read_pmp_address,
)
from kafila.protocol.links import Address

LEASE_S = 600
_SHORTEST_RENEWAL_S = 5.0
_TRIES_AT_S = (0.0, 0.25, 0.6)
_ANSWER_WITHIN_S = 1.2
_MAX_DATAGRAM = 1200
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)

log = logging.getLogger(__name__)

T = TypeVar("T")


class PortLease:
    """One port number, open for UDP and TCP. Made by `ask`, ended by `close`."""

    def __init__(self, router: "_Router", port: int, outside: Address, lifetime_s: int) -> None:
        """For `ask`."""
        self.outside = outside
        """Where the port is reached from the Internet."""
        self._router = router
        self._port = port
        self._renewing = asyncio.get_running_loop().create_task(self._renew(lifetime_s))

    @classmethod
    async def ask(cls, port: int, *, lease_s: int = LEASE_S) -> Self | None:
        """Ask the router to open a port; None where it does not, or is not on the Internet itself."""
        gateway = await find_gateway()
        if gateway is None:
            return None
        router = _Router(gateway.host)
        granted = await router.open(port, lease_s)
        if granted is None:
            router.close()
            return None
        host = ipaddress.ip_address(granted.outside.host)
        if any(host in network for network in _NOT_PUBLIC if network.version == host.version):
            log.info("the router is behind another one: an open port there leads nowhere")
            await router.take_back(port)
            router.close()
            return None
        return cls(router, port, granted.outside, granted.lifetime_s)

    async def close(self) -> None:
        """Give the port back."""
        self._renewing.cancel()
        await asyncio.wait((self._renewing,))
        await self._router.take_back(self._port)
        self._router.close()

    async def _renew(self, lifetime_s: int) -> None:
        while True:
            await asyncio.sleep(max(lifetime_s / 2, _SHORTEST_RENEWAL_S))
            granted = await self._router.open(self._port, LEASE_S)
            if granted is None:
                log.info("the router did not renew the open port")
            elif granted.outside != self.outside:
                log.info("the router opened another port than before")


class _Router:
    """Questions to one router, and the nonces that its mappings were made with."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        # Connected: whatever comes from elsewhere is not even read.
        self._socket.connect((host, ROUTER_PORT))
        self._own = str(self._socket.getsockname()[0])
        self._nonces = {protocol: secrets.token_bytes(NONCE_BYTES) for protocol in (UDP, TCP)}
        self._is_older = False

    def close(self) -> None:
        self._socket.close()

    async def open(self, port: int, lease_s: int) -> Granted | None:
        """Open the port for both; None, and neither is open, where not both are granted the same one."""
        wishes = [Wish(protocol=protocol, port=port, lifetime_s=lease_s) for protocol in (UDP, TCP)]
        granted = [await self._wish(wish) for wish in wishes]
        udp, tcp = granted
        if udp is not None and tcp is not None and udp.outside == tcp.outside:
            return udp
        if udp is not None or tcp is not None:
            await self.take_back(port)
        return None

    async def take_back(self, port: int) -> None:
        for protocol in (UDP, TCP):
            await self._wish(Wish(protocol=protocol, port=port, lifetime_s=0))

    async def _wish(self, wish: Wish) -> Granted | None:
        if not self._is_older:
            nonce = self._nonces[wish.protocol]
            answer = await self._ask(pcp_request(wish, self._own, nonce), lambda data: read_pcp(data, wish, nonce))
            if not (isinstance(answer, Refused) and answer.is_older):
                return answer if isinstance(answer, Granted) else None
            self._is_older = True
        host = await self._ask(pmp_address_request(), read_pmp_address)
        if not isinstance(host, str):
            return None
        answer = await self._ask(pmp_request(wish), lambda data: read_pmp(data, wish, host))
        return answer if isinstance(answer, Granted) else None

    async def _ask(self, question: bytes, read: Callable[[bytes], T]) -> T | None:
        """The first answer that is one; None where none comes, or nobody is there."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for number, moment in enumerate(_TRIES_AT_S):
            later = [*_TRIES_AT_S, _ANSWER_WITHIN_S][number + 1]
            try:
                async with asyncio.timeout_at(begin + later):
                    self._socket.send(question)
                    while True:
                        try:
                            return read(await loop.sock_recv(self._socket, _MAX_DATAGRAM))
                        except PeerError:
                            continue
            except TimeoutError:
                continue
            except OSError:
                log.debug("the router does not take questions after %.1f s", moment)
                return None
        return None
