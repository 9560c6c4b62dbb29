"""The rendezvous that runs here: where it is reached, from how far away, and what has shown that.

Nothing is taken for granted. A port that the router opened, or a public address, is a way in that
probably leads here; it does once somebody came in by it from outside.
"""

import asyncio
import logging
from collections.abc import Callable

from kafila.domain.snapshot import NoPort, Reach
from kafila.engine.ports import Doors, OpenPort, Rendezvous
from kafila.protocol.links import Address
from kafila.protocol.outside import is_public
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import Pinned

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


class OwnRendezvous:
    """Serves from `open` until `close`."""

    def __init__(self, doors: Doors, *, announced: bool, changed: Callable[[], None]) -> None:
        """`announced`: whether people on this network may come. `changed`: the reach is another than before."""
        self.reachable: tuple[Address, ...] = ()
        """For the invitation."""
        self.no_port: NoPort | None = None
        """Why there is no way in from outside, where one was asked for."""
        self._doors = doors
        self._announced = announced
        self._changed = changed
        self._server: Rendezvous | None = None
        self._port: OpenPort | None = None
        self._watching: asyncio.Task[None] | None = None
        self._proven = False

    async def open(self, listen: Address | None, *, open_port: bool, tasks: asyncio.TaskGroup) -> RendezvousAt:
        """Serve, and ask the router where that is wanted; the way for this computer itself."""
        server = self._server = await self._doors.serve(listen, loopback_only=not self._announced)
        server.watch(self._came)
        address = server.addresses[0]
        lan = self._doors.lan_addresses(address.port) if self._announced else ()
        everywhere = address.host in {"0.0.0.0", "::"}  # noqa: S104  # recognised, not bound to
        here = Address(LOOPBACK, address.port) if everywhere else address
        self.reachable = (lan or (here,)) if everywhere else (address,)
        if open_port:
            alone = self.reach is Reach.THIS_COMPUTER
            opened = NoPort.NO_ROUTER if alone else await self._doors.open_port(address.port)
            if isinstance(opened, NoPort):
                self.no_port = opened
            else:
                self._port = opened
                self.reachable = (*self.reachable, opened.outside)
                self._watching = tasks.create_task(self._watch_port(opened))
        log.info("this rendezvous: %s, no port: %s", self.reach.value, self.no_port)
        return RendezvousAt(here, Pinned(server.fingerprint))

    @property
    def reach(self) -> Reach:
        """From where people can come in, as far as is known."""
        if all(each.host == LOOPBACK for each in self.reachable):
            return Reach.THIS_COMPUTER
        if self._proven:
            return Reach.ANYWHERE
        if self._way_in() is not None:
            return Reach.PROBABLY_ANYWHERE
        return Reach.SAME_NETWORK if self.no_port is None else Reach.NEEDS_RENDEZVOUS

    @property
    def port(self) -> int:
        """The port where it listens."""
        return self._server.addresses[0].port if self._server is not None else 0

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of its certificate."""
        return self._server.fingerprint if self._server is not None else b""

    async def prove(self, witness: RendezvousAt) -> bool:
        """Have another rendezvous try the way in; false where there is none, or it does not get through."""
        way_in = self._way_in()
        reached = False if way_in is None else await self._doors.is_reached(way_in, witness)
        if reached:
            self._prove()
        elif reached is False and self.no_port is None:
            self.no_port = NoPort.NOT_REACHED
        # A witness that cannot tell is probably not there: then this one is all there is.
        return reached is not False

    async def close(self) -> None:
        """Give the port back, and end it."""
        if self._watching is not None:
            self._watching.cancel()
        try:
            if self._port is not None:
                await self._port.close()
        finally:
            if self._server is not None:
                await self._server.close()

    def _way_in(self) -> Address | None:
        """What should lead here from anywhere.

        An IPv6 address alone does not count: nearly every home has some, and nearly every router lets nobody in there.
        """
        if self._port is not None:
            return self._port.outside
        return next((each for each in self.reachable if is_public(each.host) and ":" not in each.host), None)

    def _came(self, host: str) -> None:
        """Somebody connected from this address."""
        # A router may let people at home come in by its own address outside.
        by_the_router = self._port is not None and self._port.outside.host == host
        if not self._proven and not by_the_router and self._doors.is_outside(host):
            log.info("somebody came in from outside")
            self._prove()

    def _prove(self) -> None:
        self._proven = True
        self.no_port = None
        self._changed()

    async def _watch_port(self, port: OpenPort) -> None:
        await port.lost()
        log.warning("the router keeps the port open no longer")
        self._port = None
        self._proven = False
        self.no_port = NoPort.REFUSED
        self.reachable = tuple(each for each in self.reachable if each != port.outside)
        await port.close()
        self._changed()
