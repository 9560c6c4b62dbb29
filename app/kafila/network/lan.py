"""Rendezvous close by: found on this computer, and on the local network by multicast DNS.

Announcing and finding are conveniences. Where there is no network, or it carries no multicast,
nothing is announced and nothing found there, and a code with an address works all the same.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Self, cast

import aiohttp
import zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from kafila.domain.errors import PeerError
from kafila.network.lan_addresses import lan_addresses
from kafila.network.rendezvous_tls import pinned
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import (
    RENDEZVOUS_VERSION,
    WELL_KNOWN_PORTS,
    decode_nameplate_here,
)
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import PIN_BYTES, Pinned, parse_pin

log = logging.getLogger(__name__)

SERVICE = "_kafila._tcp.local."
BROWSE_S = 2.0
LOOPBACK = "127.0.0.1"

_LINGER_S = 0.4
"""How long to go on looking once somebody has answered: there may be another with that number."""
_ASK_WITHIN_S = 1.0
_MAX_ANSWER_BYTES = 1024
_MAX_ANNOUNCED = 32
"""Announcements looked at in one search."""
_NETWORK_FAULTS = (OSError, RuntimeError, zeroconf.Error)
"""What zeroconf raises where interfaces or multicast are missing."""

# What it has to say of such networks is no news to a person, and comes with tracebacks.
logging.getLogger("zeroconf").setLevel(logging.CRITICAL)


class Announcement:
    """Tells the local network that a session with this nameplate has its rendezvous here."""

    def __init__(self, responder: AsyncZeroconf | None, info: AsyncServiceInfo, pin: bytes) -> None:
        """Use `start`."""
        self._responder = responder
        self._info = info
        self._pin = pin
        self._spreading: Awaitable[None] | None = None

    @classmethod
    async def start(
        cls,
        nameplate: int,
        port: int,
        fingerprint: bytes,
        *,
        hosts: Sequence[str] | None = None,
        interfaces: Sequence[str] | None = None,
    ) -> Self:
        """Announce it until `stop`, or do nothing where the network cannot carry that.

        `fingerprint` is that of the rendezvous's certificate. `hosts` are the addresses to tell,
        `interfaces` those to tell it on; all that this computer has unless given.
        """
        if hosts is None:
            hosts = [address.host for address in lan_addresses(port)]
        pin = fingerprint[:PIN_BYTES]
        info = _describe(os.urandom(6).hex(), nameplate, port, hosts, pin)
        announcement = cls(_open_zeroconf(interfaces), info, pin)
        await announcement._spread(is_new=True)
        return announcement

    async def update(self, nameplate: int) -> None:
        """The session answers to another nameplate now."""
        name = self._info.name.partition(".")[0]
        hosts = self._info.parsed_addresses()
        self._info = _describe(name, nameplate, self._info.port or 0, hosts, self._pin)
        await self._spread(is_new=False)

    async def stop(self) -> None:
        """Take the announcement back."""
        if self._responder is None:
            return
        responder, self._responder = self._responder, None
        with contextlib.suppress(*_NETWORK_FAULTS):
            if self._spreading is not None:
                await self._spreading
            await responder.async_close()

    async def _spread(self, *, is_new: bool) -> None:
        if self._responder is None:
            return
        responder = cast("Any", self._responder)  # Its own types leave half of this unsaid.
        try:
            if is_new:
                # The name is random: there is nobody to ask whether it is taken.
                self._spreading = await responder.async_register_service(self._info, cooperating_responders=True)
            else:
                self._spreading = await responder.async_update_service(self._info)
        except _NETWORK_FAULTS as error:
            log.info("the session is not announced on this network: %s", type(error).__name__)
            await self.stop()


async def find_rendezvous(
    nameplate: int,
    timeout_s: float = BROWSE_S,
    *,
    ports: Iterable[int] = WELL_KNOWN_PORTS,
    interfaces: Sequence[str] | None = None,
) -> tuple[RendezvousAt, ...]:
    """Rendezvous nearby that have a session with this nameplate, the closest first.

    Every one of them was reached and said so itself, under the certificate that is given with it.
    One on the network had announced that certificate. Takes `timeout_s` at most where nobody
    answers, and less where somebody does.
    """
    timeout = aiohttp.ClientTimeout(total=_ASK_WITHIN_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        here = await _ask_all(session, [RendezvousAt(Address(LOOPBACK, port)) for port in ports], nameplate)
        window_s = min(timeout_s, _LINGER_S) if here else timeout_s
        near = await _browse(session, nameplate, window_s, interfaces)
    own = {each.trust for each in here}
    # This computer hears its own announcement as well.
    others = [each for each in near if each.trust not in own]
    return tuple(dict.fromkeys((*here, *others)))


async def _ask_all(
    session: aiohttp.ClientSession, possible: Iterable[RendezvousAt], nameplate: int
) -> list[RendezvousAt]:
    """Those who say that the session is there, in the order in which they answered."""
    found: list[RendezvousAt] = []

    async def ask(at: RendezvousAt) -> None:
        if (shown := await _shown_for_nameplate(session, at, nameplate)) is not None:
            found.append(RendezvousAt(at.address, Pinned(shown)))

    async with asyncio.TaskGroup() as tasks:
        for at in possible:
            tasks.create_task(ask(at))
    return found


async def _shown_for_nameplate(session: aiohttp.ClientSession, at: RendezvousAt, nameplate: int) -> bytes | None:
    """The fingerprint under which the session is said to be there."""
    # On this computer nobody is in between, and nothing was announced.
    way = pinned(at.trust.fingerprint if isinstance(at.trust, Pinned) else b"")
    url = f"https://{at.address}/nameplate/{nameplate}"
    try:
        async with session.get(url, allow_redirects=False, ssl=way.context, server_hostname=way.server_name) as answer:
            if answer.status != 200:
                return None
            here = decode_nameplate_here(await answer.content.read(_MAX_ANSWER_BYTES))
    except (aiohttp.ClientError, OSError, ValueError, PeerError):
        # Whatever else listens there may say what it likes.
        return None
    # Another version counts as found: connecting to it says in words what is the matter.
    log.info("found a rendezvous that speaks version %d", here.kafila_rendezvous)
    return way.seen


async def _browse(
    session: aiohttp.ClientSession,
    nameplate: int,
    window_s: float,
    interfaces: Sequence[str] | None,
) -> list[RendezvousAt]:
    found: list[RendezvousAt] = []
    heard: asyncio.Queue[str] = asyncio.Queue(_MAX_ANNOUNCED)
    browsing = _open_zeroconf(interfaces)
    if browsing is None:
        return found
    loop = asyncio.get_running_loop()
    end = loop.time() + window_s

    def hear(*, name: str, state_change: zeroconf.ServiceStateChange, **_: object) -> None:
        if state_change is zeroconf.ServiceStateChange.Added and not heard.full():
            heard.put_nowait(name)

    async def look_at(name: str, window: asyncio.Timeout) -> None:
        claimed = await _resolve(browsing, name, nameplate, window_s)
        if answered := await _ask_all(session, claimed, nameplate):
            found.extend(answered)
        if answered and not window.expired():
            window.reschedule(min(end, loop.time() + _LINGER_S))

    try:
        browser = AsyncServiceBrowser(browsing.zeroconf, SERVICE, handlers=[hear])
        try:
            async with asyncio.timeout_at(end) as window, asyncio.TaskGroup() as tasks:
                for _ in range(_MAX_ANNOUNCED):
                    tasks.create_task(look_at(await heard.get(), window))
        finally:
            await browser.async_cancel()
    except TimeoutError:
        pass
    except _NETWORK_FAULTS as error:
        log.info("nothing is heard on this network: %s", type(error).__name__)
    finally:
        with contextlib.suppress(*_NETWORK_FAULTS):
            await browsing.async_close()
    return found


async def _resolve(browsing: AsyncZeroconf, name: str, nameplate: int, within_s: float) -> list[RendezvousAt]:
    """Where an announced service claims to be, if it claims to have the nameplate."""
    info = AsyncServiceInfo(SERVICE, name)
    try:
        is_known = await info.async_request(browsing.zeroconf, within_s * 1000)
    except _NETWORK_FAULTS:
        is_known = False
    if not is_known:
        return []
    if info.properties.get(b"nameplate") != str(nameplate).encode() or not info.port:
        return []
    try:
        pin = parse_pin((info.properties.get(b"certificate") or b"").decode("ascii", "replace"))
    except ValueError:
        return []
    hosts = info.parsed_addresses(zeroconf.IPVersion.V4Only)
    return [RendezvousAt(Address(host, info.port), Pinned(pin)) for host in hosts[:_MAX_ANNOUNCED]]


def _open_zeroconf(interfaces: Sequence[str] | None) -> AsyncZeroconf | None:
    choice = zeroconf.InterfaceChoice.All if interfaces is None else list(interfaces)
    try:
        return AsyncZeroconf(interfaces=choice, ip_version=zeroconf.IPVersion.V4Only)
    except _NETWORK_FAULTS as error:
        log.info("no multicast on this network: %s", type(error).__name__)
        return None


def _describe(name: str, nameplate: int, port: int, hosts: Sequence[str], pin: bytes) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE,
        f"{name}.{SERVICE}",
        port=port,
        properties={"nameplate": str(nameplate), "version": str(RENDEZVOUS_VERSION), "certificate": pin.hex()},
        # Not the computer's own name, which may be its owner's.
        server=f"{name}.local.",
        parsed_addresses=list(hosts),
    )
