"""A whole rendezvous on this computer: sockets, signalling, STUN and relay put together."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

from aiohttp import web
from aiohttp.http import HttpProcessingError

from kafila.domain.errors import UserError
from kafila.network.rendezvous_server.certificate import Certificate
from kafila.network.rendezvous_server.connect_back import ConnectBack
from kafila.network.rendezvous_server.datagrams import Datagrams
from kafila.network.rendezvous_server.doors import Doors
from kafila.network.rendezvous_server.files import allow_files
from kafila.network.rendezvous_server.metrics import CONTENT_TYPE, Health, write_metrics
from kafila.network.rendezvous_server.signalling import Signalling
from kafila.network.rendezvous_server.sockets import Sockets, bind_sockets
from kafila.network.rendezvous_server.streams import Streams
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import WELL_KNOWN_PORTS
from kafila.protocol.rendezvous_limits import Limits
from kafila.protocol.rendezvous_server import (
    Drop,
    Effect,
    RendezvousMachine,
    Transmit,
)
from kafila.protocol.rendezvous_switchboard import SeatGiven, SeatTaken

log = logging.getLogger(__name__)
http_log = logging.getLogger(f"{__name__}.http")


def _keep_faults_of_ours(record: logging.LogRecord) -> bool:
    """What others send is no news, and where it came from is nobody's business."""
    record.__dict__.update(msg="answering a request failed", args=())
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


http_log.addFilter(_keep_faults_of_ours)

_TICK_S = 1.0
_SHUT_DOWN_WITHIN_S = 1.0
_SPARE_FILES = 128
"""For everything that is no connection."""
_MAX_HEAD_LINE_BYTES = 4096
_MAX_HEAD_LINES = 48
"""A request has no use for more; every connection may make us keep so much of it."""


class RendezvousServer:
    """Serves from `open` until `close`, on the event loop that opened it."""

    def __init__(self, sockets: Sockets, certificate: Certificate, secret: bytes, limits: Limits) -> None:
        """Use `open`."""
        self._certificate = certificate
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._machine = RendezvousMachine(secret=secret, draw=os.urandom, limits=limits)
        self._datagrams = Datagrams(sockets.udp, sockets.grids, limits, self._loop.time)
        self._signalling = Signalling(self._machine, now=self._loop.time, perform=self._perform, health=self.health)
        self._streams = Streams(
            limits,
            open_stream=self._datagrams.open_stream,
            close_stream=self._datagrams.close_stream,
            take_frame=self._datagrams.take_frame,
        )
        self._connect_back = ConnectBack(limits, self._loop.time)
        routes = self._signalling.application.router
        routes.add_get("/relay", self._streams.serve)
        routes.add_get("/metrics", self._tell_metrics)
        routes.add_post(r"/reach/{port:\d{1,5}}", self._connect_back.serve)
        self._runner = web.AppRunner(
            self._signalling.application,
            access_log=None,
            logger=http_log,
            shutdown_timeout=_SHUT_DOWN_WITHIN_S,
            max_line_size=_MAX_HEAD_LINE_BYTES,
            max_field_size=_MAX_HEAD_LINE_BYTES,
            max_headers=_MAX_HEAD_LINES,
        )
        self._connections = max(1, allow_files(limits.tcp_connections + _SPARE_FILES) - _SPARE_FILES)
        self._wanted_connections = limits.tcp_connections
        self._doors = Doors(limits, most=self._connections, behind=self._behind_doors)
        self._ticking: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls,
        listen: Sequence[Address],
        certificate: Certificate,
        *,
        secret: bytes | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Serve at these addresses, over TLS; port 0 takes a free one. Raises UserError where it cannot.

        With the `secret` (16 to 64 bytes) of an earlier rendezvous, that one's clients come back
        to their sessions and seats.
        """
        return await cls.serve(bind_sockets(listen), certificate, secret=secret, limits=limits)

    @classmethod
    async def serve(
        cls,
        sockets: Sockets,
        certificate: Certificate,
        *,
        secret: bytes | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """The same on sockets that were bound before, and are closed with it."""
        server = cls(sockets, certificate, secret or os.urandom(32), limits or Limits())
        await server._start()
        return server

    @classmethod
    async def open_in_app(cls, certificate: Certificate, *hosts: str) -> Self:
        """Serve at a port where others on this computer look, or else at any free one."""
        for port in WELL_KNOWN_PORTS:
            try:
                return await cls.open([Address(host, port) for host in hosts], certificate)
            except UserError:
                continue
        return await cls.open([Address(host, 0) for host in hosts], certificate)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens, in the order in which that was asked."""
        return tuple(self._sockets.tcp)

    @property
    def short_of_files(self) -> str | None:
        """A sentence where this system lets it serve fewer connections than it would."""
        if self._connections >= self._wanted_connections:
            return None
        needed = self._wanted_connections + _SPARE_FILES
        return (
            f"This system lets one program have few files open: {self._connections} connections are the most here, "
            f"and not {self._wanted_connections}. “ulimit -n {needed}” before the start raises that, where it may."
        )

    def watch(self, came: Callable[[str], None]) -> None:
        """From now on say which addresses signalling connections come from."""
        self._signalling.came = came

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate that it shows."""
        return self._certificate.fingerprint

    def health(self) -> Health:
        """The present numbers."""
        relay = self._datagrams.relay
        return Health(
            status="serving",
            signalling=self._machine.counts(),
            relayed_frames=relay.forwarded_frames,
            relayed_bytes=relay.forwarded_bytes,
            relay_drops=dict(relay.dropped),
            relay_connections=self._streams.connections,
            connections_dropped=self._connections_dropped(),
            relay_frames_lost=self._streams.lost_frames,
            stun_answers=self._datagrams.stun_answers,
            stun_refused=self._datagrams.stun_refused,
            unsent_datagrams=self._datagrams.unsent,
        )

    def _connections_dropped(self) -> dict[str, int]:
        own = Counter({"took nothing": self._signalling.stuck, "silent": self._machine.counts().silent})
        return dict(self._doors.turned_away + self._streams.turned_away + own)

    async def _tell_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text=write_metrics(self.health()), headers={"Content-Type": CONTENT_TYPE})

    async def close(self) -> None:
        """Stop serving and let go of every socket."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self._datagrams.stop(self._loop)
        self._doors.shut()
        self._signalling.close_all()
        self._streams.close_all()
        await self._runner.cleanup()
        await self._doors.close()
        self._sockets.close()

    async def _start(self) -> None:
        try:
            await self._runner.setup()
            for each in self._sockets.tcp.values():
                self._doors.listen(each, self._certificate.context)
        except BaseException:
            await self._runner.cleanup()
            self._sockets.close()
            raise
        self._datagrams.start(self._loop)
        self._ticking = self._loop.call_later(_TICK_S, self._tick)
        log.info("the rendezvous listens on port %s", [each.port for each in self.addresses])

    def _behind_doors(self) -> asyncio.Protocol:
        if (server := self._runner.server) is None:
            message = "the runner is set up before anything is accepted"
            raise RuntimeError(message)
        return server()

    def _tick(self) -> None:
        now = self._loop.time()
        self._ticking = self._loop.call_later(_TICK_S, self._tick)
        self._perform(self._machine.tick(now))
        self._datagrams.tick(now)
        self._connect_back.tick()

    def _perform(self, effects: list[Effect]) -> None:
        relay = self._datagrams.relay
        for effect in effects:
            match effect:
                case Transmit() | Drop():
                    self._signalling.carry_out(effect)
                case SeatGiven(slot=slot, session=session, key=key):
                    relay.seat(slot=slot, session=session, key=key, now=self._loop.time())
                case SeatTaken(slot=slot):
                    relay.unseat(slot)
