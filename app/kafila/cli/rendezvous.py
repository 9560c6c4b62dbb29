"""`kafila rendezvous`: the meeting point as a service of its own."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from kafila.cli.interruption import when_interrupted
from kafila.domain.errors import UserError
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address

DEFAULT_LISTEN = "0.0.0.0:47470"
SECRET_BYTES = 32


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    addresses = [_address(text) for text in arguments.listen or [DEFAULT_LISTEN]]
    secret = _read_secret(arguments.secret_file) if arguments.secret_file else None
    return asyncio.run(_serve(addresses, secret, as_json=arguments.json))


def _read_secret(path: Path) -> bytes:
    """The secret under which seats are given out; a new one where there is none yet."""
    try:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_bytes(os.urandom(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        raise UserError(title=f"{path} cannot be used: {error.strerror}", advice="Name a file that can.") from None
    if len(secret) != SECRET_BYTES:
        raise UserError(title=f"{path} holds no secret of a rendezvous", advice="Remove it, and start again.")
    return secret


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError:
        raise UserError(title=f"“{text}” is not an address", advice="Write it as HOST:PORT.") from None


async def _serve(addresses: list[Address], secret: bytes | None, *, as_json: bool) -> int:
    stop = when_interrupted()
    server = await RendezvousServer.open(addresses, secret=secret)
    try:
        for address in server.addresses:
            if as_json:
                event = {"event": "listening", "host": address.host, "port": address.port}
                print(json.dumps(event), flush=True)
            else:
                print(f"The rendezvous listens on {address}.", flush=True)
        if server.short_of_files is not None:
            print(server.short_of_files, file=sys.stderr, flush=True)
        await stop.wait()
    finally:
        await server.close()
    return 0
