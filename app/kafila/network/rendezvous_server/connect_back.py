"""Trying whether a computer is reached from outside, for that computer itself.

It names a port and nothing else: tried is the address that its question came from, once, with a
connection on which nothing is said. So nobody can have anybody else tried, and nothing is amplified.
"""

import asyncio
from collections.abc import Callable

import msgspec
from aiohttp import web

from kafila.network.rendezvous_server.sources import source_of, unmapped
from kafila.protocol.outside import is_public
from kafila.protocol.rendezvous import CONNECT_BACK_WITHIN_S, FIRST_TRIED_PORT, ConnectedBack
from kafila.protocol.rendezvous_limits import Buckets, Limits


class ConnectBack:
    """Answers `POST /reach/PORT`."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._asked = Buckets(limits.connects_back)
        self._most_at_once = limits.connects_back_at_once
        self._under_way = 0
        self._now = now

    def tick(self) -> None:
        """Forget what limits no longer need."""
        self._asked.forget_idle(self._now())

    async def serve(self, request: web.Request) -> web.Response:
        """Try it, and say where, and whether it went well."""
        host, port = unmapped(request.remote or ""), int(request.match_info["port"])
        # A web page could ask for its reader; and what is not public would be a place beside this rendezvous.
        if "Origin" in request.headers or not is_public(host) or not FIRST_TRIED_PORT <= port < 1 << 16:
            raise web.HTTPForbidden
        if self._under_way >= self._most_at_once or not self._asked.take(source_of(host), 1, self._now()):
            raise web.HTTPTooManyRequests
        self._under_way += 1
        try:
            reached = await _connects(host, port)
        finally:
            self._under_way -= 1
        answer = ConnectedBack(host=host, reached=reached)
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")


async def _connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_BACK_WITHIN_S):
            _, writer = await asyncio.open_connection(host, port)
    except (TimeoutError, OSError):
        return False
    writer.transport.abort()
    return True
