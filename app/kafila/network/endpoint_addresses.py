"""Which of this computer's own addresses others may try."""

import ipaddress
import socket

import psutil

from kafila.domain.errors import UserError
from kafila.network.endpoint_socket import UdpSocket
from kafila.protocol.edge import MAX_CANDIDATES
from kafila.protocol.links import Address


def own_addresses(udp: UdpSocket) -> tuple[Address, ...]:
    """Every address at which the socket can be reached from somewhere, loopback last.

    Loopback is among them: members on one machine then need nothing else, and on another machine
    an unanswered probe is all that comes of it. Raises UserError where there is no interface.
    """
    bound = ipaddress.ip_address(udp.local.host)
    if not bound.is_unspecified:
        return (udp.local,)
    hosts = [host for host in _hosts_up() if udp.takes_ipv6 or host.version == 4]
    if not hosts:
        raise UserError(
            title="This computer has no network connection",
            advice="Connect it to a network, by cable or Wi-Fi, and try again.",
        )
    hosts.sort(key=lambda host: (host.is_loopback, host.version))
    return tuple(Address(str(host), udp.local.port) for host in hosts[:MAX_CANDIDATES])


def _hosts_up() -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = []
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if name in up and address.family in (socket.AF_INET, socket.AF_INET6):
                host = ipaddress.ip_address(address.address)
                # A link-local address means something only together with an interface's name.
                if not host.is_link_local:
                    found.append(host)
    return found
