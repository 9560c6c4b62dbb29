"""PCP (RFC 6887) and its forerunner NAT-PMP (RFC 6886): how a router is asked to open a port.

Both speak on the same port of the router. A router that knows only the older one says so.
"""

import ipaddress
import struct

import msgspec

from kafila.domain.errors import PeerError
from kafila.protocol.links import Address

ROUTER_PORT = 5351
UDP, TCP = 17, 6
NONCE_BYTES = 12
MAX_ANSWER_BYTES = 1100

_PCP, _NAT_PMP = 2, 0
_MAP, _ANNOUNCED_ADDRESS = 1, 0
_ANSWER = 0x80
_UNSUPPORTED_VERSION = 1
_PMP_MAPS = {UDP: 1, TCP: 2}
_PCP_REQUEST = struct.Struct("!BBxxI16s12sB3xHH16s")
_PCP_ANSWER = struct.Struct("!BBxBII12x12sB3xHH16s")
_PMP_MAP = struct.Struct("!BBxxHHI")
_PMP_MAP_ANSWER = struct.Struct("!BBHIHHI")
_PMP_ADDRESS_ANSWER = struct.Struct("!BBHI4s")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A port of this computer that should be reachable from outside; for 0 seconds: no longer."""

    protocol: int
    port: int
    lifetime_s: int


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The port is open. NAT-PMP tells the outside address in an answer of its own."""

    outside: Address
    lifetime_s: int


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The router will not; `is_older` where it only knows the older protocol."""

    code: int
    is_older: bool = False


def pcp_request(wish: Wish, own: str, nonce: bytes) -> bytes:
    """Ask by PCP. The nonce is what may change or end the mapping later."""
    nowhere = _packed("0.0.0.0")  # noqa: S104 - whatever address the router has
    return _PCP_REQUEST.pack(
        _PCP, _MAP, wish.lifetime_s, _packed(own), nonce, wish.protocol, wish.port, wish.port, nowhere
    )


def read_pcp(data: bytes, wish: Wish, nonce: bytes) -> Granted | Refused:
    """The answer to that. Raises PeerError for anything else."""
    if len(data) >= 4 and data[0] == _NAT_PMP and data[1] & _ANSWER:
        return Refused(code=_UNSUPPORTED_VERSION, is_older=True)
    if not _PCP_ANSWER.size <= len(data) <= MAX_ANSWER_BYTES:
        raise _not_an_answer()
    version, opcode, code, lifetime_s, _, heard, protocol, port, outside, host = _PCP_ANSWER.unpack_from(data)
    if version != _PCP:
        return Refused(code=code, is_older=True)
    if (opcode, heard, protocol, port) != (_MAP | _ANSWER, nonce, wish.protocol, wish.port):
        raise _not_an_answer()
    if code:
        return Refused(code=code, is_older=code == _UNSUPPORTED_VERSION)
    address = ipaddress.IPv6Address(host)
    return Granted(outside=Address(str(address.ipv4_mapped or address), outside), lifetime_s=lifetime_s)


def pmp_request(wish: Wish) -> bytes:
    """Ask by NAT-PMP."""
    outside = wish.port if wish.lifetime_s else 0
    return _PMP_MAP.pack(_NAT_PMP, _PMP_MAPS[wish.protocol], wish.port, outside, wish.lifetime_s)


def pmp_address_request() -> bytes:
    """Ask for the router's outside address by NAT-PMP."""
    return bytes((_NAT_PMP, _ANNOUNCED_ADDRESS))


def read_pmp(data: bytes, wish: Wish, host: str) -> Granted | Refused:
    """The answer to a wish; `host` is the outside address. Raises PeerError for anything else."""
    if len(data) != _PMP_MAP_ANSWER.size:
        raise _not_an_answer()
    version, opcode, code, _, port, outside, lifetime_s = _PMP_MAP_ANSWER.unpack(data)
    if (version, opcode, port) != (_NAT_PMP, _PMP_MAPS[wish.protocol] | _ANSWER, wish.port):
        raise _not_an_answer()
    return Refused(code=code) if code else Granted(outside=Address(host, outside), lifetime_s=lifetime_s)


def read_pmp_address(data: bytes) -> str | Refused:
    """The outside address. Raises PeerError for anything else."""
    if len(data) != _PMP_ADDRESS_ANSWER.size:
        raise _not_an_answer()
    version, opcode, code, _, host = _PMP_ADDRESS_ANSWER.unpack(data)
    if (version, opcode) != (_NAT_PMP, _ANNOUNCED_ADDRESS | _ANSWER):
        raise _not_an_answer()
    return Refused(code=code) if code else str(ipaddress.IPv4Address(host))


def _packed(host: str) -> bytes:
    address = ipaddress.ip_address(host)
    return address.packed if address.version == 6 else ipaddress.IPv6Address(f"::ffff:{host}").packed


def _not_an_answer() -> PeerError:
    return PeerError("no answer to what the router was asked")
