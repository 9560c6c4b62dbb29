"""What whoever runs the rendezvous can read of a session that has no other way than its relay."""

import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from end_to_end.contract import Answered, EdgeNews, read_events
from end_to_end.sessions import start_host
from end_to_end.tap import tapped
from helpers.processes import AT_ONCE_S, Homes

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(300)]

PROMPT = "Zanzibar harbours seventeen quiet lighthouses, and nobody may know."
TOKENS = 24
WINDOW = 12
"""Bytes in a row that do not come about by chance."""

HOST_AT = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Where the host finds the rendezvous: behind a tap as well, if this computer has an address for that."""


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(
    not has_ipv6(), reason="two members that cannot reach each other: one has IPv4 alone, one IPv6"
)


@needs_ipv6
def test_a_tap_on_the_relay_reads_nothing(homes: Homes, alone: Alone, tiny: Path) -> None:
    rendezvous = homes.new().start("rendezvous", "--listen", "127.0.0.1:0", "--json").event("listening")
    target = (rendezvous["host"], rendezvous["port"])
    with ExitStack() as stack:
        taps = [stack.enter_context(tapped(host, target)) for host in ("::1", HOST_AT) if host != target[0]]
        ask = ("--prompt", PROMPT, "--max-tokens", TOKENS)
        at = f"{HOST_AT}:{target[1]}"
        host = start_host(homes.new(), tiny, "--rendezvous", at, "--listen", "127.0.0.1:0", *ask)
        invited = host.event("code")
        at = f"[::1]:{target[1]}"
        joiner = homes.new().start("join", invited["code"], "--rendezvous", at, "--listen", "[::1]:0", "--json")
        ended = host.finish()
        assert (ended.code, joiner.finish().code) == (0, 0), ended.said
        signalled = [message for tap in taps for message in tap.messages()]
        relayed = [datagram for tap in taps for datagram in tap.datagrams()]

    events = read_events(ended.events())
    assert {event.path for event in events if isinstance(event, EdgeNews)} == {"relayed"}
    (answer,) = [event for event in events if isinstance(event, Answered)]
    assert answer.token_ids == alone.answer(tiny, PROMPT, max_tokens=TOKENS).token_ids
    # The tap was where everything passes: the call was made there, and the activations went through it.
    _, *words = invited["code"].split("-")
    assert any(b"nameplate" in message for message in signalled)
    rows = alone.hidden_states(tiny, PROMPT)
    assert sum(map(len, relayed)) > len(PROMPT) * len(rows[0])

    everything = b"\n".join((*signalled, *relayed))
    assert "-".join(words[:-1]).encode() not in everything, "the code"
    for word in words:
        assert word.encode() not in b"\n".join(signalled), "a word of the code"
    for text in (PROMPT, answer.text):
        for window in windows(text.encode()):
            assert window not in everything, "what was said"
    for row in rows:
        for window in windows(row):
            assert window not in everything, "activations"


@needs_ipv6
def test_members_wait_for_a_relay_that_was_killed(homes: Homes, tiny: Path) -> None:
    meeting_point = homes.new().start("rendezvous", "--listen", "127.0.0.1:0", "--json")
    listening = meeting_point.event("listening")
    with tapped("::1", (listening["host"], listening["port"])):
        at = f"{listening['host']}:{listening['port']}"
        host = start_host(homes.new(), tiny, "--rendezvous", at, "--listen", "127.0.0.1:0")
        code, at = host.event("code")["code"], f"[::1]:{listening['port']}"
        joiner = homes.new().start("join", code, "--rendezvous", at, "--listen", "[::1]:0", "--json")
        for process in (host, joiner):
            process.event("ready")
        meeting_point.send(signal.SIGKILL)
        for process in (host, joiner):
            process.event("lost", within_s=AT_ONCE_S)
            process.sentence("stopped answering. ", within_s=AT_ONCE_S)
        for process in (host, joiner):
            process.send(signal.SIGINT)
            assert "Traceback" not in process.finish(within_s=AT_ONCE_S).err


def windows(data: bytes) -> list[bytes]:
    return [data[start : start + WINDOW] for start in range(0, len(data) - WINDOW + 1, WINDOW)]
