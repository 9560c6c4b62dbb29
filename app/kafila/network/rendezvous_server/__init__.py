"""The rendezvous: signalling, STUN and the blind relay, in one process, on one port number.

Nothing in this package can decrypt anything: it knows neither QUIC nor codes nor the keys that
members make with them.
"""

from kafila.network.rendezvous_server.certificate import Certificate
from kafila.network.rendezvous_server.server import RendezvousServer

__all__ = ["Certificate", "RendezvousServer"]
