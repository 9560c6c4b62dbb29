"""A home router's willingness to open ports: small PCP, NAT-PMP and UPnP responders inside the router."""

import asyncio
import ipaddress
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from xml.etree import ElementTree as ET

from aiohttp import web

from natlab.lab import Router
from natlab.namespaces import Computer

_PCP_ANSWER = struct.Struct("!BBxBII12x")
DEVICE = "urn:schemas-upnp-org:device:InternetGatewayDevice:1"
SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
WEB_PORT = 5000


class OpenPorts:
    """What a router has open, which is really so in its packet filter."""

    def __init__(self, router: Router) -> None:
        self.open: dict[tuple[str, int], str] = {}
        """By protocol and outside port: to which address inside."""
        self.leases_s: list[int] = []
        """How long each was asked for."""
        self._router = router
        self._inside_ports: dict[tuple[str, int], int] = {}

    def add(self, protocol: str, outside: int, host: str, inside: int, lease_s: int) -> None:
        self.leases_s.append(lease_s)
        self.open[protocol, outside] = host
        self._inside_ports[protocol, outside] = inside
        self._install()

    def remove(self, protocol: str, outside: int) -> None:
        self.open.pop((protocol, outside), None)
        self._install()

    def _install(self) -> None:
        rules = "".join(
            f'    iifname "wan0" {kind} dport {number} dnat to {host}:{self._inside_ports[kind, number]}\n'
            for (kind, number), host in self.open.items()
        )
        self._router.namespace.nft(
            "table ip opened {}\ndelete table ip opened\n"
            "table ip opened {\n  chain prerouting { type nat hook prerouting priority -120; policy accept;\n"
            f"{rules}  }}\n}}\n"
        )


class PortMapper(asyncio.DatagramProtocol):
    """Grants what is asked by PCP or NAT-PMP, and keeps a list of what is open."""

    def __init__(self, router: Router, *, only_older: bool, refuses: bool) -> None:
        self.ports = OpenPorts(router)
        self.open = self.ports.open
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
            self.ports.add(protocol, port, host, port, lifetime)
        else:
            self.ports.remove(protocol, port)
        return 0


@asynccontextmanager
async def port_mapping(
    router: Router, *, only_older: bool = False, refuses: bool = False
) -> AsyncGenerator[PortMapper]:
    """Open ports for whoever asks inside, by PCP or NAT-PMP."""
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


class Gateway(asyncio.DatagramProtocol):
    """An Internet Gateway Device: answers the search, describes itself, and opens what it is asked to open."""

    def __init__(self, router: Router, inside: str) -> None:
        self.ports = OpenPorts(router)
        self.open = self.ports.open
        self.inside = inside
        self.outside = router.outside
        self.location = f"http://{self.inside}:{WEB_PORT}/igd.xml"
        """Where it says that its description is."""
        self.padding = ""
        """More for the description."""
        self.control = "/control"
        self.fault: int | None = None
        """Why it opens nothing."""
        self.searches = 0
        self.asked: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if data.startswith(b"M-SEARCH * HTTP/1.1\r\n") and DEVICE.encode() in data:
            self.searches += 1
            lines = (
                "HTTP/1.1 200 OK",
                "CACHE-CONTROL: max-age=120",
                f"ST: {DEVICE}",
                f"USN: uuid:1::{DEVICE}",
                "EXT:",
                f"LOCATION: {self.location}",
            )
            self._transport.sendto("\r\n".join((*lines, "", "")).encode(), addr)

    def describe(self) -> str:
        return (
            '<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0">'
            f"<device><deviceType>{DEVICE}</deviceType><UDN>uuid:1</UDN>{self.padding}<deviceList><device>"
            "<deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType><UDN>uuid:2</UDN><serviceList>"
            f"<service><serviceType>{SERVICE}</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>"
            f"<SCPDURL>/service.xml</SCPDURL><controlURL>{self.control}</controlURL><eventSubURL>/events</eventSubURL>"
            "</service></serviceList></device></deviceList></device></root>"
        )

    def act(self, action: str, given: dict[str, str]) -> str | int:
        """What it answers to an action; else the number of its fault."""
        self.asked.append(action)
        if action == "GetExternalIPAddress":
            return f"<NewExternalIPAddress>{self.outside}</NewExternalIPAddress>"
        key = given["NewProtocol"].lower(), int(given["NewExternalPort"])
        if action == "DeletePortMapping":
            if key not in self.open:
                return 714
            self.ports.remove(*key)
            return ""
        if self.fault is not None:
            return self.fault
        if self.open.get(key, given["NewInternalClient"]) != given["NewInternalClient"]:
            return 718
        self.ports.add(*key, given["NewInternalClient"], int(given["NewInternalPort"]), int(given["NewLeaseDuration"]))
        return ""

    async def answer(self, request: web.Request) -> web.Response:
        """Over HTTP."""
        if request.path in {"/igd.xml", "/service.xml"}:
            text = self.describe() if request.path == "/igd.xml" else _SERVICE_DESCRIPTION
            return web.Response(text=text, content_type="text/xml")
        action = ET.fromstring(await request.text())[0][0]  # noqa: S314 - what the code under test sends
        name = action.tag.rpartition("}")[2]
        outcome = self.act(name, {each.tag: each.text or "" for each in action})
        if isinstance(outcome, int):
            body = (
                "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>"
                f'<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>{outcome}</errorCode>'
                "<errorDescription>no</errorDescription></UPnPError></detail></s:Fault>"
            )
        else:
            body = f'<u:{name}Response xmlns:u="{SERVICE}">{outcome}</u:{name}Response>'
        text = (
            '<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">'
            f"<s:Body>{body}</s:Body></s:Envelope>"
        )
        return web.Response(text=text, content_type="text/xml", status=500 if isinstance(outcome, int) else 200)


def _describe_service() -> str:
    kinds = {
        "ExternalIPAddress": "string",
        "RemoteHost": "string",
        "ExternalPort": "ui2",
        "PortMappingProtocol": "string",
        "InternalPort": "ui2",
        "InternalClient": "string",
        "PortMappingEnabled": "boolean",
        "PortMappingDescription": "string",
        "PortMappingLeaseDuration": "ui4",
    }
    named = {"NewProtocol": "PortMappingProtocol", "NewEnabled": "PortMappingEnabled"}
    named["NewLeaseDuration"] = "PortMappingLeaseDuration"
    place = ("NewRemoteHost", "NewExternalPort", "NewProtocol")
    inside = ("NewInternalPort", "NewInternalClient", "NewEnabled", "NewPortMappingDescription", "NewLeaseDuration")
    actions = {
        "GetExternalIPAddress": ("out", ("NewExternalIPAddress",)),
        "AddPortMapping": ("in", (*place, *inside)),
        "DeletePortMapping": ("in", place),
    }
    action_list = "".join(
        f"<action><name>{name}</name><argumentList>"
        + "".join(
            f"<argument><name>{each}</name><direction>{way}</direction>"
            f"<relatedStateVariable>{named.get(each, each.removeprefix('New'))}</relatedStateVariable></argument>"
            for each in arguments
        )
        + "</argumentList></action>"
        for name, (way, arguments) in actions.items()
    )
    table = "".join(
        f'<stateVariable sendEvents="no"><name>{name}</name><dataType>{kind}</dataType></stateVariable>'
        for name, kind in kinds.items()
    )
    return (
        '<?xml version="1.0"?><scpd xmlns="urn:schemas-upnp-org:service-1-0">'
        f"<actionList>{action_list}</actionList><serviceStateTable>{table}</serviceStateTable></scpd>"
    )


_SERVICE_DESCRIPTION = _describe_service()


@asynccontextmanager
async def gateway_device(router: Router, *, impostor: Computer | None = None) -> AsyncGenerator[Gateway]:
    """Open ports for whoever asks inside, by UPnP; or the second computer of the home says that it did."""
    gateway = Gateway(router, f"{router.inside_net}.{11 if impostor else 1}")
    computer = impostor or router.namespace

    async def listen() -> tuple[asyncio.DatagramTransport, web.AppRunner]:
        searched = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        searched.setblocking(False)  # noqa: FBT003 - the socket's own way
        searched.bind(("", 1900))
        member = socket.inet_aton("239.255.255.250") + socket.inet_aton(gateway.inside)
        searched.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: gateway, sock=searched)
        application = web.Application()
        application.router.add_route("*", "/{rest:.*}", gateway.answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, gateway.inside, WEB_PORT).start()
        return transport, runner

    async def stop() -> None:
        transport.close()
        await runner.cleanup()

    transport, runner = await computer.do(listen())
    try:
        yield gateway
    finally:
        await computer.do(stop())
