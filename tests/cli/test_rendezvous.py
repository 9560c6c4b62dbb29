"""`kafila rendezvous`, as it is typed: what it loads, what it keeps, what it tells."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.tls import CERTIFICATE, https
from kafila.cli.main import main
from kafila.cli.rendezvous import own_certificate
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.network.self_signed import kept_certificate
from kafila.protocol.links import Address
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.trust import PIN_BYTES, Pinned

pytestmark = pytest.mark.loopback


def test_it_loads_nothing_that_decrypts_or_computes() -> None:
    """Also not by way of the command line's other commands."""
    program = "import sys, kafila.cli.main, kafila.cli.rendezvous; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"aioquic", "cryptography", "spake2", "mlx", "PySide6", "numpy", "keyring", "psutil"}


def test_a_secret_that_cannot_be_kept_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "short").write_bytes(b"short")
    for place in (tmp_path / "short", tmp_path / "none" / "secret"):
        assert main(["rendezvous", "--listen", "127.0.0.1:0", "--secret-file", str(place)]) == 1
        assert str(place) in capsys.readouterr().err


def test_the_secret_and_the_certificate_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    kept: list[bytes] = []
    fingerprints: list[str] = []
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    for _ in range(2):
        command = [sys.executable, "-m", "kafila", "rendezvous", "--listen", "127.0.0.1:0", "--secret-file", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
            assert program.stdout is not None
            assert program.stdout.readline().startswith("The rendezvous listens on")
            fingerprints.append(program.stdout.readline().split()[-1].rstrip("."))
            whole_address = program.stdout.readline().split()[-1]
            program.terminate()
        at = RendezvousAt.parse(whole_address)
        assert at.trust == Pinned(bytes.fromhex(fingerprints[-1])[:PIN_BYTES])
        kept.append(file.read_bytes())
    assert kept[0] == kept[1]
    assert len(kept[0]) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (certificate,) = tmp_path.rglob("certificate.pem")
    assert stat.S_IMODE(certificate.stat().st_mode) == 0o600
    assert fingerprints[0] == fingerprints[1] == kept_certificate(certificate).fingerprint.hex()


def test_a_certificate_that_cannot_be_used_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = str(tmp_path / "none.pem")
    for options, said in (
        (("--certificate", none), "belong together"),
        (("--key", none), "belong together"),
        (("--certificate", none, "--key", none), f"{none} cannot be read"),
    ):
        assert main(["rendezvous", "--listen", "127.0.0.1:0", *options]) == 1
        assert said in capsys.readouterr().err


def test_a_certificate_that_cannot_be_kept_is_another_each_time_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(b"")
    place = tmp_path / "file" / "rendezvous" / "certificate.pem"
    assert own_certificate(place).fingerprint != own_certificate(place).fingerprint
    assert capsys.readouterr().err.count(f"The certificate cannot be kept in {place}") == 2


async def test_a_given_certificate_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    fingerprint = kept_certificate(file).fingerprint
    command = [sys.executable, "-m", "kafila", "rendezvous", "--listen", "127.0.0.1:0", "--json"]
    options = ["--certificate", str(file), "--key", str(file)]
    program = await asyncio.create_subprocess_exec(*command, *options, stdout=asyncio.subprocess.PIPE)
    assert program.stdout is not None
    async with asyncio.timeout(60):
        said = json.loads(await program.stdout.readline())
        assert said["event"] == "listening"
        assert said["fingerprint"] == fingerprint.hex()
        at = RendezvousAt(Address(said["host"], said["port"]), Pinned(fingerprint))
        async with asyncio.TaskGroup() as tasks:
            await (await RendezvousClient.connect(at, tasks=tasks)).close()
        program.terminate()
        await program.communicate()


async def test_prometheus_reads_its_numbers_and_no_names() -> None:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    try:
        url = f"https://{server.addresses[0]}/metrics"
        async with asyncio.timeout(30), https() as session, session.get(url) as answer:
            text = await answer.text()
            assert answer.content_type == "text/plain"
    finally:
        await server.close()
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert "kafila_rendezvous_sessions 0" in samples
    for line in samples:
        name, value = line.rsplit(" ", 1)
        assert name.startswith("kafila_rendezvous_")
        assert float(value) >= 0
    described = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert {line.split("{")[0].split()[0] for line in samples} <= described
