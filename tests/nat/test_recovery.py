"""What happens on the way while members talk: every word arrives once, in order, on whatever path."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from helpers.tls import CERTIFICATE
from kafila.domain.plan import PathKind
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.links import Address
from nat.meeting import PORT, serving
from nat.members import Group, Member, open_group, until_paths
from natlab.internet import Line
from natlab.lab import MIDDLE, Lab, SiteSpec, open_lab
from natlab.rules import Nat

LINE = Line(delay_ms=10)
BEFORE, ENOUGH, MANY = 3, 10, 40
"""Words that have to come back before and after whatever happens; many, where each may be lost."""
WITHIN_S = 60.0

DIRECT = (Nat.PORT_MOVED, Nat.PORT_MOVED, PathKind.DIRECT)
RELAYED = (Nat.SYMMETRIC, Nat.SYMMETRIC, PathKind.RELAYED)
OVER_TCP = (Nat.UDP_BLOCKED, Nat.SYMMETRIC, PathKind.RELAYED)
edges = pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        pytest.param(*DIRECT, id="direct"),
        pytest.param(*RELAYED, id="relayed"),
        pytest.param(*OVER_TCP, id="relayed over TCP"),
    ],
)


class Talk:
    """Numbered words that go to and fro, one at a time, like the tokens of an answer."""

    def __init__(self, near: Member, far: Member) -> None:
        self.came_back = 0
        self._near = near
        self._far = far

    async def speak(self) -> None:
        while True:
            word = self.came_back.to_bytes(8, "big")
            await self._near.say(self._far, word)
            # A word that was lost would be waited for in vain; one that came twice would be the wrong one.
            assert await self._near.hear(self._far, within_s=WITHIN_S) == word
            self.came_back += 1
            await asyncio.sleep(0.02)

    async def echo(self) -> None:
        while True:
            await self._far.say(self._near, await self._far.hear(self._near, within_s=WITHIN_S))

    async def goes_on(self, words: int = ENOUGH) -> None:
        """Wait until so many further words have come back."""
        until = self.came_back + words
        async with asyncio.timeout(WITHIN_S):
            while self.came_back < until:  # noqa: ASYNC110  # the words come from another loop
                await asyncio.sleep(0.02)


@asynccontextmanager
async def talking(lab: Lab, path: PathKind) -> AsyncGenerator[tuple[Talk, Member, Member, Group]]:
    """Two members that talk, once their edge is the one expected."""
    async with open_group(lab) as group:
        near, far = await group.join("one", "other")
        await group.introduce((near, far))
        await until_paths({(near, far): path})
        assert {near.path_to(far), far.path_to(near)} == {path}
        talk = Talk(near, far)
        async with asyncio.TaskGroup() as tasks:
            chores = [tasks.create_task(talk.speak()), tasks.create_task(talk.echo())]
            await talk.goes_on(BEFORE)
            yield talk, near, far, group
            for chore in chores:
                chore.cancel()


def _sites(one: Nat, other: Nat) -> list[SiteSpec]:
    return [SiteSpec(name="one", nat=one, line=LINE), SiteSpec(name="other", nat=other, line=LINE)]


def _rebind(lab: Lab, name: str) -> None:
    """A router that was switched off and on: what is inside appears at other ports."""
    router = lab.routers(name)[0]
    router.nat = Nat.PORT_RESTRICTED if router.nat is Nat.PORT_MOVED else router.nat
    router.forget()


@pytest.mark.parametrize(
    ("one", "other", "path", "sides"),
    [
        pytest.param(*DIRECT, ("one",), id="direct, of the one that dials"),
        pytest.param(*DIRECT, ("other",), id="direct, of the one that is dialled"),
        pytest.param(*DIRECT, ("one", "other"), id="direct, of both"),
        pytest.param(*RELAYED, ("one", "other"), id="relayed"),
        pytest.param(*OVER_TCP, ("one", "other"), id="relayed over TCP"),
    ],
)
async def test_a_router_that_forgets(one: Nat, other: Nat, path: PathKind, sides: tuple[str, ...]) -> None:
    async with (
        open_lab(*_sites(one, other)) as lab,
        serving(lab.middle),
        talking(lab, path) as (talk, near, far, _),
    ):
        for name in sides:
            _rebind(lab, name)
        await talk.goes_on()
        await until_paths({(near, far): path})
        assert near.path_to(far) is path


@edges
async def test_five_seconds_without_a_network(one: Nat, other: Nat, path: PathKind) -> None:
    async with (
        open_lab(*_sites(one, other)) as lab,
        serving(lab.middle),
        talking(lab, path) as (talk, near, far, _),
    ):
        lab.change("one", is_cut=True)
        await asyncio.sleep(5)
        before = talk.came_back
        lab.change("one", is_cut=False)
        await talk.goes_on()
        assert talk.came_back >= before + ENOUGH
        await until_paths({(near, far): path})
        assert near.path_to(far) is path


@edges
async def test_a_rendezvous_that_is_killed_and_started_again(one: Nat, other: Nat, path: PathKind) -> None:
    async def open_server() -> RendezvousServer:
        return await RendezvousServer.open([Address(host, PORT) for host in MIDDLE], CERTIFICATE, secret=secret)

    secret = secrets.token_bytes(32)
    async with open_lab(*_sites(one, other)) as lab:
        server = await lab.middle.do(open_server())
        try:
            async with talking(lab, path) as (talk, *_):
                await lab.middle.do(server.close())
                await asyncio.sleep(1)
                if path is PathKind.DIRECT:
                    await talk.goes_on()
                server = await lab.middle.do(open_server())
                await talk.goes_on()
        finally:
            await lab.middle.do(server.close())


@edges
async def test_a_path_that_turns_lossy(one: Nat, other: Nat, path: PathKind) -> None:
    async with (
        open_lab(*_sites(one, other)) as lab,
        serving(lab.middle),
        talking(lab, path) as (talk, *_),
    ):
        lab.change("one", loss=0.15)
        await talk.goes_on(MANY)


async def test_a_direct_path_that_closes_gives_way_to_the_relay_and_comes_back() -> None:
    async with (
        open_lab(*_sites(Nat.PORT_RESTRICTED, Nat.PORT_RESTRICTED)) as lab,
        serving(lab.middle),
        talking(lab, PathKind.DIRECT) as (talk, near, far, _),
    ):
        for name in ("one", "other"):
            lab.routers(name)[0].set_rules(Nat.SYMMETRIC)
            lab.routers(name)[0].forget()
        await until_paths({(near, far): PathKind.RELAYED})
        await talk.goes_on()
        assert near.path_to(far) is PathKind.RELAYED
        for name in ("one", "other"):
            lab.routers(name)[0].set_rules(Nat.PORT_RESTRICTED)
            lab.routers(name)[0].forget()
        await until_paths({(near, far): PathKind.DIRECT})
        await talk.goes_on()
        assert near.path_to(far) is PathKind.DIRECT
