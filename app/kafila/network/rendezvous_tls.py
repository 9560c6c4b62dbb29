"""A client's end of TLS with a rendezvous: version 1.3, and only the certificate that counts."""

import asyncio
import hashlib
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import aiohttp

from kafila.protocol.trust import SERVER_NAME, Authority, Certain, FirstUse, Pinned, Trust

Answer = TypeVar("Answer")

_QUIET_BUFFER_BYTES = 16 << 10
"""asyncio sets aside 256 KiB for each connection unless told; what is read at once is a TLS record of 16 at most."""
_SELF_SIGNED = 18
"""OpenSSL's number for a certificate that nobody but itself vouches for."""


class OtherCertificateError(ssl.SSLCertVerificationError):
    """The certificate is not the one whose fingerprint was known."""


class _Watched(ssl.SSLObject):
    """Ends the handshake where the certificate is another one, before anything else was said."""

    def do_handshake(self) -> None:
        super().do_handshake()
        shown = hashlib.sha256(self.getpeercert(binary_form=True) or b"").digest()
        context = self.context
        if not isinstance(context, _WatchingContext) or not shown.startswith(context.expected):
            raise OtherCertificateError
        context.seen = shown


class _WatchingContext(ssl.SSLContext):
    """TLS that asks no authority, and compares the certificate's fingerprint."""

    expected = b""
    """How it has to begin."""
    seen = b""
    """What it was."""
    sslobject_class = _Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a connection is made: TLS, and the name that is asked for."""

    context: ssl.SSLContext
    server_name: str

    @property
    def seen(self) -> bytes:
        """The fingerprint that was shown, where fingerprints are compared."""
        return self.context.seen if isinstance(self.context, _WatchingContext) else b""


def expect_many_connections() -> None:
    """From now on let a TLS connection of this process take little memory while it is quiet."""
    SSLProtocol.max_size = _QUIET_BUFFER_BYTES


def pinned(fingerprint: bytes) -> Way:
    """Only the certificate whose SHA-256 begins so; any, where that is empty."""
    context = _WatchingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.expected = fingerprint
    return Way(context=context, server_name=SERVER_NAME)


async def vouched(name: str) -> Way:
    """Any certificate for this name that the system's authorities vouch for."""
    context = await asyncio.to_thread(ssl.create_default_context)  # Reads more than a hundred of them.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return Way(context=context, server_name=name)


async def ask(host: str, trust: Trust, request: Callable[[Way], Awaitable[Answer]]) -> tuple[Answer, Certain]:
    """Make a request whose server shows a certificate that counts; with it, which one counts there from now on.

    The request gets the way to connect. Raises what it raises: aiohttp.ClientError, which
    `rendezvous_advice` puts in words.
    """
    match trust:
        case Authority(name=name):
            return await request(await vouched(name)), trust
        case Pinned(fingerprint=fingerprint):
            return await request(pinned(fingerprint)), trust
        case FirstUse():
            return await _ask_a_stranger(host, request)


async def _ask_a_stranger(host: str, request: Callable[[Way], Awaitable[Answer]]) -> tuple[Answer, Certain]:
    try:
        return await request(await vouched(host)), Authority(host)
    except aiohttp.ClientConnectorCertificateError as error:
        fault = error.certificate_error
        # One that has expired, or is for another name, was meant to be vouched for.
        if not isinstance(fault, ssl.SSLCertVerificationError) or fault.verify_code != _SELF_SIGNED:
            raise
    way = pinned(b"")
    answer = await request(way)
    return answer, Pinned(way.seen)
