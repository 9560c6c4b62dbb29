"""`kafila rendezvous`: the meeting point as a service of its own."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from kafila.cli.interruption import when_interrupted
from kafila.domain.errors import UserError
from kafila.network.rendezvous_server import Certificate, RendezvousServer
from kafila.network.rendezvous_server.sockets import Sockets, bind_sockets
from kafila.network.rendezvous_tls import expect_many_connections
from kafila.protocol.links import Address
from kafila.protocol.trust import PIN_BYTES

DEFAULT_LISTEN = "0.0.0.0:47470"
SECRET_BYTES = 32
CERTIFICATE = "certificate.pem"
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  # recognised, not bound


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    addresses = [_address(text) for text in arguments.listen or [DEFAULT_LISTEN]]
    secret = _read_secret(arguments.secret_file) if arguments.secret_file else None
    # First of all the place to be: a rendezvous that cannot be leaves no certificate behind.
    sockets = bind_sockets(addresses)
    try:
        certificate = _certificate(arguments.certificate, arguments.key)
    except UserError:
        sockets.close()
        raise
    return asyncio.run(_serve(sockets, certificate, secret, as_json=arguments.json))


def _certificate(certificate: Path | None, key: Path | None) -> Certificate:
    """The one that was given; or else this rendezvous's own, which is made once and stays the same."""
    if certificate is not None and key is not None:
        return Certificate.load(certificate, key)
    if certificate is not None or key is not None:
        raise UserError(title="A certificate and its key belong together", advice="Give --certificate and --key both.")
    # What makes keys is not loaded by a rendezvous that has its certificate from elsewhere.
    from kafila.engine.settings import Folders

    return own_certificate(Folders.of(None).rendezvous / CERTIFICATE)


def own_certificate(file: Path) -> Certificate:
    """The one in this file, made where there is none. Where it cannot be kept, that is said, and it is for once."""
    from kafila.network.self_signed import fresh_certificate, kept_certificate

    try:
        return kept_certificate(file)
    except OSError as error:
        print(
            f"The certificate cannot be kept in {file}: {error.strerror}. At the next start it is another one, and "
            "members who know this one will refuse it. Set XDG_DATA_HOME, or give --certificate and --key.",
            file=sys.stderr,
        )
        return fresh_certificate()


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


async def _serve(sockets: Sockets, certificate: Certificate, secret: bytes | None, *, as_json: bool) -> int:
    stop = when_interrupted()
    expect_many_connections()
    server = await RendezvousServer.serve(sockets, certificate, secret=secret)
    try:
        for address in server.addresses:
            _tell(address, certificate.fingerprint, as_json=as_json)
        if server.short_of_files is not None:
            print(server.short_of_files, file=sys.stderr, flush=True)
        await stop.wait()
    finally:
        await server.close()
    return 0


def _tell(address: Address, fingerprint: bytes, *, as_json: bool) -> None:
    digits = fingerprint.hex()
    if as_json:
        event = {"event": "listening", "host": address.host, "port": address.port, "fingerprint": digits}
        print(json.dumps(event), flush=True)
        return
    there = f"HOST:{address.port}" if address.host in WILDCARDS else str(address)
    print(f"The rendezvous listens on {address}.")
    print(f"Its certificate has the SHA-256 fingerprint {digits}.")
    print(f"Members give the whole address: --rendezvous {there}#{digits[: 2 * PIN_BYTES]}", flush=True)
