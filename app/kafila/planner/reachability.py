"""Whether two members will reach each other directly, by what is known of their networks.

A prediction only, made without a packet: the table errs towards the relay. It also holds the
counting pass, which tells from the classes alone how few relayed edges a ring can have.
"""

from enum import Enum

from kafila.domain.capability import Filtering, Mapping, Reachability
from kafila.domain.plan import PathKind


class NatClass(Enum):
    """How a member's network treats strangers."""

    PERMISSIVE = "permissive"
    """Reachable by anyone who knows its port, perhaps after one packet to their address."""
    ORDINARY = "ordinary"
    """One public port for all, open to exactly the ports that were written to."""
    RESTRICTIVE = "restrictive"
    """A new public port for every peer, or not known."""
    BLOCKED = "blocked"
    """No UDP at all."""


_LENIENT = (Filtering.ENDPOINT_INDEPENDENT, Filtering.ADDRESS_DEPENDENT)


def classify(reach: Reachability) -> NatClass:
    """The class of a member. A mapped port opens any network that lets UDP through."""
    if reach.mapping is Mapping.UDP_BLOCKED:
        return NatClass.BLOCKED
    if reach.port_mapping:
        return NatClass.PERMISSIVE
    if reach.mapping is not Mapping.ENDPOINT_INDEPENDENT:
        return NatClass.RESTRICTIVE
    return NatClass.PERMISSIVE if reach.filtering in _LENIENT else NatClass.ORDINARY


def predict_path(one: Reachability, other: Reachability) -> PathKind:
    """How the two will reach each other."""
    if one.lan is not None and one.lan == other.lan:
        return PathKind.DIRECT
    classes = {classify(one), classify(other)}
    if NatClass.BLOCKED in classes:
        return PathKind.RELAYED
    if one.ipv6 and other.ipv6:
        return PathKind.DIRECT
    if _share_address(one, other) and not (one.hairpin and other.hairpin):
        return PathKind.RELAYED
    if NatClass.RESTRICTIVE in classes and NatClass.PERMISSIVE not in classes:
        return PathKind.RELAYED
    return PathKind.DIRECT


def _share_address(one: Reachability, other: Reachability) -> bool:
    """Whether both are behind one router, such as a carrier's; what goes to its outside has to turn round there."""
    return one.public_host is not None and one.public_host == other.public_host


def count_fewest_relays(*, permissive: int, ordinary: int, restrictive: int) -> int:
    """The fewest relayed edges of any ring of two or more members of these classes.

    Holds where nobody's UDP is blocked and no two share a LAN, a public address or IPv6. Restrictive members need a
    permissive one on both sides; where ordinary members are present too, the chain in which the
    two alternate must also end in permissive ones, hence one more.
    """
    if restrictive == 0:
        return 0
    needed = restrictive if ordinary == 0 else restrictive + 1
    return max(0, needed - permissive)
