"""The commands as people type them, on computers behind routers."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from nat.meeting import CLASSES, KAFILA, PORT, serving
from natlab.lab import MIDDLE, SiteSpec, open_lab
from natlab.namespaces import Computer
from natlab.port_mapper import gateway_device, port_mapping
from natlab.rules import Nat

WITHIN_S = 60.0


def _environment(tmp_path: Path, name: str) -> dict[str, str]:
    home = tmp_path / name
    home.mkdir()
    return os.environ | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "PYTHONPATH": str(Path(__file__).parents[2] / "app"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }


async def _run(computer: Computer, environment: dict[str, str], *command: str) -> tuple[int, str]:
    program = computer.start([*KAFILA, *command], environment)
    async with asyncio.timeout(WITHIN_S):
        out, _ = await asyncio.to_thread(program.communicate)
    return program.returncode, out


@pytest.mark.parametrize("nat", [Nat.PORT_MOVED, Nat.SYMMETRIC, Nat.UDP_BLOCKED])
async def test_the_doctor_tells_a_program_what_the_router_does(nat: Nat, tmp_path: Path) -> None:
    async with open_lab(SiteSpec(name="home", nat=nat)) as lab, serving(lab.middle):
        environment = _environment(tmp_path, "home")
        at = f"{MIDDLE[0]}:{PORT}"
        code, out = await _run(lab["home"], environment, "doctor", "--rendezvous", at, "--json")
        outside = lab.outside("home")
    assert code == 0
    said = json.loads(out)
    mapping, filtering = CLASSES[nat]
    assert (said["mapping"], said["filtering"]) == (mapping.value, filtering.value)
    if nat is Nat.UDP_BLOCKED:
        assert (said["udp"], said["public_address_seen"]) == (False, None)
    else:
        assert said["public_address_seen"].startswith(f"{outside}:")


@pytest.mark.parametrize("way", ["pcp", "upnp", "none"])
async def test_the_doctor_asks_the_router_where_it_may(tmp_path: Path, way: str) -> None:
    home = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)
    async with (
        open_lab(home) as lab,
        serving(lab.middle),
        port_mapping(lab.routers("home")[0], refuses=way != "pcp") as mapper,
        gateway_device(lab.routers("home")[0]) as gateway,
    ):
        at = ("--rendezvous", f"{MIDDLE[0]}:{PORT}", "--json")
        environment = _environment(tmp_path, "home")
        gateway.fault = 501 if way == "none" else None
        _, unasked = await _run(lab["home"], environment, "doctor", *at)
        _, asked = await _run(lab["home"], environment, "doctor", *at, "--ask-router")
        assert mapper.open == gateway.open == {}
        assert bool(gateway.ports.leases_s) is (way == "upnp")
    assert json.loads(unasked)["port_mapping"] is None
    assert json.loads(asked)["port_mapping"] is (way != "none")
    assert json.loads(asked)["port_mapping_by"] == way
    assert json.loads(asked)["port_mapping_reached"] is (True if way != "none" else None)


async def test_the_doctor_says_that_nobody_answers(tmp_path: Path) -> None:
    async with open_lab(SiteSpec(name="home", nat=Nat.OPEN)) as lab:
        environment = _environment(tmp_path, "home")
        code, out = await _run(lab["home"], environment, "doctor", "--rendezvous", f"{MIDDLE[0]}:{PORT}")
    assert code == 1
    assert out.startswith("The rendezvous does not answer.")
