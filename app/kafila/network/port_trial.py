"""Whether the router opens a port when it is asked, and that leads here: tried once, and given back."""

import asyncio

import msgspec

from kafila.domain.snapshot import NoPort
from kafila.network.connect_back import is_reached
from kafila.network.port_mapping import PortLease
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt

TRIED_PORT, TRIED_FOR_S = 47489, 60
"""The port that the router is asked for on trial: none that Kafila listens on."""
WITHIN_S = 2.0
ANY = "0.0.0.0"  # noqa: S104  # the router's side is the one that matters


class PortTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    how: str | None = None
    """The way in which the router opened the port: pcp, nat-pmp or upnp; None: it did not."""
    refusal: NoPort | None = None
    reached: bool | None = None
    """Whether a rendezvous elsewhere got through to it; None: nobody could tell."""


async def try_port(witness: RendezvousAt | None) -> PortTrial:
    """Ask the router for a port, have it tried from outside, give it back. Never raises for what the router does."""
    lease: PortLease | NoPort = NoPort.REFUSED
    reached: bool | None = None
    try:
        async with asyncio.timeout(WITHIN_S):
            lease = await PortLease.ask(TRIED_PORT, lease_s=TRIED_FOR_S)
            if isinstance(lease, PortLease) and witness is not None:
                reached = await _try(lease.outside, witness)
    except TimeoutError:
        pass
    if isinstance(lease, NoPort):
        return PortTrial(refusal=lease)
    await lease.close()
    return PortTrial(how=lease.how, reached=reached)


async def _try(outside: Address, witness: RendezvousAt) -> bool | None:
    """Listen for so long as the witness tries."""
    try:
        server = await asyncio.start_server(_hang_up, ANY, TRIED_PORT)
    except OSError:
        return None
    async with server:
        return await is_reached(outside, witness)


def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
