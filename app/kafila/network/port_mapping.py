"""A port that the router keeps open for this computer, for as long as it is needed and no longer.

Only where the person agreed. The lease is short and renewed by half of its time, and taken back at
the end; where taking it back fails, it runs out by itself.
"""

import asyncio
import logging
from typing import Protocol, Self

from kafila.domain.snapshot import NoPort
from kafila.network.measure_gateway import find_gateway
from kafila.network.port_mapping_frames import Granted
from kafila.network.port_mapping_pcp import PcpRouter
from kafila.network.port_mapping_upnp import UpnpRouter

LEASE_S = 600
_SHORTEST_RENEWAL_S = 2.0

log = logging.getLogger(__name__)


class _Router(Protocol):
    """A router that was asked in one of the ways that there are."""

    @property
    def how(self) -> str: ...
    async def open(self, port: int, lease_s: int) -> Granted | NoPort: ...
    async def take_back(self, port: int) -> None: ...
    def close(self) -> None: ...


class PortLease:
    """One port number, open for UDP and TCP. Made by `ask`, ended by `close`."""

    def __init__(self, router: _Router, port: int, granted: Granted, lease_s: int) -> None:
        """For `ask`."""
        self.outside = granted.outside
        """Where the port is reached from the Internet."""
        self.how = router.how
        """The way in which the router was asked: pcp, nat-pmp or upnp."""
        self._router = router
        self._port = port
        self._lease_s = lease_s
        self._lost = asyncio.Event()
        self._renewing = asyncio.get_running_loop().create_task(self._renew(granted.lifetime_s))

    @classmethod
    async def ask(cls, port: int, *, lease_s: int = LEASE_S) -> Self | NoPort:
        """Ask the router to open a port, in all the ways that there are; why not, where it does not."""
        gateway = await find_gateway()
        if gateway is None:
            return NoPort.NO_ROUTER
        try:
            pcp = PcpRouter(gateway.host)
        except OSError:
            return NoPort.NO_ROUTER
        answer: Self | NoPort = NoPort.REFUSED
        try:
            async with asyncio.TaskGroup() as tasks:
                # Looking opens nothing: only one of the two is asked for a port at a time.
                looking = tasks.create_task(UpnpRouter.find(gateway.host))
                answer = await cls._have_opened(pcp, port, lease_s)
                if answer is NoPort.REFUSED and (upnp := await looking) is not None:
                    answer = await cls._have_opened(upnp, port, lease_s)
                looking.cancel()
        except BaseException:
            if isinstance(answer, PortLease):
                await answer.close()
            raise
        return answer

    @classmethod
    async def _have_opened(cls, router: _Router, port: int, lease_s: int) -> Self | NoPort:
        try:
            answer = await router.open(port, lease_s)
        except BaseException:
            # Called off in between: it may be open already.
            await router.take_back(port)
            router.close()
            raise
        if isinstance(answer, Granted):
            return cls(router, port, answer, lease_s)
        router.close()
        return answer

    async def lost(self) -> None:
        """Wait until the router keeps the port open no longer, which may never be."""
        await self._lost.wait()

    async def close(self) -> None:
        """Give the port back."""
        self._renewing.cancel()
        await asyncio.wait((self._renewing,))
        await self._router.take_back(self._port)
        self._router.close()

    async def _renew(self, lifetime_s: int) -> None:
        now = asyncio.get_running_loop().time
        ends_at = now() + lifetime_s
        while now() < ends_at:
            await asyncio.sleep(max((ends_at - now()) / 2, _SHORTEST_RENEWAL_S))
            answer = await self._router.open(self._port, self._lease_s)
            if isinstance(answer, NoPort):
                log.info("the router did not renew the open port: %s", answer.value)
            elif answer.outside != self.outside:
                log.info("the router opened another port than before")
                break
            else:
                ends_at = now() + answer.lifetime_s
        self._lost.set()
