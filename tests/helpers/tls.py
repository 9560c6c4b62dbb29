"""A rendezvous's certificate for tests, and clients that know it."""

import aiohttp

from kafila.network.rendezvous_server import RendezvousServer
from kafila.network.rendezvous_tls import pinned
from kafila.network.self_signed import fresh_certificate
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import Pinned

CERTIFICATE = fresh_certificate()


TRUST = Pinned(CERTIFICATE.fingerprint)


def known(address: Address) -> RendezvousAt:
    """A rendezvous of these tests at this address, for who knows its certificate."""
    return RendezvousAt(address, TRUST)


def at(server: RendezvousServer) -> RendezvousAt:
    """The same of the server's first address."""
    return known(server.addresses[0])


def https() -> aiohttp.ClientSession:
    """A client that believes any certificate, as a browser does that was told to."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=pinned(b"").context))
