"""Which addresses of this computer others on the same network can reach it by."""

import ipaddress
import socket
from collections.abc import Iterable

import msgspec
import psutil

from kafila.protocol.links import Address
from kafila.protocol.outside import is_public

_PRIVATE = tuple(ipaddress.IPv4Network(text) for text in ("192.168.0.0/16", "10.0.0.0/8", "172.16.0.0/12"))
_SITE_BITS = 48
_INNER = ("docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "lxc", "lxd", "cni", "podman")
"""Interfaces, by how their names begin, that lead to this computer's own guests alone."""


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """An IPv4 address, and the name of the interface that has it."""

    name: str
    host: str


def rank_hosts(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """The addresses worth telling, likeliest first; loopback only where there is no other."""

    def rank(interface: Interface) -> tuple[bool, int]:
        address = ipaddress.IPv4Address(interface.host)
        places = [place for place, network in enumerate(_PRIVATE) if address in network]
        return interface.name.startswith(_INNER), places[0] if places else len(_PRIVATE)

    usable = [each for each in interfaces if _is_usable(ipaddress.IPv4Address(each.host))]
    hosts = dict.fromkeys(each.host for each in sorted(usable, key=rank))
    return tuple(hosts) or ("127.0.0.1",)


def lan_addresses(port: int) -> tuple[Address, ...]:
    """Addresses of this computer for an invitation to its own network, likeliest first."""
    statistics = psutil.net_if_stats()
    interfaces = [
        Interface(name=name, host=each.address)
        for name, addresses in psutil.net_if_addrs().items()
        for each in addresses
        if each.family == socket.AF_INET and (name not in statistics or statistics[name].isup)
    ]
    return tuple(Address(host, port) for host in rank_hosts(interfaces))


def ipv6_addresses(port: int) -> tuple[Address, ...]:
    """Addresses of this computer that lead to it from anywhere, if no router is in the way."""
    statistics = psutil.net_if_stats()
    hosts = [
        each.address.partition("%")[0]
        for name, addresses in psutil.net_if_addrs().items()
        for each in addresses
        if each.family == socket.AF_INET6 and (name not in statistics or statistics[name].isup)
    ]
    return tuple(Address(host, port) for host in dict.fromkeys(hosts) if is_public(host))


def has_address(host: str) -> bool:
    """Whether this computer itself has an address."""
    return any(each.address.partition("%")[0] == host for one in psutil.net_if_addrs().values() for each in one)


def is_outside(host: str) -> bool:
    """Whether whoever has this address is neither on this computer nor on its networks, but somewhere on the Internet.

    A home's own networks share the first 48 bits of their IPv6 addresses.
    """
    if not is_public(host):
        return False
    address = ipaddress.ip_address(host)
    for one in psutil.net_if_addrs().values():
        for each in one:
            if each.family in (socket.AF_INET, socket.AF_INET6):
                own = each.address.partition("%")[0]
                mask = (each.netmask or "255.255.255.255") if each.family == socket.AF_INET else _SITE_BITS
                if address in ipaddress.ip_network(f"{own}/{mask}", strict=False):
                    return False
    return True


def _is_usable(address: ipaddress.IPv4Address) -> bool:
    return not (address.is_loopback or address.is_link_local or address.is_unspecified)
