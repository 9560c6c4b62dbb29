"""Links between real endpoints: how they come up, what they carry, which way they go."""

import asyncio
from itertools import pairwise

import pytest

from helpers.links_lab import WITHIN_S, connect, exchange, open_lab
from kafila.domain.plan import PathKind
from kafila.network.link import LinkClosed
from kafila.network.link_channels import CREDIT_BYTES
from kafila.network.link_session import Ending
from kafila.protocol.links import Channel, LinkLost, LinkUp

pytestmark = pytest.mark.loopback


async def test_a_link_starts_on_the_relay_and_moves_to_the_direct_path() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await exchange(here, there)
        for node, peer in ((one, other), (other, one)):
            await node.until(lambda node=node, peer=peer: PathKind.DIRECT in node.paths(peer))
            assert node.paths(peer) == [PathKind.RELAYED, PathKind.DIRECT]
            assert [e.peer for e in node.events if isinstance(e, LinkUp)] == [peer.member]
        assert here.path is PathKind.DIRECT
        assert here.rtt_ms is not None
        assert here.tx_bytes == here.rx_bytes == there.tx_bytes == there.rx_bytes == len(b"....ping")


async def test_without_a_relay_members_that_can_reach_each_other_connect() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair(seated=False)
        lab.introduce(one, other)
        await exchange(*await connect(one, other))
        assert one.paths(other) == [PathKind.DIRECT]


async def test_the_accepting_side_need_not_ask_for_the_link() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        one.endpoint.open_link(other.member)
        await other.told(LinkUp)
        there = other.endpoint.link(one.member)
        assert there is not None
        await exchange(await one.endpoint.connected(other.member), there)


async def test_where_direct_is_forbidden_the_link_stays_on_the_relay() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        hidden = await lab.node(direct=False)
        lab.introduce(one, other, hidden)
        assert hidden.endpoint.candidates().addresses == ()
        here, there = await connect(one, hidden)
        await exchange(here, there)
        await exchange(*await connect(one, other))
        await one.until(lambda: PathKind.DIRECT in one.paths(other))
        assert one.paths(hidden) == [PathKind.RELAYED]
        assert here.path is there.path is PathKind.RELAYED


async def test_the_relay_sees_no_plaintext() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair(direct=False)
        lab.introduce(one, other)
        here, there = await connect(one, other)
        secret = b"what the two of them talk about, word for word"
        await here.send(Channel.CONTROL, secret)
        assert await there.receive(Channel.CONTROL) == secret
        seen = b"".join(lab.relay.seen)
        assert len(seen) > 3000
        assert not any(secret[start : start + 8] in seen for start in range(len(secret) - 8))
        assert bytes.fromhex(one.member) not in seen


async def test_a_ring_of_three_goes_round() -> None:
    async with open_lab() as lab:
        nodes = [await lab.node() for _ in range(3)]
        lab.introduce(*nodes)
        ring = [*nodes, nodes[0]]
        links = [await connect(here, there) for here, there in pairwise(ring)]
        token = b"0"
        for ours, theirs in links:
            await ours.send(Channel.DECODE, token)
            token = await theirs.receive(Channel.DECODE) + b"."
        assert token == b"0..."


async def test_large_messages_arrive_whole_and_wait_for_a_slow_reader() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        messages = [bytes([number]) * (5_000_000 + number) for number in range(5)]

        async def send_all() -> None:
            for message in messages:
                await here.send(Channel.WEIGHTS, message)

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(send_all())
            await other.poll(lambda: there.rx_bytes >= CREDIT_BYTES)
            await exchange(here, there)
            assert not sending.done()
            for message in messages:
                assert await there.receive(Channel.WEIGHTS) == message


async def test_decode_overtakes_prefill_and_prefill_overtakes_weights() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        came: list[Channel] = []

        async def receive(channel: Channel) -> None:
            await there.receive(channel)
            came.append(channel)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            for channel, size in ((Channel.WEIGHTS, 1_000_000), (Channel.PREFILL, 2_500_000), (Channel.DECODE, 10_000)):
                await here.send(channel, bytes(size))
                tasks.create_task(receive(channel))
        assert came == [Channel.DECODE, Channel.PREFILL, Channel.WEIGHTS]


async def test_the_end_of_a_link_is_told_at_once_and_what_had_come_is_kept() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await here.send(Channel.CONTROL, b"goodbye")
        await here.send(Channel.DECODE, b"this one is awaited")
        await there.receive(Channel.DECODE)
        await one.endpoint.close()
        lost = await other.told(LinkLost)
        assert lost == LinkLost(peer=one.member, reason=Ending.THEY_LEFT)
        assert await there.receive(Channel.CONTROL) == b"goodbye"
        with pytest.raises(LinkClosed, match="left"):
            await there.receive(Channel.CONTROL)
        with pytest.raises(LinkClosed, match="left"):
            await there.send(Channel.CONTROL, b"too late")
        with pytest.raises(LinkClosed):
            await here.receive(Channel.CONTROL)
        assert other.endpoint.link(one.member) is None


async def test_what_was_waited_for_is_there_though_the_link_ends() -> None:
    farewell = bytes(2 << 20)
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        async with asyncio.timeout(WITHIN_S):
            await here.send(Channel.CONTROL, farewell)
            await here.delivered(Channel.CONTROL)
            here.close()
            assert await there.receive(Channel.CONTROL) == farewell
            with pytest.raises(LinkClosed):
                await there.receive(Channel.CONTROL)
            # Over is over: nobody waits for what cannot come.
            await here.delivered(Channel.CONTROL)


async def test_a_closed_link_can_be_opened_again() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, _ = await connect(one, other)
        here.close()
        await other.told(LinkLost)
        since = len(other.events)
        here, there = await connect(one, other, since=since)
        await exchange(here, there)
        other.endpoint.close_link(one.member)
        await other.told(LinkLost, since=since)
        with pytest.raises(LinkClosed):
            await asyncio.wait_for(here.receive(Channel.CONTROL), WITHIN_S)


async def test_a_member_that_starts_anew_replaces_its_old_link() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair(seated=False)
        wire = lab.wire(other)
        lab.introduce_through(wire, one, other)
        await connect(one, other)
        # It vanishes without a word, and comes back from another port with nothing but its key.
        wire.is_cut = True
        reborn, since = await lab.node(one.identity, seated=False), len(other.events)
        lab.introduce(reborn, other)
        await exchange(*await connect(reborn, other, since=since))
        assert await other.told(LinkLost) == LinkLost(peer=one.member, reason=Ending.REPLACED)


async def test_a_member_that_dials_before_the_other_knows_it_connects_once_it_does() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        one.endpoint.set_peers({other.member: other.as_peer(lab.key(one, other))})
        one.endpoint.open_link(other.member)
        await one.poll(lambda: len(lab.relay.seen) > 3)
        assert one.endpoint.link(other.member) is None
        other.endpoint.set_peers({one.member: one.as_peer(lab.key(one, other))})
        await exchange(*await connect(one, other))


async def test_a_cancelled_send_sends_nothing_and_breaks_nothing() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await here.send(Channel.PREFILL, b"x" * 9_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await here.send(Channel.PREFILL, b"never")
        async with asyncio.timeout(WITHIN_S):
            assert len(await there.receive(Channel.PREFILL)) == 9_000_000
            await here.send(Channel.PREFILL, b"next")
            assert await there.receive(Channel.PREFILL) == b"next"
