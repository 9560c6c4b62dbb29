"""Whom limits take for one: an IPv4 address, or the /64 that an IPv6 address comes from."""

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=4096)
def unmapped(host: str) -> str:
    """The address; as IPv4 where it is IPv4 written in IPv6, without a zone."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


@lru_cache(maxsize=4096)
def source_of(host: str) -> str:
    """The key under which this address is counted."""
    plain = unmapped(host)
    if ":" not in plain:
        return plain
    return str(ipaddress.ip_network((plain, 64), strict=False))
