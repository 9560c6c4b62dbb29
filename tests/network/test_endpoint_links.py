"""Links between real endpoints: how they come up, what they carry, which way they go."""

import asyncio

from helpers.links_lab import WITHIN_S, Lab, Node, open_lab

from kafila.domain.plan import PathKind
from kafila.network.link import Link
from kafila.protocol.links import Channel, LinkUp


async def connect(one: Node, other: Node) -> tuple[Link, Link]:
    for node, peer in ((one, other), (other, one)):
        node.endpoint.open_link(peer.member)
    async with asyncio.timeout(WITHIN_S):
        return (
            await one.endpoint.connected(other.member),
            await other.endpoint.connected(one.member),
        )


async def exchange(here: Link, there: Link) -> None:
    """A word in either direction."""
    async with asyncio.timeout(WITHIN_S):
        await here.send(Channel.DECODE, b"ping")
        assert await there.receive(Channel.DECODE) == b"ping"
        await there.send(Channel.DECODE, b"pong")
        assert await here.receive(Channel.DECODE) == b"pong"


async def test_a_link_starts_on_the_relay_and_moves_to_the_direct_path() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await exchange(here, there)
        await one.until(lambda: PathKind.DIRECT in one.paths(other))
        assert one.paths(other) == [PathKind.RELAYED, PathKind.DIRECT]
        assert here.path is PathKind.DIRECT
        assert here.rtt_ms is not None
        assert [event.peer for event in one.events if isinstance(event, LinkUp)] == [other.member]
