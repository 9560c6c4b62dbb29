"""Asking a router by PCP, or by NAT-PMP where it knows only that."""

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from typing import TypeVar

from kafila.domain.errors import PeerError
from kafila.domain.snapshot import NoPort
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
from kafila.protocol.outside import is_public

_TRIES_AT_S = (0.0, 0.25, 0.6)
_ANSWER_WITHIN_S = 1.0
_MAX_DATAGRAM = 1200

log = logging.getLogger(__name__)

T = TypeVar("T")


class PcpRouter:
    """Questions to one router, and the nonces that its mappings were made with."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        # Connected: whatever comes from elsewhere is not even read.
        self._socket.connect((host, ROUTER_PORT))
        self._own = str(self._socket.getsockname()[0])
        self._nonces = {protocol: secrets.token_bytes(NONCE_BYTES) for protocol in (UDP, TCP)}
        self._is_older = False

    @property
    def how(self) -> str:
        """The protocol that this router speaks."""
        return "nat-pmp" if self._is_older else "pcp"

    async def open(self, port: int, lease_s: int) -> Granted | NoPort:
        """Open the port for UDP and TCP, with the same number outside; else neither is open."""
        granted: list[Granted] = []
        for protocol in (UDP, TCP):
            answer = await self._wish(Wish(protocol=protocol, port=port, lifetime_s=lease_s))
            if answer is None:
                break
            granted.append(answer)
        refusal = NoPort.REFUSED
        if len(granted) == 2 and granted[0].outside == granted[1].outside:
            if is_public(granted[0].outside.host):
                return granted[0]
            refusal = NoPort.BEHIND_ANOTHER
        if granted:
            await self.take_back(port)
        return refusal

    async def take_back(self, port: int) -> None:
        """Have it closed again."""
        for protocol in (UDP, TCP):
            await self._wish(Wish(protocol=protocol, port=port, lifetime_s=0))

    def close(self) -> None:
        """Ask nothing more."""
        self._socket.close()

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
