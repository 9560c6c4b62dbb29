"""TLS between clients and a rendezvous, on real sockets: which certificate counts, and what is said otherwise."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from helpers.cutting_proxy import cutting_proxy
from helpers.tls import CERTIFICATE, TRUST, at, https, known
from kafila.domain.errors import UserError
from kafila.network.relay_stream import RelayStream
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import Certificate, RendezvousServer
from kafila.network.self_signed import fresh_certificate, kept_certificate
from kafila.protocol.links import Address, RelaySeat
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import PIN_BYTES, SERVER_NAME, Authority, FirstUse, Pinned, Trust

pytestmark = pytest.mark.loopback

WITHIN_S = 20.0
TODAY = datetime.datetime.now(datetime.UTC)
A_DAY = datetime.timedelta(days=1)


class Issuer:
    """An authority that this computer trusts while a test lasts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "An authority")])
        own = self._describe(self._name, self._key.public_key(), TODAY + 9 * A_DAY)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(own.sign(self._key, SHA256()).public_bytes(Encoding.PEM))

    def _describe(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        issued = builder.serial_number(x509.random_serial_number()).not_valid_before(TODAY - 9 * A_DAY)
        return issued.not_valid_after(until)

    def certificate(self, name: str, until: datetime.datetime = TODAY + A_DAY) -> Certificate:
        """A server's certificate for a name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._describe(subject, key.public_key(), until)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        files = self._folder / "server.pem", self._folder / "server.key"
        files[0].write_bytes(builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM))
        files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return Certificate.load(*files)


@pytest.fixture
def issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Issuer:
    made = Issuer(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


@asynccontextmanager
async def serving(certificate: Certificate = CERTIFICATE) -> AsyncGenerator[RendezvousServer]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], certificate)
    try:
        yield server
    finally:
        await server.close()


async def visit(where: RendezvousAt) -> Trust:
    """Which certificate counts after a visit. Raises UserError."""
    try:
        async with asyncio.TaskGroup() as tasks:
            client = await RendezvousClient.connect(where, tasks=tasks)
            await client.close()
    except* UserError as group:
        raise group.exceptions[0] from None
    return client.trust


def by_name(server: RendezvousServer, trust: Trust = FirstUse()) -> RendezvousAt:  # noqa: B008 - it is a value
    return RendezvousAt(Address("localhost", server.addresses[0].port), trust)


async def refusal(where: RendezvousAt) -> str:
    with pytest.raises(UserError) as refused:
        await visit(where)
    return refused.value.problem.sentence()


async def test_a_pinned_certificate_counts_whole_or_by_its_beginning() -> None:
    async with serving() as server:
        assert await visit(at(server)) == TRUST
        beginning = Pinned(CERTIFICATE.fingerprint[:PIN_BYTES])
        assert await visit(RendezvousAt(server.addresses[0], beginning)) == beginning


async def test_another_certificate_than_the_pinned_one_is_refused_before_anything_is_said() -> None:
    async with serving(fresh_certificate()) as server:
        assert "is not the rendezvous that was meant" in await refusal(at(server))
        remembered = Pinned(CERTIFICATE.fingerprint, remembered=True)
        said = await refusal(RendezvousAt(server.addresses[0], remembered))
        assert "another certificate than before" in said
        assert "HOST:PORT#FINGERPRINT" in said
        assert server.health().signalling.connections == 0


async def test_a_stranger_s_own_certificate_is_taken_at_first_and_then_known() -> None:
    async with serving() as server:
        for where in (RendezvousAt(server.addresses[0]), by_name(server)):
            assert await visit(where) == TRUST


async def test_a_certificate_that_an_authority_vouches_for(issuer: Issuer) -> None:
    async with serving(issuer.certificate("localhost")) as server:
        for trust in (FirstUse(), Authority("localhost")):
            assert await visit(by_name(server, trust)) == Authority("localhost")
        # It may be pinned all the same, by whoever wants to be told of its every renewal.
        assert await visit(RendezvousAt(server.addresses[0], Pinned(server.fingerprint)))


@pytest.mark.parametrize("trust", [FirstUse(), Authority("localhost")])
async def test_vouched_for_but_not_right(issuer: Issuer, trust: Trust) -> None:
    async with serving(issuer.certificate("localhost", TODAY - A_DAY)) as server:
        assert "has expired" in await refusal(by_name(server, trust))
    async with serving(issuer.certificate("elsewhere.example.org")) as server:
        assert "is for another name" in await refusal(by_name(server, trust))


async def test_nobody_vouches_for_it(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = issuer.certificate("localhost")
    monkeypatch.delenv("SSL_CERT_FILE")
    async with serving(certificate) as server:
        assert "Nobody whom this computer trusts vouches" in await refusal(by_name(server))
    # A link without a fingerprint was made where an authority vouched: no other will do.
    async with serving() as server:
        assert "Nobody whom this computer trusts vouches" in await refusal(by_name(server, Authority("localhost")))


PLAIN = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
OLDER_TLS = bytes.fromhex("15 0301 0002 02 46")
"""The alert of a server that speaks no version of TLS that it was offered."""


@pytest.mark.parametrize("trust", [FirstUse(), TRUST, Authority("localhost")])
@pytest.mark.parametrize("answer", [PLAIN, OLDER_TLS])
async def test_a_server_without_tls_1_3_is_refused(answer: bytes, trust: Trust) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    said = await refusal(RendezvousAt(Address(*server.sockets[0].getsockname()), trust))
    assert "no Kafila rendezvous, or a very old one" in said
    server.close()
    await server.wait_closed()


async def test_a_client_of_an_older_tls_is_refused() -> None:
    async with serving() as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.addresses[0].port, ssl=context)


async def test_a_plain_client_reads_that_tls_is_needed() -> None:
    async with serving() as server, aiohttp.ClientSession() as plain:
        for path in ("/signal", "/relay", "/healthz"):
            async with plain.get(f"http://{server.addresses[0]}{path}") as answer:
                assert answer.status == 400
                assert "use https" in await answer.text()
        async with https() as session, session.get(f"https://{server.addresses[0]}/healthz") as answer:
            assert answer.status == 200


async def test_the_name_on_the_wire_is_one_constant() -> None:
    heard = list[bytes]()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for host in ("127.0.0.1", "localhost"):
        await refusal(RendezvousAt(Address(host, port), TRUST))
    server.close()
    await server.wait_closed()
    assert len(heard) == 2
    for hello in heard:
        assert SERVER_NAME.encode() in hello
        assert b"localhost" not in hello


async def test_the_relay_over_tcp_shows_the_same_certificate_or_is_lost() -> None:
    async with serving() as server:
        for trust, is_open in ((TRUST, True), (Pinned(bytes(32)), False)):
            seat = RelaySeat(relay=server.addresses[0], slot=1, key=bytes(32), trust=trust)
            opened, lost = asyncio.Event(), asyncio.Event()
            stream = RelayStream(seat, on_open=opened.set, on_frame=lambda _: None, on_lost=lost.set)
            async with asyncio.timeout(WITHIN_S):
                await (opened if is_open else lost).wait()
            await stream.close()
            assert opened.is_set() == is_open


async def test_a_seat_is_given_with_the_certificate_that_was_shown() -> None:
    async with serving() as server, asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(RendezvousAt(server.addresses[0]), tasks=tasks)
        opened = await host.open_session()
        assert opened.seat.trust == TRUST
        await host.close()


def test_a_kept_certificate_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "rendezvous" / "certificate.pem"
    first, second = kept_certificate(file), kept_certificate(file)
    assert first.fingerprint == second.fingerprint
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in file.parent.iterdir()] == ["certificate.pem"]
    assert fresh_certificate().fingerprint != first.fingerprint


def test_files_that_are_no_certificate_are_refused_in_words(tmp_path: Path) -> None:
    kept_certificate(tmp_path / "one.pem")
    kept_certificate(tmp_path / "two.pem")
    (tmp_path / "junk.pem").write_bytes(bytes(100))
    key = ec.generate_private_key(ec.SECP256R1())
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password"))
    (tmp_path / "locked.pem").write_bytes(locked)
    for pair in (("one.pem", "two.pem"), ("junk.pem", "one.pem"), ("one.pem", "locked.pem"), ("none.pem", "one.pem")):
        with pytest.raises(UserError) as refused:
            Certificate.load(*(tmp_path / name for name in pair))
        assert "PEM files" in refused.value.problem.advice


async def test_nobody_on_the_way_reads_keys_or_what_is_said() -> None:
    async with serving() as server, cutting_proxy(server.addresses[0]) as wire, asyncio.TaskGroup() as tasks:
        host = await RendezvousClient.connect(RendezvousAt(wire.address), tasks=tasks)
        guest = await RendezvousClient.connect(known(wire.address), tasks=tasks)
        opened = await host.open_session()
        exchange, seat = await guest.call(opened.nameplate)
        await exchange.say(b"a sealed message")
        incoming = await anext(host.incoming())
        assert await incoming.hear() == b"a sealed message"
        await guest.close()
        await host.close()
        assert len(wire.carried) > 1000
        for secret in (opened.seat.key, seat.key, b"a sealed message", b"nameplate", b"/signal"):
            assert secret not in wire.carried


async def test_a_client_comes_back_to_the_same_certificate_only() -> None:
    async with serving() as first, cutting_proxy(first.addresses[0]) as wire, asyncio.TaskGroup() as tasks:
        client = await RendezvousClient.connect(RendezvousAt(wire.address), tasks=tasks)
        async with serving(fresh_certificate()) as another:
            wire.target = another.addresses[0]
            wire.cut()
            async with asyncio.timeout(WITHIN_S):
                while not another.health().connections_dropped.get("no handshake"):  # noqa: ASYNC110 - it tells nobody
                    await asyncio.sleep(0.01)
            assert another.health().signalling.connections == 0
        wire.target = first.addresses[0]
        assert await client.open_session()
        await client.close()
