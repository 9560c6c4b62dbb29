"""STUN answers, read by two clients that nobody here wrote: aioice's and pystun3's."""

import asyncio
import struct
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest
from aioice import stun
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.tls import CERTIFICATE
from kafila.network.rendezvous_server import RendezvousServer
from kafila.network.stun import MAGIC_COOKIE, Grid, answer_binding
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_limits import Limits, Rate

pytestmark = pytest.mark.loopback

CLIENT = Address("203.0.113.7", 4242)
OWN = Address("192.0.2.1", 3478)
GRID = Grid(hosts=("192.0.2.1", "192.0.2.2"), ports=(3478, 3479))

two_addresses = pytest.mark.skipif(
    sys.platform == "darwin", reason="macOS gives loopback one IPv4 address until somebody adds a second"
)


class Asker(asyncio.DatagramProtocol):
    """Sends STUN requests through aioice's own transaction, and collects where answers came from."""

    def __init__(self) -> None:
        self.transaction: stun.Transaction | None = None
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self.transaction is not None
        self.transaction.response_received(stun.parse_message(data), addr)

    def send_stun(self, message: stun.Message, addr: tuple[str, int]) -> None:
        self.transport.sendto(bytes(message), addr)

    async def ask(self, server: Address, change: int = 0, *, tries: int = 4) -> tuple[stun.Message, Address]:
        request = stun.Message(stun.Method.BINDING, stun.Class.REQUEST)
        if change:
            request.attributes["CHANGE-REQUEST"] = change
        self.transaction = stun.Transaction(request, (server.host, server.port), self, retransmissions=tries - 1)
        answer, source = await self.transaction.run()
        return answer, Address(*source)


@asynccontextmanager
async def asking() -> AsyncGenerator[Asker]:
    loop = asyncio.get_running_loop()
    transport, asker = await loop.create_datagram_endpoint(Asker, local_addr=("127.0.0.1", 0))
    try:
        yield asker
    finally:
        transport.close()


@asynccontextmanager
async def serving(*hosts: str, limits: Limits | None = None) -> AsyncGenerator[RendezvousServer]:
    server = await RendezvousServer.open([Address(host, 0) for host in hosts], CERTIFICATE, limits=limits)
    try:
        yield server
    finally:
        await server.close()


async def test_aioice_learns_its_own_address_on_the_signalling_port() -> None:
    async with serving("127.0.0.1") as server, asking() as asker:
        answer, source = await asker.ask(server.addresses[0])
        assert answer.attributes["XOR-MAPPED-ADDRESS"] == asker.transport.get_extra_info("sockname")
        assert source == server.addresses[0]
        assert "OTHER-ADDRESS" not in answer.attributes


@two_addresses
@pytest.mark.parametrize(("change", "host", "port"), [(0, 0, 0), (2, 0, 1), (4, 1, 0), (6, 1, 1)])
async def test_aioice_is_answered_from_the_address_it_asks_for(change: int, host: int, port: int) -> None:
    async with serving("127.0.0.1", "127.0.0.2") as server, asking() as asker:
        own, second = server.addresses
        answer, source = await asker.ask(own, change)
        other = Address(*answer.attributes["OTHER-ADDRESS"])
        assert other.host == second.host != own.host
        assert other.port != own.port
        assert source == Address((own, other)[host].host, (own, other)[port].port)
        assert Address(*answer.attributes["RESPONSE-ORIGIN"]) == source
        # What is offered as the other address answers as well, and offers the first one.
        there, _ = await asker.ask(other)
        assert Address(*there.attributes["OTHER-ADDRESS"]) == own


@two_addresses
async def test_two_addresses_with_ports_of_their_own_lend_them_to_each_other() -> None:
    async with serving("127.0.0.1") as one, serving("127.0.0.1") as two:
        ports = [one.addresses[0].port, two.addresses[0].port]
    listen = [Address("127.0.0.1", ports[0]), Address("127.0.0.2", ports[1])]
    server = await RendezvousServer.open(listen, CERTIFICATE)
    async with asking() as asker:
        answer, source = await asker.ask(listen[0], 4)
        assert source == Address("127.0.0.2", ports[0])
        assert Address(*answer.attributes["OTHER-ADDRESS"]) == listen[1]
    await server.close()


PYSTUN = """
import stun, sys
print(*stun.get_ip_info(sys.argv[1], int(sys.argv[2]), "127.0.0.1", int(sys.argv[3])), sep="|")
"""


async def ask_pystun3(source_ip: str, server: Address) -> list[str]:
    """What pystun3 makes of our answers. Blocking as it is, it gets a process of its own."""
    asked = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PYSTUN, source_ip, "0", str(server.port), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asked.communicate()
    return said.decode().strip().split("|")


@two_addresses
async def test_pystun3_finds_the_open_network_that_loopback_is() -> None:
    async with serving("127.0.0.1", "127.0.0.2") as server:
        kind, host, port = await ask_pystun3("127.0.0.1", server.addresses[0])
        assert (kind, host) == ("Open Internet", "127.0.0.1")
        assert 0 < int(port) < 1 << 16


@two_addresses
async def test_pystun3_takes_an_unbound_source_for_a_full_cone() -> None:
    # It compares the address it is seen under with 0.0.0.0 and so believes in a NAT.
    async with serving("127.0.0.1", "127.0.0.2") as server:
        kind, host, _ = await ask_pystun3("0.0.0.0", server.addresses[0])  # noqa: S104
        assert (kind, host) == ("Full Cone", "127.0.0.1")


def request(*, change: int = 0, cookie: bytes = MAGIC_COOKIE) -> bytes:
    attributes = struct.pack("!HHI", 3, 4, change) if change else b""
    return struct.pack("!HH4s12s", 1, len(attributes), cookie, b"transaction!") + attributes


def test_an_old_client_gets_its_four_bytes_back_and_old_attributes() -> None:
    answer = answer_binding(request(cookie=b"\x01\x02\x03\x04"), CLIENT, OWN, GRID)
    assert answer is not None
    assert answer.data[4:20] == b"\x01\x02\x03\x04transaction!"
    attributes = stun.parse_message(answer.data).attributes
    assert attributes == {
        "MAPPED-ADDRESS": ("203.0.113.7", 4242),
        "SOURCE-ADDRESS": ("192.0.2.1", 3478),
        "CHANGED-ADDRESS": ("192.0.2.2", 3479),
    }


def test_with_one_address_an_old_client_learns_of_no_other_and_change_is_not_pretended() -> None:
    answer = answer_binding(request(cookie=b"\x01\x02\x03\x04"), CLIENT, OWN, None)
    assert answer is not None
    assert stun.parse_message(answer.data).attributes["CHANGED-ADDRESS"] == ("192.0.2.1", 3478)
    for change in (2, 4, 6):
        assert answer_binding(request(change=change), CLIENT, OWN, None) is None


@pytest.mark.parametrize("client", [CLIENT, Address("2001:db8::7", 9)])
def test_a_new_client_reads_its_address_of_either_family(client: Address) -> None:
    answer = answer_binding(request(), client, OWN, GRID)
    assert answer is not None
    message = stun.parse_message(answer.data)
    assert message.transaction_id == b"transaction!"
    assert message.attributes["XOR-MAPPED-ADDRESS"] == (client.host, client.port)
    assert message.attributes["MAPPED-ADDRESS"] == (client.host, client.port)


def test_answers_are_not_answered() -> None:
    answer = answer_binding(request(), CLIENT, OWN, GRID)
    assert answer is not None
    assert answer_binding(answer.data, CLIENT, OWN, GRID) is None


@given(data=st.binary(max_size=700), has_header=st.booleans())
@example(data=b"\x00\x01\x00\x08" + MAGIC_COOKIE + b"t" * 12 + b"\x00\x03\x00\x02\x00\x00\x00\x00", has_header=True)
@example(data=b"\x00\x01\x00\x04" + MAGIC_COOKIE + b"t" * 12 + b"\x00\x09\x00\x00", has_header=True)
def test_junk_is_answered_with_nothing_or_a_binding_answer(*, data: bytes, has_header: bool) -> None:
    if has_header:
        data = struct.pack("!HH4s12s", 1, len(data), MAGIC_COOKIE, b"t" * 12) + data
    for grid in (GRID, None):
        answer = answer_binding(data, CLIENT, OWN, grid)
        assert answer is None or stun.parse_message(answer.data).message_class == stun.Class.RESPONSE


async def test_one_address_gets_only_so_many_answers() -> None:
    async with serving("127.0.0.1", limits=Limits(stun_requests=Rate(2, 0.001))) as server, asking() as asker:
        await asker.ask(server.addresses[0])
        await asker.ask(server.addresses[0])
        with pytest.raises(stun.TransactionTimeout):
            await asker.ask(server.addresses[0], tries=1)
        assert server.health().stun_answers == 2
