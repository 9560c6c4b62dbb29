"""What happens on the way while members talk: every word arrives once, in order, on whatever path."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from helpers.tls import CERTIFICATE
from kafila.domain.plan import PathKind
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from nat.meeting import PORT, serving
from nat.members import Member, differing, open_group, until_paths
from natlab.internet import Line
from natlab.lab import MIDDLE, Lab, SiteSpec, open_lab
from natlab.rules import Nat

LINE = Line(delay_ms=10)
BEFORE, ENOUGH, MANY = 3, 10, 40
"""Words that have to come back before and after whatever happens; many, where each may be lost."""
WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two sites, called after it, and the path between them."""

    name: str
    one: Nat
    other: Nat
    path: PathKind

    @property
    def sites(self) -> tuple[str, str]:
        return f"{self.name}, one", f"{self.name}, other"


DIRECT = Pair(name="direct", one=Nat.PORT_MOVED, other=Nat.PORT_MOVED, path=PathKind.DIRECT)
RELAYED = Pair(name="relayed", one=Nat.SYMMETRIC, other=Nat.SYMMETRIC, path=PathKind.RELAYED)
OVER_TCP = Pair(name="over TCP", one=Nat.UDP_BLOCKED, other=Nat.SYMMETRIC, path=PathKind.RELAYED)
# What befalls all at the same time takes the time of one.
ALL = (DIRECT, RELAYED, OVER_TCP)


class Talk:
    """Numbered words that go to and fro, one at a time, like the tokens of an answer."""

    def __init__(self, pair: Pair, near: Member, far: Member) -> None:
        self.pair = pair
        self.near = near
        self.far = far
        self._came_back = 0

    async def speak(self) -> None:
        while True:
            word = self._came_back.to_bytes(8, "big")
            await self.near.say(self.far, word)
            # A word that was lost would be waited for in vain; one that came twice would be the wrong one.
            assert await self.near.hear(self.far, within_s=WITHIN_S) == word
            self._came_back += 1
            await asyncio.sleep(0.02)

    async def echo(self) -> None:
        while True:
            await self.far.say(self.near, await self.far.hear(self.near, within_s=WITHIN_S))

    async def goes_on(self, words: int) -> None:
        """Wait until so many further words have come back."""
        until = self._came_back + words
        async with asyncio.timeout(WITHIN_S):
            while self._came_back < until:  # noqa: ASYNC110  # the words come from another loop
                await asyncio.sleep(0.02)


async def all_go_on(talks: Sequence[Talk], words: int = ENOUGH) -> None:
    async with asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(talk.goes_on(words))


async def check_paths(talks: Sequence[Talk]) -> None:
    """That every pair is on the path that its routers allow, or soon again."""
    expected = {(talk.near, talk.far): talk.pair.path for talk in talks}
    await until_paths(expected)
    assert not differing(expected)


def sites_of(*pairs: Pair) -> list[SiteSpec]:
    return [
        SiteSpec(name=name, nat=nat, line=LINE)
        for pair in pairs
        for name, nat in zip(pair.sites, (pair.one, pair.other), strict=True)
    ]


@asynccontextmanager
async def talking(lab: Lab, *pairs: Pair) -> AsyncGenerator[list[Talk]]:
    """Pairs that talk, once their paths are those expected."""
    async with open_group(lab) as group:
        members = await group.join(*(site for pair in pairs for site in pair.sites))
        talks = [
            Talk(pair, *both) for pair, both in zip(pairs, zip(members[::2], members[1::2], strict=True), strict=True)
        ]
        await group.introduce(*((talk.near, talk.far) for talk in talks))
        await check_paths(talks)
        async with asyncio.TaskGroup() as tasks:
            chores = [tasks.create_task(work) for talk in talks for work in (talk.speak(), talk.echo())]
            await all_go_on(talks, BEFORE)
            yield talks
            for chore in chores:
                chore.cancel()


def rebind(lab: Lab, site: str) -> None:
    """A router that was switched off and on: what is inside appears at other ports."""
    router = lab.routers(site)[0]
    router.nat = Nat.PORT_RESTRICTED if router.nat is Nat.PORT_MOVED else router.nat
    router.forget()


async def test_routers_that_forget() -> None:
    """Of the one that dials, of the one that is dialled, of both; and of both where they need the relay."""
    one = Pair(name="the one's", one=Nat.PORT_MOVED, other=Nat.PORT_MOVED, path=PathKind.DIRECT)
    other = Pair(name="the other's", one=Nat.PORT_MOVED, other=Nat.PORT_MOVED, path=PathKind.DIRECT)
    pairs = (one, other, *ALL)
    async with open_lab(*sites_of(*pairs)) as lab, serving(lab.middle), talking(lab, *pairs) as talks:
        for site in (one.sites[0], other.sites[1], *(site for pair in ALL for site in pair.sites)):
            rebind(lab, site)
        await all_go_on(talks)
        await check_paths(talks)


async def test_five_seconds_without_a_network() -> None:
    async with open_lab(*sites_of(*ALL)) as lab, serving(lab.middle), talking(lab, *ALL) as talks:
        for pair in ALL:
            lab.change(pair.sites[0], is_cut=True)
        await asyncio.sleep(5)
        for pair in ALL:
            lab.change(pair.sites[0], is_cut=False)
        await all_go_on(talks)
        await check_paths(talks)


async def test_a_rendezvous_that_is_killed_and_started_again() -> None:
    async def open_server() -> RendezvousServer:
        return await RendezvousServer.open([Address(host, PORT) for host in MIDDLE], CERTIFICATE, secret=secret)

    secret = secrets.token_bytes(32)
    async with open_lab(*sites_of(*ALL)) as lab:
        server = await lab.middle.do(open_server())
        try:
            async with talking(lab, *ALL) as talks:
                await lab.middle.do(server.close())
                await asyncio.sleep(1)
                await all_go_on([talk for talk in talks if talk.pair is DIRECT])
                server = await lab.middle.do(open_server())
                await all_go_on(talks)
        finally:
            await lab.middle.do(server.close())


async def test_paths_that_turn_lossy() -> None:
    async with open_lab(*sites_of(*ALL)) as lab, serving(lab.middle), talking(lab, *ALL) as talks:
        for pair in ALL:
            lab.change(pair.sites[0], loss=0.15)
        await all_go_on(talks, MANY)


async def test_a_direct_path_that_closes_gives_way_to_the_relay_and_comes_back() -> None:
    closing = Pair(name="closing", one=Nat.PORT_RESTRICTED, other=Nat.PORT_RESTRICTED, path=PathKind.DIRECT)
    async with open_lab(*sites_of(closing)) as lab, serving(lab.middle), talking(lab, closing) as talks:
        (talk,) = talks
        for nat, path in ((Nat.SYMMETRIC, PathKind.RELAYED), (Nat.PORT_RESTRICTED, PathKind.DIRECT)):
            for site in closing.sites:
                lab.routers(site)[0].set_rules(nat)
                lab.routers(site)[0].forget()
            await until_paths({(talk.near, talk.far): path})
            await talk.goes_on(ENOUGH)
            assert talk.near.path_to(talk.far) is path
