"""Which addresses mean the same everywhere."""

import ipaddress

_NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public(host: str) -> bool:
    """Whether an address leads to one computer from anywhere, rather than inside one home or one carrier."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address in _UNICAST
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        return False
    return not any(address in network for network in _NOT_PUBLIC)
