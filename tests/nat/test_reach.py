"""Whether a host is reached from anywhere: tried from outside, and what becomes of the session then."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from helpers.tls import https, known
from kafila.cli.compose import NetworkDoors, open_endpoint
from kafila.domain.capability import Machine
from kafila.domain.ids import SessionId
from kafila.domain.snapshot import NoPort, Reach
from kafila.engine.door import HostDoor, Sign
from kafila.engine.events import Event, Invitation, InvitationChanged
from kafila.network.connect_back import is_reached
from kafila.network.identity import DeviceIdentity
from kafila.network.port_mapping import PortLease
from kafila.protocol.invitation import Invitation as InvitationText
from kafila.protocol.invitation import parse_invitation
from kafila.protocol.links import Address
from kafila.protocol.pairing import Introduction, Offer
from nat.meeting import PORT, serving
from natlab.lab import MIDDLE, SiteSpec, open_lab
from natlab.namespaces import Computer
from natlab.port_mapper import gateway_device
from natlab.rules import Nat

HOME = SiteSpec(name="home", nat=Nat.PORT_RESTRICTED)
WITNESS, NOBODY = Address(MIDDLE[0], PORT), Address(MIDDLE[1], 9)
LET_NOBODY_IN = """
table inet firewall {
  chain input { type filter hook input priority 0; policy accept; iifname "eth0" tcp flags & (syn|ack) == syn drop; }
}
"""


@asynccontextmanager
async def listening(computer: Computer) -> AsyncGenerator[None]:
    server = await computer.do(asyncio.start_server(lambda _, writer: writer.close(), None, PORT))
    try:
        yield
    finally:
        await computer.ask(server.close)
        await computer.do(server.wait_closed())


async def asked(computer: Computer, port: int, **headers: str) -> int:
    """The status of the answer to the bare question."""

    async def ask() -> int:
        async with (
            https() as session,
            session.post(f"https://{WITNESS}/reach/{port}", headers=headers) as answer,
        ):
            return answer.status

    return await computer.do(ask())


async def test_a_rendezvous_tries_the_way_back_and_nothing_else() -> None:
    wall, away = SiteSpec(name="wall", nat=Nat.FIREWALLED), SiteSpec(name="open", nat=Nat.OPEN)
    async with open_lab(HOME, wall, away) as lab, serving(lab.middle) as server:
        outside = {name: Address(lab.outside(name), PORT) for name in ("home", "wall", "open")}

        async def reached(name: str, at: Address) -> bool | None:
            return await lab[name].do(is_reached(at, known(WITNESS)))

        async with listening(lab["home"]), listening(lab["wall"]), listening(lab["open"]):
            assert await reached("open", outside["open"]) is True
            assert await reached("open", Address(outside["open"].host, PORT + 1)) is False
            assert await reached("wall", outside["wall"]) is False
            assert await reached("home", outside["home"]) is False
            async with gateway_device(lab.routers("home")[0]):
                lease = await lab["home"].do(PortLease.ask(PORT))
                assert isinstance(lease, PortLease)
                assert await reached("home", lease.outside) is True
                await lab["home"].do(lease.close())
            # Nobody can have somebody else tried, and a web page nobody at all.
            assert await reached("home", outside["open"]) is None
            assert await asked(lab["wall"], PORT, Origin="http://example.org") == 403
            assert await asked(lab["wall"], 443) == 403
            # Six at once from one address, and of those above this is the second.
            answers = [await asked(lab["open"], PORT) for _ in range(5)]
            assert sorted(answers) == [200, 200, 200, 200, 429]
            assert await lab["open"].do(is_reached(outside["open"], known(WITNESS))) is None
        assert await reached("wall", Address(outside["wall"].host, PORT)) is False
        assert (await lab.middle.ask(server.health)).signalling.connections == 0


async def invitation_among(happened: "asyncio.Queue[Event]") -> Invitation:
    while True:
        match await happened.get():
            case InvitationChanged(invitation=Invitation() as invitation):
                return invitation
            case _:
                pass


async def invitation_of(computer: Computer, witness: Address) -> Invitation:
    """Host there with the router asked and a rendezvous in the settings, and end it again."""

    async def host() -> Invitation:
        identity = DeviceIdentity.generate()
        happened: asyncio.Queue[Event] = asyncio.Queue()
        sign = Sign(
            me=Introduction(spki_sha256=identity.spki_sha256, machine=Machine(name="Desk")),
            offer=Offer(session=SessionId(secrets.token_hex(16)), group="Friends", model="A model"),
            announce=True,
            open_port=True,
        )
        endpoint = await open_endpoint(identity, None, lambda _: None)
        door = HostDoor(NetworkDoors(), endpoint, sign, is_known=lambda _: False, happened=happened.put_nowait)
        found: list[Invitation] = []
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                try:
                    await door.open(known(witness), None, tasks)
                    await door.invite()
                    found.append(await invitation_among(happened))
                finally:
                    await door.close()
                    tasks.create_task(_end())
        except* _EndedError:
            pass
        finally:
            await endpoint.close()
        return found[0]

    return await computer.do(host())


class _EndedError(Exception):
    """Ends the tasks of a session."""


async def _end() -> None:
    raise _EndedError


def addresses(invitation: Invitation) -> tuple[Address, ...]:
    text = parse_invitation(invitation.link, NetworkDoors().words)
    assert isinstance(text, InvitationText)
    return text.at


async def test_the_session_is_where_people_elsewhere_get_in() -> None:
    async with open_lab(HOME) as lab, serving(lab.middle), gateway_device(lab.routers("home")[0]) as gateway:
        outside = Address(lab.outside("home"), PORT)

        invitation = await invitation_of(lab["home"], WITNESS)
        assert (invitation.reach, invitation.no_port) == (Reach.ANYWHERE, None)
        assert addresses(invitation) == (Address("192.168.1.10", PORT), outside)
        assert gateway.open == {}

        invitation = await invitation_of(lab["home"], NOBODY)
        assert (invitation.reach, invitation.no_port) == (Reach.PROBABLY_ANYWHERE, None)
        assert outside in addresses(invitation)

        gateway.fault = 501
        invitation = await invitation_of(lab["home"], WITNESS)
        assert (invitation.reach, invitation.no_port) == (Reach.RENDEZVOUS, NoPort.REFUSED)
        assert addresses(invitation) == (WITNESS,)

        gateway.fault = None
        lab["home"].nft(LET_NOBODY_IN)
        invitation = await invitation_of(lab["home"], WITNESS)
        assert (invitation.reach, invitation.no_port) == (Reach.RENDEZVOUS, NoPort.NOT_REACHED)
        assert addresses(invitation) == (WITNESS,)
        assert gateway.open == {}
