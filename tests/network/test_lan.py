"""Sessions found on this computer and by multicast DNS, over the loopback interface."""

import asyncio
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

import kafila
from helpers.tls import CERTIFICATE, TRUST, at, known
from kafila.network.lan import SERVICE, Announcement, find_rendezvous
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from kafila.protocol.rendezvous import WELL_KNOWN_PORTS
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import PIN_BYTES

pytestmark = pytest.mark.loopback

LOOPBACK = ["127.0.0.1"]


class Hosting:
    """A session at a rendezvous on loopback."""

    def __init__(self, address: Address, nameplate: int) -> None:
        self.address = address
        self.nameplate = nameplate


@asynccontextmanager
async def hosting(nameplate: int | None = None) -> AsyncGenerator[Hosting]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    try:
        async with asyncio.TaskGroup() as tasks:
            client = await RendezvousClient.connect(at(server), tasks=tasks)
            seat = await client.open_session(nameplate)
            yield Hosting(server.addresses[0], seat.nameplate)
            await client.close()
    finally:
        await server.close()


def loopback_carries_multicast() -> bool:
    """Whether a datagram to the mDNS group comes back on the loopback interface here."""
    member = struct.pack("4s4s", socket.inet_aton("224.0.0.251"), socket.inet_aton("127.0.0.1"))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        try:
            receiver.bind(("", 0))
            receiver.settimeout(5)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            sender.sendto(b"heard", ("224.0.0.251", receiver.getsockname()[1]))
            return receiver.recv(16) == b"heard"
        except OSError:
            return False


async def test_a_session_on_this_computer_is_found() -> None:
    async with hosting() as here:
        ports = [here.address.port, 9]
        assert await find_rendezvous(here.nameplate, 0.0, ports=ports, interfaces=LOOPBACK) == (known(here.address),)
        assert await find_rendezvous(here.nameplate + 1, 0.0, ports=ports, interfaces=LOOPBACK) == ()


async def test_a_rendezvous_in_an_app_is_where_others_look() -> None:
    first = await RendezvousServer.open_in_app(CERTIFICATE, "127.0.0.1")
    second = await RendezvousServer.open_in_app(CERTIFICATE, "127.0.0.1")
    ports = [server.addresses[0].port for server in (first, second)]
    await first.close()
    await second.close()
    assert ports[0] != ports[1]
    # Other programs on this computer may have taken all of the range.
    assert ports[0] in WELL_KNOWN_PORTS or ports[1] not in WELL_KNOWN_PORTS


async def test_an_announced_session_is_found_under_its_number_until_it_is_taken_back() -> None:
    async with hosting(471_000) as here, hosting(471_001) as other:
        announcement = await Announcement.start(
            here.nameplate, here.address.port, TRUST.fingerprint, hosts=LOOPBACK, interfaces=LOOPBACK
        )
        # A network without multicast finds nothing, and a test cannot find more.
        expected = (known(here.address),) if loopback_carries_multicast() else ()
        assert await find(here.nameplate) == expected
        assert await find(other.nameplate, window_s=0.7) == ()
        await announcement.update(other.nameplate)
        # The announcement is believed only as far as the rendezvous itself confirms it.
        assert await find(other.nameplate, window_s=0.7) == ()
        await announcement.update(here.nameplate)
        assert await find(here.nameplate) == expected
        await announcement.stop()
        await announcement.stop()
        assert await find(here.nameplate, window_s=0.7) == ()


async def test_two_announced_sessions_with_one_number_are_both_found() -> None:
    async with hosting(472_000) as one, hosting(472_000) as two:
        announcements = [
            await Announcement.start(
                each.nameplate, each.address.port, TRUST.fingerprint, hosts=LOOPBACK, interfaces=LOOPBACK
            )
            for each in (one, two)
        ]
        expected = {known(one.address), known(two.address)} if loopback_carries_multicast() else set[RendezvousAt]()
        assert set(await find(472_000)) == expected
        for announcement in announcements:
            await announcement.stop()


async def test_an_announcement_names_neither_computer_nor_person() -> None:
    if not loopback_carries_multicast():
        assert await find(473_000, window_s=0.5) == ()
        return
    heard = AsyncZeroconf(interfaces=LOOPBACK)
    names = asyncio.Queue[str]()

    def hear(*, name: str, **_: object) -> None:
        names.put_nowait(name)

    browser = AsyncServiceBrowser(heard.zeroconf, SERVICE, handlers=[hear])
    announcement = await Announcement.start(473_000, 9, TRUST.fingerprint, hosts=LOOPBACK, interfaces=LOOPBACK)
    said = list[AsyncServiceInfo]()
    async with asyncio.timeout(30):
        while not said:
            info = AsyncServiceInfo(SERVICE, await names.get())
            if await info.async_request(heard.zeroconf, 5000) and info.port == 9:
                said.append(info)
    await browser.async_cancel()
    await heard.async_close()
    await announcement.stop()
    assert said[0].properties == {
        b"nameplate": b"473000",
        b"version": b"1",
        b"certificate": TRUST.fingerprint[:PIN_BYTES].hex().encode(),
    }
    assert said[0].server is not None
    assert socket.gethostname().lower() not in said[0].server.lower()


async def find(nameplate: int, window_s: float = 10.0) -> tuple[RendezvousAt, ...]:
    return await find_rendezvous(nameplate, window_s, ports=(), interfaces=LOOPBACK)


async def test_without_a_usable_interface_nothing_is_announced_and_loopback_still_searched() -> None:
    async with hosting() as here:
        announcement = await Announcement.start(here.nameplate, here.address.port, TRUST.fingerprint, interfaces=[])
        found = await find_rendezvous(here.nameplate, 0.2, ports=[here.address.port], interfaces=[])
        assert found == (known(here.address),)
        await announcement.update(48)
        await announcement.stop()


ALONE = """
import asyncio
from kafila.network.lan import Announcement, find_rendezvous
from kafila.network.lan_addresses import lan_addresses

async def main():
    announcement = await Announcement.start(47, 47470, bytes(32))
    await announcement.update(48)
    print(await find_rendezvous(48), lan_addresses(1))
    await announcement.stop()

asyncio.run(main(), debug=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes the network away with a Linux namespace")
def test_a_computer_without_any_network_is_told_nothing_worse_than_nothing() -> None:
    namespace = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this account may not make network namespaces")
    done = subprocess.run(
        [*namespace, sys.executable, "-c", ALONE],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(kafila.__file__).parents[1])},
    )
    assert done.stdout.strip() == "() (Address(host='127.0.0.1', port=1),)"
    assert (done.stderr, done.returncode) == ("", 0)


async def test_whatever_else_listens_on_the_ports_is_let_be() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nIt works!")
        writer.close()

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x00\xff" * 100)
        writer.close()

    servers = [await asyncio.start_server(each, "127.0.0.1", 0) for each in (answer, babble)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    assert await find_rendezvous(47, 0.0, ports=ports, interfaces=LOOPBACK) == ()
    for server in servers:
        server.close()
        await server.wait_closed()
