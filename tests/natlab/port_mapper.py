"""A home router's willingness to open ports: a small PCP and NAT-PMP responder inside the router."""

import asyncio
import ipaddress
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from natlab.lab import Router

_PCP_ANSWER = struct.Struct("!BBxBII12x")


class PortMapper(asyncio.DatagramProtocol):
    """Grants what is asked, and keeps a list of what is open."""

    def __init__(self, router: Router, *, only_older: bool, refuses: bool) -> None:
        self.open: dict[tuple[str, int], str] = {}
        self._router = router
        self._only_older = only_older
        self._refuses = refuses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if data[0] == 2 and self._only_older:
            answer = bytes((0, 0x80 | data[1], 0, 1)) + bytes(4)
        else:
            answer = self._by_pcp(data, addr[0]) if data[0] == 2 else self._by_pmp(data, addr[0])
        self._transport.sendto(answer, addr)

    def _by_pcp(self, data: bytes, host: str) -> bytes:
        (lifetime,) = struct.unpack_from("!I", data, 4)
        protocol, port = data[36], int.from_bytes(data[40:42], "big")
        code = self._map("udp" if protocol == 17 else "tcp", port, host, lifetime)
        outside = ipaddress.IPv6Address(f"::ffff:{self._router.outside}").packed
        return _PCP_ANSWER.pack(2, 0x80 | data[1], code, lifetime, 1) + data[24:42] + data[40:42] + outside

    def _by_pmp(self, data: bytes, host: str) -> bytes:
        if data[1] == 0:
            return struct.pack("!BBHI", 0, 128, 0, 1) + ipaddress.IPv4Address(self._router.outside).packed
        port, _, lifetime = struct.unpack_from("!HHI", data, 4)
        code = self._map("udp" if data[1] == 1 else "tcp", port, host, lifetime)
        return struct.pack("!BBHIHHI", 0, 128 + data[1], code, 1, port, port, lifetime)

    def _map(self, protocol: str, port: int, host: str, lifetime: int) -> int:
        if self._refuses:
            return 2
        if lifetime:
            self.open[protocol, port] = host
        else:
            self.open.pop((protocol, port), None)
        rules = "".join(
            f'    iifname "wan0" {kind} dport {number} dnat to {inside}\n'
            for (kind, number), inside in self.open.items()
        )
        self._router.namespace.nft(
            "table ip opened {}\ndelete table ip opened\n"
            "table ip opened {\n  chain prerouting { type nat hook prerouting priority -120; policy accept;\n"
            f"{rules}  }}\n}}\n"
        )
        return 0


@asynccontextmanager
async def port_mapping(
    router: Router, *, only_older: bool = False, refuses: bool = False
) -> AsyncGenerator[PortMapper]:
    """Open ports for whoever asks inside."""
    mapper = PortMapper(router, only_older=only_older, refuses=refuses)

    async def listen() -> asyncio.DatagramTransport:
        inside = (f"{router.inside_net}.1", 5351)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: mapper, local_addr=inside)
        return transport

    transport = await router.namespace.do(listen())
    try:
        yield mapper
    finally:
        await router.namespace.ask(transport.close)
        # The socket is closed in the loop's next turn.
        await router.namespace.do(asyncio.sleep(0))
