"""Which way a link's datagrams go when ways open and close, and when a peer falls silent."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from helpers.link_echo import echo_peer
from helpers.links_lab import WITHIN_S, Lab, Node, connect, exchange, open_lab
from kafila.domain.plan import PathKind
from kafila.network.link import Link
from kafila.protocol.links import QUIET_AFTER_S, Channel, LinkHeard, LinkLost, LinkQuiet, LinkUp

pytestmark = pytest.mark.loopback

DIRECT, RELAYED = PathKind.DIRECT, PathKind.RELAYED
CHILD = Path(__file__).parents[1] / "helpers" / "link_echo.py"


async def numbers(here: Link, there: Link, upto: asyncio.Event) -> int:
    """Send counted messages until told to stop; every one must arrive, in order."""
    count = 0

    async def send() -> None:
        nonlocal count
        while not upto.is_set():
            await here.send(Channel.DECODE, count.to_bytes(4) + bytes(2000))
            count += 1
            await asyncio.sleep(0.01)
        await here.send(Channel.DECODE, b"end")

    async def receive() -> int:
        received = 0
        while (message := await there.receive(Channel.DECODE)) != b"end":
            assert int.from_bytes(message[:4]) == received
            received += 1
        return received

    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(send())
        receiving = tasks.create_task(receive())
    assert receiving.result() == count
    return count


async def test_a_direct_path_that_dies_gives_way_to_the_relay_and_nothing_is_lost() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        wire = lab.wire(other)
        lab.introduce_through(wire, one, other)
        here, there = await connect(one, other)
        await one.until(lambda: DIRECT in one.paths(other))
        await other.until(lambda: DIRECT in other.paths(one))
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            counting = tasks.create_task(numbers(here, there, stop))
            wire.is_cut = True
            await one.until(lambda: one.paths(other)[-1] is RELAYED)
            assert here.path is RELAYED
            wire.is_cut = False
            await one.until(lambda: one.paths(other)[-1] is DIRECT)
            stop.set()
        assert counting.result() > 0
        assert one.paths(other) == [RELAYED, DIRECT, RELAYED, DIRECT]
        assert wire.swallowed > 0
        assert not any(isinstance(event, LinkLost | LinkQuiet) for event in one.events)


async def test_a_link_that_is_direct_needs_the_relay_no_more() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await one.until(lambda: DIRECT in one.paths(other))
        await other.until(lambda: DIRECT in other.paths(one))
        lab.relay.is_deaf = True
        for node in (one, other):
            node.endpoint.forget_seat()
            assert node.endpoint.candidates().relay_slot is None
        for _ in range(20):
            await exchange(here, there)
        assert one.paths(other) == [RELAYED, DIRECT]


async def test_a_peer_behind_an_address_that_nobody_told_is_found_by_its_probes() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        wire = lab.wire(other)
        lab.introduce_through(wire, one, other)
        await exchange(*await connect(one, other))
        await other.until(lambda: DIRECT in other.paths(one))
        assert wire.carried > 0


async def test_peers_keep_their_link_when_they_are_told_again_with_other_addresses() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        key = lab.key(one, other)
        lab.relay.hides_where = True
        one.endpoint.set_peers({other.member: other.as_peer(key, addresses=())})
        other.endpoint.set_peers({one.member: one.as_peer(key, addresses=())})
        here, there = await connect(one, other)
        assert here.path is RELAYED
        lab.introduce(one, other)
        await one.until(lambda: DIRECT in one.paths(other))
        await exchange(here, there)
        assert len([event for event in one.events if isinstance(event, LinkUp)]) == 1


async def test_a_peer_that_stands_still_is_told_as_quiet_and_heard_again() -> None:
    async with open_lab() as lab:
        node, link, child = await _with_child(lab)
        try:
            os.kill(child.pid, signal.SIGSTOP)
            await node.told(LinkQuiet)
            await link.send(Channel.CONTROL, b"are you there?")
            os.kill(child.pid, signal.SIGCONT)
            await node.told(LinkHeard)
            async with asyncio.timeout(WITHIN_S):
                assert await link.receive(Channel.CONTROL) == b"are you there?"
            kinds = [type(event) for event in node.events if isinstance(event, LinkQuiet | LinkHeard | LinkLost)]
            assert kinds == [LinkQuiet, LinkHeard]

            await node.until(lambda: link.path is DIRECT)
            since = len(node.events)
            time.sleep(QUIET_AFTER_S + 0.5)  # noqa: ASYNC251  # This process stands still, not the other.
            await link.send(Channel.CONTROL, b"and me?")
            async with asyncio.timeout(WITHIN_S):
                assert await link.receive(Channel.CONTROL) == b"and me?"
            assert not any(isinstance(event, LinkQuiet) for event in node.events[since:])
            assert link.path is DIRECT
        finally:
            child.kill()
            await child.wait()


async def _with_child(lab: Lab) -> tuple[Node, Link, asyncio.subprocess.Process]:
    """A node here, a node in another process that echoes, and the link between them."""
    node, seat = await lab.node(), lab.relay.seat()
    assert node.seat is not None
    key = bytes(32)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        *(str(seat.relay), str(seat.slot), seat.key.hex()),
        *(node.identity.spki_sha256.hex(), key.hex(), str(node.seat.slot), str(node.endpoint.local)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert child.stdout is not None
        spki_sha256 = bytes.fromhex((await child.stdout.readline()).decode())
        peer = echo_peer(spki_sha256, key, seat.slot)
        node.endpoint.set_peers({peer.member: peer})
        node.endpoint.open_link(peer.member)
        async with asyncio.timeout(WITHIN_S):
            return node, await node.endpoint.connected(peer.member), child
    except BaseException:
        child.kill()
        await child.wait()
        raise
