"""Asking a rendezvous elsewhere whether it gets through to this computer."""

import asyncio
import socket

import aiohttp

from kafila.domain.errors import PeerError
from kafila.network.lan_addresses import has_address
from kafila.network.rendezvous_tls import Way, ask
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import CONNECT_BACK_WITHIN_S, MAX_CONNECTED_BACK_BYTES, decode_connected_back
from kafila.protocol.rendezvous_address import RendezvousAt

_BEYOND_S = 1.5
"""What the question and its answer may take besides."""


async def is_reached(here: Address, witness: RendezvousAt) -> bool | None:
    """Have it connect to an address that should lead here; None: it is not there, or cannot tell."""
    # It tries where the question comes from, so that has to be the same address.
    source = (here.host, 0) if has_address(here.host) else None
    family = socket.AF_INET6 if ":" in here.host else socket.AF_INET
    connector = aiohttp.TCPConnector(local_addr=source, family=family)
    url = f"https://{witness.address}/reach/{here.port}"

    async def question(way: Way) -> bytes | None:
        async with session.post(url, allow_redirects=False, ssl=way.context, server_hostname=way.server_name) as answer:
            return await answer.content.read(MAX_CONNECTED_BACK_BYTES) if answer.status == 200 else None

    try:
        async with (
            asyncio.timeout(CONNECT_BACK_WITHIN_S + _BEYOND_S),
            aiohttp.ClientSession(connector=connector) as session,
        ):
            said, _ = await ask(witness.address.host, witness.trust, question)
        if said is None:
            return None
        tried = decode_connected_back(said)
    except (aiohttp.ClientError, OSError, TimeoutError, PeerError):
        return None
    return tried.reached if tried.host == here.host else None
