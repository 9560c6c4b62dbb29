"""Whether the router opens a port when it is asked, tried once, and given back."""

import asyncio

import msgspec

from kafila.network.port_mapping import PortLease
from kafila.protocol.outside import NoPort

TRIED_PORT, TRIED_FOR_S = 47489, 60
"""The port that the router is asked for on trial: none that Kafila listens on."""
WITHIN_S = 2.0


class PortTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    how: str | None = None
    """The way in which the router opened the port: pcp, nat-pmp or upnp; None: it did not."""
    refusal: NoPort | None = None


async def try_port() -> PortTrial:
    """Ask the router for a port, and give it back. Never raises for what the router does."""
    lease: PortLease | NoPort = NoPort.REFUSED
    try:
        async with asyncio.timeout(WITHIN_S):
            lease = await PortLease.ask(TRIED_PORT, lease_s=TRIED_FOR_S)
    except TimeoutError:
        pass
    if isinstance(lease, NoPort):
        return PortTrial(refusal=lease)
    await lease.close()
    return PortTrial(how=lease.how)
