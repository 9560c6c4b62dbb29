"""`kafila rendezvous`: the meeting point as a service of its own."""

import argparse
import asyncio
import contextlib
import json
import signal

from kafila.domain.errors import UserError
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address

DEFAULT_LISTEN = "0.0.0.0:47470"


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    addresses = [_address(text) for text in arguments.listen or [DEFAULT_LISTEN]]
    return asyncio.run(_serve(addresses, as_json=arguments.json))


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError:
        raise UserError(title=f"“{text}” is not an address", advice="Write it as HOST:PORT.") from None


async def _serve(addresses: list[Address], *, as_json: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    server = await RendezvousServer.open(addresses)
    try:
        for address in server.addresses:
            if as_json:
                event = {"event": "listening", "host": address.host, "port": address.port}
                print(json.dumps(event), flush=True)
            else:
                print(f"The rendezvous listens on {address}.", flush=True)
        await stop.wait()
    finally:
        await server.close()
    return 0
