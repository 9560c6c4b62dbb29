"""Asking a router by UPnP (an Internet Gateway Device), which most home routers know.

Only the default gateway is believed: its answer to the search, and addresses on itself. What it
sends is bounded in bytes and time before the library reads it.
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Mapping
from typing import Any, Self, cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.http_exceptions import BadHttpMessage
from async_upnp_client.client import UpnpRequester, UpnpService
from async_upnp_client.client_factory import UpnpFactory
from async_upnp_client.const import HttpRequest, HttpResponse
from async_upnp_client.exceptions import UpnpActionError, UpnpError
from async_upnp_client.ssdp import build_ssdp_search_packet, decode_ssdp_packet, is_valid_ssdp_packet

from kafila.domain.snapshot import NoPort
from kafila.network.port_mapping_frames import Granted
from kafila.protocol.links import Address
from kafila.protocol.outside import is_public

SEARCH_WITHIN_S = 1.0
DESCRIPTION_WITHIN_S = 2.0
ANSWER_WITHIN_S = 2.0
MAX_ANSWER_BYTES = 64 << 10
MAX_DESCRIPTION_BYTES = 512 << 10
"""The description and those of all the router's services together."""

_GROUP = ("239.255.255.250", 1900)
_SEARCHED = "urn:schemas-upnp-org:device:InternetGatewayDevice:1"
"""Newer devices answer to the older name too."""
_CONNECTIONS = (
    "urn:schemas-upnp-org:service:WANIPConnection:",
    "urn:schemas-upnp-org:service:WANPPPConnection:",
)
_NEEDED = ("GetExternalIPAddress", "AddPortMapping", "DeletePortMapping")
_TRIES_AT_S = (0.0, 0.2, 0.5)
_MOST_DATAGRAMS = 256
_MAX_DATAGRAM = 2048
_HOPS = 2
_MAX_URL = 512
_CONFLICT = 718
_OTHER_PORTS = range(49152, 65536)
_PORTS_TRIED = 3
_PROTOCOLS = ("UDP", "TCP")
_NAME = "Kafila"

log = logging.getLogger(__name__)


class UpnpRouter:
    """The service of one router that opens ports. Made by `find`."""

    how = "upnp"

    def __init__(self, service: UpnpService, requester: "_Requester", own: str) -> None:
        """For `find`."""
        self._service = service
        self._requester = requester
        self._own = own
        self._outside_port: int | None = None

    @classmethod
    async def find(cls, gateway: str) -> Self | None:
        """The gateway's service, looked for on its network; None where it has none that it tells of in time."""
        own = _source_towards(gateway)
        url = None if own is None else await _search(gateway, own)
        if own is None or url is None:
            return None
        requester = _Requester(gateway)
        requester.left_bytes = MAX_DESCRIPTION_BYTES
        try:
            async with asyncio.timeout(DESCRIPTION_WITHIN_S):
                device = await UpnpFactory(requester, non_strict=True).async_create_device(url)
        except Exception as error:  # noqa: BLE001 - whatever the library makes of nonsense, it is no answer
            log.info("the router’s description cannot be used: %s", type(error).__name__)
            return None
        for service in device.all_services:
            if service.service_type.startswith(_CONNECTIONS) and all(map(service.has_action, _NEEDED)):
                return cls(service, requester, own)
        return None

    async def open(self, port: int, lease_s: int) -> Granted | NoPort:
        """Open the port for UDP and TCP, with the same number outside; else neither is open."""
        found = await self._call("GetExternalIPAddress")
        host = found.get("NewExternalIPAddress") if isinstance(found, Mapping) else None
        if not isinstance(host, str):
            return NoPort.REFUSED
        if not is_public(host):
            return NoPort.BEHIND_ANOTHER
        wanted = self._outside_port or port
        for _ in range(_PORTS_TRIED):
            code = await self._add(wanted, port, lease_s)
            if code is None:
                self._outside_port = wanted
                return Granted(outside=Address(host, wanted), lifetime_s=lease_s)
            # Whoever holds the number already keeps it; a lease that is renewed keeps its own.
            if code != _CONFLICT or self._outside_port is not None:
                break
            wanted = secrets.choice(_OTHER_PORTS)
        return NoPort.REFUSED

    async def take_back(self, port: int) -> None:
        """Have it closed again."""
        await self._delete(self._outside_port or port, _PROTOCOLS)

    def close(self) -> None:
        """Ask nothing more. There is nothing to let go of."""

    async def _add(self, outside: int, port: int, lease_s: int) -> int | None:
        """Open both; else the router's reason (0: none that counts), and neither is open."""
        for number, protocol in enumerate(_PROTOCOLS):
            answer = await self._call(
                "AddPortMapping",
                NewRemoteHost="",
                NewExternalPort=outside,
                NewProtocol=protocol,
                NewInternalPort=port,
                NewInternalClient=self._own,
                NewEnabled=True,
                NewPortMappingDescription=_NAME,
                NewLeaseDuration=lease_s,
            )
            if isinstance(answer, int):
                # An answer that did not come may still have opened it.
                opened = _PROTOCOLS[: number + 1] if answer == 0 else _PROTOCOLS[:number]
                await self._delete(outside, opened)
                return answer
        return None

    async def _delete(self, outside: int, protocols: tuple[str, ...]) -> None:
        for protocol in protocols:
            await self._call("DeletePortMapping", NewRemoteHost="", NewExternalPort=outside, NewProtocol=protocol)

    async def _call(self, action: str, **arguments: Any) -> Mapping[str, object] | int:
        """What the router answers; else its number for why not, or 0."""
        self._requester.left_bytes = MAX_ANSWER_BYTES
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                return await self._service.action(action).async_call(**arguments)
        except UpnpActionError as error:
            log.info("the router does not %s: %s", action, error.error_code)
            return error.error_code or 0
        except Exception as error:  # noqa: BLE001 - as above
            log.info("the router does not %s: %s", action, type(error).__name__)
            return 0


class _Requester(UpnpRequester):
    """HTTP to one host alone, without redirections, and so many bytes at most."""

    def __init__(self, host: str) -> None:
        self.left_bytes = 0
        self._host = host

    async def async_http_request(self, http_request: HttpRequest) -> HttpResponse:
        """One request."""
        if not _is_on(http_request.url, self._host):
            raise UpnpError(message="an address elsewhere")
        data = bytearray()
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN_S), auto_decompress=False) as http,
            http.request(
                http_request.method,
                http_request.url,
                headers={**http_request.headers, "Accept-Encoding": "identity"},
                data=http_request.body,
                allow_redirects=False,
            ) as answer,
        ):
            async for chunk in answer.content.iter_chunked(4096):
                data += chunk
                self.left_bytes -= len(chunk)
                if self.left_bytes < 0 or len(data) > MAX_ANSWER_BYTES:
                    raise UpnpError(message="more than a router has to say")
            return HttpResponse(answer.status, answer.headers, data.decode(errors="replace"))


async def _search(gateway: str, own: str) -> str | None:
    """Where the gateway says that its description is."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0)
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, _HOPS)
        try:
            asking.bind((own, 0))
            for number in range(len(_TRIES_AT_S)):
                # Some answer the network, some only who asks them alone.
                for target in (_GROUP, (gateway, _GROUP[1])):
                    asking.sendto(build_ssdp_search_packet(target, 1, _SEARCHED), target)
                later = [*_TRIES_AT_S, SEARCH_WITHIN_S][number + 1]
                try:
                    async with asyncio.timeout_at(begin + later):
                        return await _hear(asking, gateway)
                except TimeoutError:
                    continue
        except OSError as error:
            log.debug("looking for the router’s services: %s", error)
    return None


async def _hear(asking: socket.socket, gateway: str) -> str | None:
    loop = asyncio.get_running_loop()
    for _ in range(_MOST_DATAGRAMS):
        data, source = await loop.sock_recvfrom(asking, _MAX_DATAGRAM)
        if source[0] != gateway or not is_valid_ssdp_packet(data):
            continue
        try:
            headers = cast("Mapping[str, object]", decode_ssdp_packet(data, None, source)[1])
        except (BadHttpMessage, ValueError):
            continue
        url = headers.get("location")
        if headers.get("st") == _SEARCHED and isinstance(url, str) and _is_on(url, gateway):
            return url
    return None


def _is_on(url: str, host: str) -> bool:
    """Whether a web address is one of this host, written as a number."""
    try:
        parts = urlsplit(url)
        return len(url) <= _MAX_URL and parts.scheme == "http" and parts.hostname == host and parts.port != 0
    except ValueError:
        return False


def _source_towards(host: str) -> str | None:
    """This computer's address on the way there; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((host, 9))
        except OSError:
            return None
        return str(asking.getsockname()[0])
