"""The rendezvous at its real sockets: the relay, questions over HTTP, junk, ports in use."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kafila
from helpers.tls import CERTIFICATE, at, https
from kafila.domain.errors import UserError
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.network.rendezvous_server.sources import source_of, unmapped
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.relay_frames import (
    DeliveredFrame,
    KeepAliveFrame,
    RelayedFrame,
    SeatedFrame,
    decode_from_relay,
    encode_to_relay,
)
from kafila.protocol.rendezvous import (
    MAX_SIGNAL_BYTES,
    Hello,
    Ping,
    Refusal,
    Refused,
    Welcome,
    decode_from_server,
    encode_signal,
)

pytestmark = pytest.mark.loopback


@asynccontextmanager
async def serving() -> AsyncGenerator[RendezvousServer]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    try:
        yield server
    finally:
        await server.close()


class Seated:
    """A UDP socket in a seat at the relay."""

    def __init__(self, seat: RelaySeat) -> None:
        self.seat = seat
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0)
        self._counter = 0

    def send(self, data: bytes) -> None:
        self.socket.sendto(data, (self.seat.relay.host, self.seat.relay.port))

    def relayed(self, destination: int, payload: bytes, *, key: bytes | None = None) -> bytes:
        self._counter += 1
        frame = RelayedFrame(source=self.seat.slot, counter=self._counter, destination=destination, payload=payload)
        return encode_to_relay(frame, key or self.seat.key)

    async def sit_down(self) -> Address:
        """Take the seat; the address that the relay sees."""
        self._counter += 1
        self.send(encode_to_relay(KeepAliveFrame(slot=self.seat.slot, counter=self._counter), self.seat.key))
        frame = decode_from_relay(await self.receive())
        assert isinstance(frame, SeatedFrame)
        return frame.observed

    async def receive(self) -> bytes:
        async with asyncio.timeout(20):
            return await asyncio.get_running_loop().sock_recv(self.socket, 2048)

    async def heard(self) -> DeliveredFrame:
        frame = decode_from_relay(await self.receive())
        assert isinstance(frame, DeliveredFrame)
        return frame


@asynccontextmanager
async def session(server: RendezvousServer, tasks: asyncio.TaskGroup) -> AsyncGenerator[tuple[Seated, Seated]]:
    """A host and a joiner, each sitting at the relay."""
    host = await RendezvousClient.connect(at(server), tasks=tasks)
    guest = await RendezvousClient.connect(at(server), tasks=tasks)
    opened = await host.open_session()
    _, seat = await guest.call(opened.nameplate)
    seats = Seated(opened.seat), Seated(seat)
    for each in seats:
        assert await each.sit_down() == Address(*each.socket.getsockname())
    try:
        yield seats
    finally:
        for each in seats:
            each.socket.close()
        await guest.close()
        await host.close()


async def test_the_relay_passes_payloads_between_the_seats_of_a_session() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, session(server, tasks) as (host, guest):
        payload = bytes(range(256)) * 5
        guest.send(guest.relayed(host.seat.slot, payload))
        assert await host.heard() == DeliveredFrame(source=guest.seat.slot, payload=payload)
        host.send(host.relayed(guest.seat.slot, b"back"))
        assert await guest.heard() == DeliveredFrame(source=host.seat.slot, payload=b"back")
        health = server.health()
        assert (health.relayed_frames, health.unsent_datagrams) == (2, 0)
        assert health.relayed_bytes > 1300


async def test_the_relay_refuses_wrong_keys_old_counters_strangers_and_other_sessions() -> None:
    async with (
        serving() as server,
        asyncio.TaskGroup() as tasks,
        session(server, tasks) as (host, guest),
        session(server, tasks) as (stranger, _),
    ):
        fine = guest.relayed(host.seat.slot, b"fine")
        guest.send(guest.relayed(host.seat.slot, b"x", key=stranger.seat.key))
        guest.send(guest.relayed(stranger.seat.slot, b"x"))
        guest.send(guest.relayed(12345, b"x"))
        stranger.send(stranger.relayed(host.seat.slot, b"x"))
        guest.send(fine)
        guest.send(fine)
        guest.send(guest.relayed(host.seat.slot, b"the end"))
        assert [(await host.heard()).payload for _ in range(2)] == [b"fine", b"the end"]
        assert server.health().relay_drops == {"wrong MAC": 1, "not in the session": 3, "old counter": 1}


async def test_a_seat_moves_with_its_newest_frame() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, session(server, tasks) as (host, guest):
        old, new = guest.socket, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        new.bind(("127.0.0.1", 0))
        new.settimeout(0)
        guest.socket = new
        await guest.sit_down()
        host.send(host.relayed(guest.seat.slot, b"to the new address"))
        assert (await guest.heard()).payload == b"to the new address"
        with pytest.raises(BlockingIOError):
            old.recv(2048)
        old.close()


async def test_a_seat_ends_with_its_client() -> None:
    async with serving() as server:
        async with asyncio.TaskGroup() as tasks, session(server, tasks) as (host, guest):
            seat = guest.seat
        late = Seated(seat)
        late.send(late.relayed(host.seat.slot, b"anybody?"))
        async with asyncio.timeout(20):
            while server.health().relay_drops != {"unknown slot": 1}:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
        late.socket.close()


@given(
    st.lists(st.binary(max_size=200), max_size=10), st.sampled_from([b"", b"\x00", b"\x08", b"\x09", b"\x0b", b"\x40"])
)
@settings(max_examples=30)
def test_no_datagrams_disturb_the_relay(datagrams: list[bytes], first: bytes) -> None:
    async def disturb() -> None:
        async with serving() as server, asyncio.TaskGroup() as tasks, session(server, tasks) as (host, guest):
            for datagram in datagrams:
                guest.send(first + datagram)
            guest.send(guest.relayed(host.seat.slot, b"undisturbed"))
            assert (await host.heard()).payload == b"undisturbed"

    asyncio.run(disturb())


async def ask(server: RendezvousServer, path: str) -> tuple[int, object]:
    async with (
        https() as browser,
        browser.get(f"https://{server.addresses[0]}{path}") as answer,
    ):
        body = await answer.text()
        return answer.status, json.loads(body) if answer.status == 200 else None


async def test_health_names_numbers_and_nobody() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks, session(server, tasks):
        status, health = await ask(server, "/healthz")
        assert status == 200
        assert isinstance(health, dict)
        assert health["status"] == "serving"
        assert health["signalling"]["sessions"] == 1
        assert "127.0.0.1" not in json.dumps(health)


async def test_whether_a_nameplate_is_here() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(at(server), tasks=tasks)
        nameplate = (await host.open_session()).nameplate
        assert await ask(server, f"/nameplate/{nameplate}") == (200, {"kafila_rendezvous": 1})
        for path in (f"/nameplate/{nameplate + 1}", "/nameplate/x", "/nameplate/1234567890", "/"):
            assert await ask(server, path) == (404, None)
        await host.close()


async def test_a_page_in_a_browser_has_no_business_here() -> None:
    async with serving() as server, https() as browser:
        with pytest.raises(aiohttp.WSServerHandshakeError) as raised:
            await browser.ws_connect(f"https://{server.addresses[0]}/signal", origin="http://example.org")
        assert raised.value.status == 403


@pytest.mark.parametrize(
    "said", ["text", b"", b"\xc1", b"\x00" * 100, b"x" * (MAX_SIGNAL_BYTES + 1), encode_signal(Hello(version=1)) + b"x"]
)
async def test_what_cannot_be_read_ends_its_connection_alone(said: str | bytes) -> None:
    async with (
        serving() as server,
        asyncio.TaskGroup() as tasks,
        session(server, tasks) as (host, guest),
        https() as junk,
        junk.ws_connect(f"https://{server.addresses[0]}/signal") as line,
    ):
        await (line.send_str(said) if isinstance(said, str) else line.send_bytes(said))
        end = await line.receive(20)
        assert end.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
        guest.send(guest.relayed(host.seat.slot, b"undisturbed"))
        assert (await host.heard()).payload == b"undisturbed"


async def test_another_version_is_told_so_before_it_is_let_go() -> None:
    async with (
        serving() as server,
        https() as later,
        later.ws_connect(f"https://{server.addresses[0]}/signal") as line,
    ):
        await line.send_bytes(encode_signal(Hello(version=2)))
        refused = decode_from_server(await line.receive_bytes(timeout=20))
        assert refused == Refused(reason=Refusal.OTHER_VERSION)
        assert (await line.receive(20)).type is aiohttp.WSMsgType.CLOSE


def can_bind(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
        return True


@pytest.mark.parametrize("second", ["127.0.0.1", "::1"])
async def test_welcome_names_the_relay_port_of_the_address_that_was_reached(second: str) -> None:
    if not can_bind(second):
        pytest.skip(f"this computer has no address {second}")
    server = await RendezvousServer.open([Address("127.0.0.1", 0), Address(second, 0)], CERTIFICATE)
    assert len(server.addresses) == 2
    async with https() as client:
        for address in server.addresses:
            async with client.ws_connect(f"https://{address}/signal") as line:
                await line.send_bytes(encode_signal(Hello(version=1)))
                welcome = decode_from_server(await line.receive_bytes(timeout=20))
                assert isinstance(welcome, Welcome)
                assert welcome.udp_port == address.port
    await server.close()


async def test_a_client_that_floods_loses_its_connection_alone() -> None:
    async with (
        serving() as server,
        asyncio.TaskGroup() as tasks,
        session(server, tasks) as (host, guest),
        https() as client,
        client.ws_connect(f"https://{server.addresses[0]}/signal") as line,
    ):
        await line.send_bytes(encode_signal(Hello(version=1)))
        for _ in range(2000):
            await line.send_bytes(encode_signal(Ping(received=0)))
        answers = [message async for message in line]
        assert len(answers) < 1000
        assert server.health().signalling.faults == {"more messages than one connection may send": 1}
        guest.send(guest.relayed(host.seat.slot, b"undisturbed"))
        assert (await host.heard()).payload == b"undisturbed"


async def test_a_port_in_use_is_said_in_a_sentence() -> None:
    async with serving() as server:
        with pytest.raises(UserError) as raised:
            await RendezvousServer.open(server.addresses, CERTIFICATE)
        assert "is in use" in raised.value.problem.sentence()
        assert "--listen" in raised.value.problem.advice


async def test_a_port_whose_udp_half_is_in_use_leaves_nothing_bound() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        address = Address(*taken.getsockname())
        with pytest.raises(UserError, match="in use"):
            await RendezvousServer.open([address], CERTIFICATE)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as other_half:
            other_half.bind((address.host, address.port))


@pytest.mark.parametrize("host", ["198.51.100.200", "no such host"])
async def test_an_address_that_is_not_ours_is_said_in_a_sentence(host: str) -> None:
    with pytest.raises(UserError, match="no address"):
        await RendezvousServer.open([Address(host, 0)], CERTIFICATE)


async def test_closing_frees_the_port_at_once_and_ends_connections() -> None:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    async with (
        https() as client,
        client.ws_connect(f"https://{server.addresses[0]}/signal") as line,
    ):
        await line.send_bytes(encode_signal(Hello(version=1)))
        await line.receive_bytes(timeout=20)
        await server.close()
        assert (await line.receive(20)).type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    again = await RendezvousServer.open(server.addresses, CERTIFICATE)
    await again.close()


async def test_logs_hold_no_addresses_and_no_numbers_of_codes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with serving() as server, asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(at(server), tasks=tasks)
        nameplate = (await host.open_session(808_017)).nameplate
        assert nameplate == 808_017
        await host.close()
    ours = [
        record.getMessage() for record in caplog.records if record.name.startswith("kafila.network.rendezvous_server")
    ]
    assert ours
    assert not [line for line in ours if "127.0.0.1" in line or str(nameplate) in line]


def test_sources_are_addresses_or_the_network_of_an_ipv6_address() -> None:
    assert source_of("198.51.100.7") == source_of("::ffff:198.51.100.7") == "198.51.100.7"
    assert source_of("2001:db8:1:2:3::4") == source_of("2001:db8:1:2::9%eth0") == "2001:db8:1:2::/64"
    assert source_of("2001:db8:1:3::9") != source_of("2001:db8:1:2::9")
    assert unmapped("::1") == "::1"
    assert unmapped("no address") == "no address"


def test_the_server_loads_nothing_that_decrypts() -> None:
    code = "import sys, kafila.network.rendezvous_server; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(kafila.__file__).parents[1])},
    )
    loaded = set(done.stdout.split())
    secrets = {"kafila.protocol.invitation", "kafila.protocol.pake", "kafila.protocol.sealed"}
    assert not loaded & secrets
    assert not {name.partition(".")[0] for name in loaded} & {"aioquic", "cryptography", "spake2"}
