"""What holds for every test: no screen, no traffic beyond this machine, no hurry for hypothesis."""

import gc
import ipaddress
import os
import socket
import sys
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Where CI is set, hypothesis takes a profile of its own, which also repeats the same examples every time.
settings.register_profile("desk", deadline=None)
if "CI" not in os.environ:
    settings.load_profile("desk")

# A network of the tests' own, made by tests/natlab, leads nowhere else.
_NETWORK = Path("/proc/thread-self/ns/net")
_OUR_NETWORK = _NETWORK.readlink() if _NETWORK.exists() else None

# Where neighbours find each other by mDNS; tests do that on the loopback interface.
_MDNS = {"224.0.0.251", "ff02::fb"}


def _refuse_other_machines(event: str, arguments: tuple[object, ...]) -> None:
    if event not in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        return
    sock, address = arguments[0], arguments[1]
    if not isinstance(sock, socket.socket) or not isinstance(address, tuple):
        return
    if event == "socket.connect" and sock.type != socket.SOCK_STREAM:
        # Sends nothing: how a program asks which of its addresses leads somewhere.
        return
    host = str(cast("tuple[object, ...]", address)[0]).partition("%")[0]
    try:
        is_here = host in _MDNS or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host in {"localhost", ""}
    if not is_here and (_OUR_NETWORK is None or _NETWORK.readlink() == _OUR_NETWORK):
        message = f"a test talks to this machine only, and this one tried {host}"
        raise RuntimeError(message)


sys.addaudithook(_refuse_other_machines)


# A Qt object that is collected in a thread of another test ends the process, so cycles are collected here only.
gc.disable()
_COLLECT_ALL_EVERY = 50
_ended = 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect what a test left behind: all of it where it had a window, else now and then."""
    global _ended  # noqa: PLW0603 - pytest knows this hook as a function
    _ended += 1
    has_window = "qapp" in getattr(item, "fixturenames", ())
    gc.collect(2 if has_window or _ended % _COLLECT_ALL_EVERY == 0 else 1)
