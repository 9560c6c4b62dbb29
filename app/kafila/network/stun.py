"""STUN as we use it: binding requests answered, and asked, over aioice's message classes.

Clients of RFC 5780 and RFC 8489 show the magic cookie; those of RFC 3489 do not, and are told the
same things under that document's attribute names.
"""

import struct

import msgspec
from aioice import stun

from kafila.protocol.links import Address

MAGIC_COOKIE = 0x2112A442.to_bytes(4, "big")

_CHANGE_IP, _CHANGE_PORT = 4, 2
_MAX_REQUEST_BYTES = 1500
"""Requests may be padded, to find out what fits through a path; answers never are."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Two addresses of one STUN server, each with the same two ports."""

    hosts: tuple[str, str]
    ports: tuple[int, int]

    def change(self, own: Address, *, host: bool, port: bool) -> Address:
        """The corner of the grid with the other host, the other port, or both."""
        hosts, ports = self.hosts, self.ports
        return Address(
            hosts[(own.host == hosts[0]) == host],
            ports[(own.port == ports[0]) == port],
        )


class BindingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes to send to whoever asked, from this address of ours."""

    data: bytes
    source: Address


def answer_binding(data: bytes, client: Address, own: Address, grid: Grid | None) -> BindingAnswer | None:
    """Answer a binding request that reached our address `own`; None where there is nothing to say.

    Without a grid a request to answer from elsewhere is left unanswered: an error would send some
    old clients into a tight loop.
    """
    request = _parse(data) if len(data) <= _MAX_REQUEST_BYTES else None
    if request is None or request.message_class != stun.Class.REQUEST:
        return None
    wanted: int = request.attributes.get("CHANGE-REQUEST", 0)
    change_ip, change_port = bool(wanted & _CHANGE_IP), bool(wanted & _CHANGE_PORT)
    if grid is None:
        if change_ip or change_port:
            return None
        source, other = own, None
    else:
        source = grid.change(own, host=change_ip, port=change_port)
        other = grid.change(own, host=True, port=True)
    cookie = data[4:8]
    attributes: dict[str, tuple[str, int]] = {"MAPPED-ADDRESS": _pair(client)}
    if cookie == MAGIC_COOKIE:
        attributes |= {"XOR-MAPPED-ADDRESS": _pair(client), "RESPONSE-ORIGIN": _pair(source)}
        if other is not None:
            attributes["OTHER-ADDRESS"] = _pair(other)
    else:
        attributes |= {"SOURCE-ADDRESS": _pair(source), "CHANGED-ADDRESS": _pair(other or own)}
    answer = bytes(
        stun.Message(
            message_method=stun.Method.BINDING,
            message_class=stun.Class.RESPONSE,
            transaction_id=request.transaction_id,
            attributes=attributes,
        )
    )
    # In RFC 3489 these four bytes are the beginning of the transaction's name.
    return BindingAnswer(data=answer[:4] + cookie + answer[8:], source=source)


def _parse(data: bytes) -> stun.Message | None:
    try:
        message = stun.parse_message(data)
    except (ValueError, struct.error):
        return None
    return message if message.message_method == stun.Method.BINDING else None


def _pair(address: Address) -> tuple[str, int]:
    return address.host, address.port
