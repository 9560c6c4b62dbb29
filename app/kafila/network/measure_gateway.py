"""Which local network this computer is on, as a value that says nothing to anybody else.

Two computers that appear from one public address may be in one home, or in two homes behind one
carrier. What tells them apart is their router: its address, which many homes share, and its
hardware address, which no two do. Both are in the kernel's own tables; nothing is sent.
"""

import asyncio
import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

_PURPOSE = b"kafila network 1"
_NAME_BYTES = 12
_ASK_WITHIN_S = 0.5
_UP_AND_GATEWAY = 0x3


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """The router on the way out."""

    host: str
    hardware: str
    """Its hardware address; empty as long as nothing was sent there."""


def network_name(public_host: str, gateway: Gateway | None) -> str:
    """Stands for the network behind this public address that has this router; without one, the computer itself."""
    digest = hashlib.blake2b(person=_PURPOSE, digest_size=_NAME_BYTES)
    for part in (public_host, gateway.host if gateway else "", gateway.hardware if gateway else ""):
        digest.update(len(part).to_bytes(2, "big") + part.encode())
    return digest.hexdigest()


async def find_gateway() -> Gateway | None:
    """The router, as far as this system tells."""
    if sys.platform == "linux":
        tables = Path("/proc/thread-self/net")
        try:
            return read_linux_tables((tables / "route").read_text(), (tables / "arp").read_text())
        except OSError:
            return None
    if sys.platform == "darwin":
        found = re.search(r"gateway: (\S+)", await _ask("/sbin/route", "-n", "get", "default"))
        if found is None:
            return None
        hardware = re.search(r" at ([0-9a-f:]{11,17}) ", await _ask("/usr/sbin/arp", "-n", found[1]))
        return Gateway(host=found[1], hardware="" if hardware is None else hardware[1])
    return None


def read_linux_tables(route: str, arp: str) -> Gateway | None:
    """The default route's gateway, out of the kernel's tables of routes and neighbours."""
    rows = [line.split() for line in route.splitlines()[1:]]
    # Interface, destination and gateway in the byte order of the machine, flags, …, metric, mask.
    default = [row for row in rows if len(row) >= 8 and row[1] == row[7] == "00000000"]
    usable = [row for row in default if int(row[3], 16) & _UP_AND_GATEWAY == _UP_AND_GATEWAY]
    if not usable:
        return None
    best = min(usable, key=lambda row: int(row[6]))
    host = ".".join(str(byte) for byte in int(best[2], 16).to_bytes(4, sys.byteorder))
    known = (row[3] for row in _neighbours(arp) if row[0] == host and row[5] == best[0])
    return Gateway(host=host, hardware=next(known, ""))


def _neighbours(arp: str) -> Sequence[list[str]]:
    rows = [line.split() for line in arp.splitlines()[1:]]
    return [row for row in rows if len(row) >= 6 and row[3] != "00:00:00:00:00:00"]


async def _ask(*command: str) -> str:
    """What a program of the system prints; nothing where it does not."""
    try:
        program = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_ASK_WITHIN_S):
            printed, _ = await program.communicate()
    except TimeoutError:
        program.kill()
        await program.wait()
        return ""
    return printed.decode(errors="replace")
