"""What it takes to be reached from the Internet: which addresses lead anywhere, and why a router opens no port."""

import ipaddress
from enum import StrEnum

_NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
)
_UNICAST = ipaddress.IPv6Network("2000::/3")


class NoPort(StrEnum):
    """Why no port was opened."""

    NO_ROUTER = "no-router"
    """This computer knows of no router that it could ask."""
    REFUSED = "refused"
    """The router does not do that, or not now, or says nothing at all."""
    BEHIND_ANOTHER = "behind-another"
    """The router has no public address itself: what it opens leads nowhere."""


def is_public(host: str) -> bool:
    """Whether an address means the same everywhere, rather than inside one home or one carrier."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        return address in _UNICAST
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        return False
    return not any(address in network for network in _NOT_PUBLIC)
