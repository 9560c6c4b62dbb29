"""What one computer is and what it was measured to be able to do."""

from enum import StrEnum

import msgspec


class Mapping(StrEnum):
    """How a NAT chooses the public port of a socket (RFC 4787, section 4.1)."""

    ENDPOINT_INDEPENDENT = "endpoint-independent"
    ENDPOINT_DEPENDENT = "endpoint-dependent"
    UDP_BLOCKED = "udp-blocked"
    UNKNOWN = "unknown"


class Filtering(StrEnum):
    """Which packets a NAT lets in through an existing mapping (RFC 4787, section 5)."""

    ENDPOINT_INDEPENDENT = "endpoint-independent"
    ADDRESS_DEPENDENT = "address-dependent"
    ADDRESS_AND_PORT_DEPENDENT = "address-and-port-dependent"
    UNKNOWN = "unknown"


class Reachability(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned of a computer's network; "unknown" and None mean not learned."""

    mapping: Mapping = Mapping.UNKNOWN
    filtering: Filtering = Filtering.UNKNOWN
    lan: str | None = None
    """Members with the same value share a LAN."""
    public_host: str | None = None
    """The IPv4 address that the computer appears from."""
    hairpin: bool | None = None
    """Whether two computers behind the same router meet at their public addresses."""
    ipv6: bool | None = None
    port_mapping: bool | None = None
    rendezvous_rtt_ms: float | None = None


class MachineKind(StrEnum):
    """Which picture stands for the computer."""

    LAPTOP = "laptop"
    DESKTOP = "desktop"
    SERVER = "server"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A computer as people know it."""

    name: str
    owner: str = ""
    kind: MachineKind = MachineKind.DESKTOP
    system: str = ""
    """Operating system and processor, for *Details*."""


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """Measured figures of one computer for one model.

    `bandwidth_bytes_s` and `flops_s` come from timing one real block of the model at one row and
    at many rows, in the format in which its weights are stored. None: not measured.
    """

    room_bytes: int | None
    bandwidth_bytes_s: float | None = None
    flops_s: float | None = None
    reachability: Reachability = Reachability()
