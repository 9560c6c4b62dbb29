"""Home routers in the words of Linux's packet filter, one rule set for each class of NAT.

Linux keeps a socket's port where that is free and filters by the whole flow, so plain masquerading
is endpoint-independent mapping with address-and-port-dependent filtering, provided that a packet
which comes too early is dropped before it makes an entry of its own. More lenient filtering takes
a table of the mappings in use, by which what comes from outside is sent inside.
"""

from enum import StrEnum

MAPPED_FOR_S = 60
MOVED_PORTS, MOVED_BY = (40000, 41023), 10000
"""Where ports are not kept: which inside ports there are, and how far they move."""


class Nat(StrEnum):
    """What stands between a site and the Internet (RFC 4787)."""

    OPEN = "open"
    """Nothing: a public address."""
    FIREWALLED = "firewalled"
    """A public address, and a firewall that lets in what was asked for."""
    FULL_CONE = "full cone"
    """Endpoint-independent mapping and filtering."""
    ADDRESS_RESTRICTED = "address-restricted"
    """Endpoint-independent mapping, address-dependent filtering."""
    PORT_RESTRICTED = "port-restricted"
    """Endpoint-independent mapping that keeps ports, address-and-port-dependent filtering."""
    PORT_MOVED = "port-restricted, port moved"
    """The same with another port outside than inside."""
    SYMMETRIC = "symmetric"
    """A random port for each peer."""
    UDP_BLOCKED = "udp blocked"
    """Nothing but TCP."""
    LEAKY = "leaky"
    """Port-restricted, but whoever knocks too early spoils the mapping: plain masquerading."""


WITHOUT_ROUTER = (Nat.OPEN, Nat.FIREWALLED)

FIREWALL = """
table inet firewall {
  chain input { type filter hook input priority 0; policy accept;
    iifname "wan0" meta nfproto ipv6 icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    iifname "wan0" ct state established,related accept
    iifname "wan0" drop
  }
}
"""

_INPUT = """
  chain input { type filter hook input priority 0; policy accept;
    iifname "wan0" ct state established,related accept
    iifname "wan0" drop
  }
"""

_FORWARD = """
  chain forward { type filter hook forward priority 0; policy drop;
    %s
    iifname "lan0" accept
    ct state established,related accept
    ct status dnat accept
  }
"""

_POSTROUTING = """
  chain postrouting { type nat hook postrouting priority 100; policy accept;
    oifname "wan0" %s
  }
"""

# A chain of nat type sees the first packet of a flow only, and mappings live on with every packet.
_LENIENT = """
  map mapped { type inet_service : ipv4_addr . inet_service; flags dynamic,timeout; timeout %(for)ds; size 65535; }
  set written { type inet_service . ipv4_addr; flags dynamic,timeout; timeout %(for)ds; size 65535; }
  chain note { type filter hook postrouting priority -10; policy accept;
    oifname "wan0" ct direction original meta l4proto udp update @mapped { udp sport : ip saddr . udp sport }
    oifname "wan0" ct direction original meta l4proto udp update @written { udp sport . ip daddr }
  }
  chain prerouting { type nat hook prerouting priority -100; policy accept;
    iifname "wan0" ip daddr %(outside)s meta l4proto udp %(allowed)s dnat ip to udp dport map @mapped
  }
"""

_HAIRPIN = """
table ip hairpin {
  map mapped { type inet_service : ipv4_addr . inet_service; flags dynamic,timeout; timeout %(for)ds; size 65535; }
  chain note { type filter hook postrouting priority -20; policy accept;
    iifname "lan0" meta l4proto udp update @mapped { udp sport : ip saddr . udp sport }
  }
  chain prerouting { type nat hook prerouting priority -110; policy accept;
    iifname "lan0" ip daddr %(outside)s meta l4proto udp dnat ip to udp dport map @mapped
  }
  chain postrouting { type nat hook postrouting priority 90; policy accept;
    iifname "lan0" oifname "lan0" ct status dnat snat ip to %(outside)s
  }
}
"""

_IPV6 = """
table ip6 home {
  chain forward { type filter hook forward priority 0; policy drop;
    %s
    iifname "lan0" accept
    ct state established,related accept
  }
}
"""


def router_rules(nat: Nat, outside: str, *, hairpin: bool = False) -> str:
    """Everything that a router of this class does, which has this address outside."""
    parts: list[str] = []
    source = "masquerade"
    match nat:
        case Nat.FULL_CONE | Nat.ADDRESS_RESTRICTED:
            allowed = "" if nat is Nat.FULL_CONE else "udp dport . ip saddr @written"
            parts.append(_LENIENT % {"for": MAPPED_FOR_S, "outside": outside, "allowed": allowed})
        case Nat.PORT_MOVED:
            first, last = MOVED_PORTS
            pairs = ", ".join(f"{port} : {port + MOVED_BY}" for port in range(first, last + 1))
            parts.append(f"  map moved {{ type inet_service : inet_service; elements = {{ {pairs} }} }}\n")
            moved = f"{first}-{last}"
            source = f'udp sport {moved} snat ip to {outside} : udp sport map @moved\n    oifname "wan0" masquerade'
        case Nat.SYMMETRIC:
            source = "masquerade fully-random"
        case _:
            pass
    if nat is not Nat.LEAKY:
        parts.append(_INPUT)
    blocked = "meta l4proto udp drop" if nat is Nat.UDP_BLOCKED else ""
    parts.append(_FORWARD % blocked)
    parts.append(_POSTROUTING % source)
    home = f"table ip home {{{''.join(parts)}}}\n"
    across = _HAIRPIN % {"for": MAPPED_FOR_S, "outside": outside} if hairpin else ""
    return home + across + _IPV6 % blocked
