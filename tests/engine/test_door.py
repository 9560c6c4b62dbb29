"""The door of a session, through a real rendezvous: who gets in, who does not, and when the code ends."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from helpers.sessions import NOWHERE, model_spec
from helpers.tls import CERTIFICATE, TRUST, known
from kafila.assets import asset
from kafila.domain.capability import Machine
from kafila.domain.errors import UserError
from kafila.domain.ids import MemberId, SessionId
from kafila.domain.snapshot import NoPort
from kafila.engine.door import HostDoor, Sign
from kafila.engine.events import DoorStep, Event, Guest, GuestCame, GuestGone, Invitation, InvitationChanged
from kafila.engine.knock import Entry, Knocker
from kafila.engine.ports import Announcement, Link, OpenPort
from kafila.network.identity import DeviceIdentity
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.protocol.attempts import MAX_FAILURES, MAX_OPEN_PER_REMOTE
from kafila.protocol.control import Declined, Welcome
from kafila.protocol.invitation import Invitation as InvitationText
from kafila.protocol.invitation import make_code, parse_invitation
from kafila.protocol.links import Address, Candidates, Peer, RelaySeat
from kafila.protocol.pairing import Introduction, Offer
from kafila.protocol.pake import JoinerExchange
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import SignallingEvent
from kafila.protocol.roster import Roster, RosterEntry, sign_roster
from kafila.protocol.trust import PIN_BYTES
from kafila.protocol.words import WordList

WORDS = WordList.from_text(asset("words.txt").read_text(encoding="utf-8"))
SESSION = SessionId("5e" * 16)
PATIENCE_S = 20.0


class NoEndpoint:
    """Stands in for the UDP socket, which joining only tells where its relay is."""

    def __init__(self) -> None:
        self.seat: RelaySeat | None = None

    def candidates(self) -> Candidates:
        return NOWHERE

    async def take_seat(self, seat: RelaySeat) -> bool:
        self.seat = seat
        return True

    def set_peers(self, peers: Mapping[MemberId, Peer]) -> None:
        raise AssertionError(peers)

    def open_link(self, member: MemberId) -> None:
        raise AssertionError(member)

    async def connected(self, member: MemberId) -> Link:
        raise AssertionError(member)

    async def close(self) -> None:
        pass


class OneRendezvous:
    """Doors that all lead to one real rendezvous on this computer."""

    words = WORDS

    def __init__(self, address: Address) -> None:
        self.address = address

    async def serve(self, listen: Address | None, *, loopback_only: bool) -> RendezvousServer:
        raise AssertionError((listen, loopback_only))

    async def line(
        self, at: RendezvousAt, *, tasks: asyncio.TaskGroup, on_event: Callable[[SignallingEvent], None]
    ) -> RendezvousClient:
        return await RendezvousClient.connect(at, tasks=tasks, on_event=on_event)

    async def find(self, nameplate: int) -> tuple[RendezvousAt, ...]:
        del nameplate
        return (known(self.address),)

    def lan_addresses(self, port: int) -> tuple[Address, ...]:
        del port
        return ()

    async def announce(self, nameplate: int, port: int, fingerprint: bytes) -> Announcement:
        raise AssertionError((nameplate, port, fingerprint))

    def is_outside(self, host: str) -> bool:
        del host
        return False

    async def is_reached(self, here: Address, witness: RendezvousAt) -> bool | None:
        raise AssertionError((here, witness))

    async def open_port(self, port: int) -> OpenPort | NoPort:
        raise AssertionError(port)


class Announced:
    """An announcement on a network, which others hear or do not."""

    async def update(self, nameplate: int) -> None:
        del nameplate

    async def stop(self) -> None:
        pass


class OwnRendezvous(OneRendezvous):
    """Doors with the rendezvous at the host's own; whether what it announces is heard, is given."""

    def __init__(self, server: RendezvousServer, *, heard: bool) -> None:
        super().__init__(server.addresses[0])
        self._server = server
        self._heard = heard
        self.asked: Callable[[], None] = lambda: None
        """What happens while it is looked for."""

    async def serve(self, listen: Address | None, *, loopback_only: bool) -> RendezvousServer:
        assert (listen, loopback_only) == (None, False)
        return self._server

    async def announce(self, nameplate: int, port: int, fingerprint: bytes) -> Announcement:
        del nameplate, port, fingerprint
        return Announced()

    async def find(self, nameplate: int) -> tuple[RendezvousAt, ...]:
        self.asked()
        return await super().find(nameplate) if self._heard else ()


@dataclass
class House:
    """A host's door with a code, and people who knock."""

    doors: OneRendezvous
    door: HostDoor
    host: DeviceIdentity
    tasks: asyncio.TaskGroup
    happened: asyncio.Queue[Event] = field(default_factory=asyncio.Queue[Event])

    async def invitation(self) -> Invitation:
        while True:
            event = await asyncio.wait_for(self.happened.get(), PATIENCE_S)
            if isinstance(event, InvitationChanged) and event.invitation:
                return event.invitation

    async def guest(self) -> Guest:
        while True:
            event = await asyncio.wait_for(self.happened.get(), PATIENCE_S)
            if isinstance(event, GuestCame):
                return event.guest

    def knock(self, code: str, joiner: DeviceIdentity, events: list[Event]) -> "asyncio.Task[Entry | UserError]":
        """Try to enter; how it went is the task's value."""
        knocker = Knocker(self.doors, NoEndpoint(), introduction(joiner, "Laptop"), happened=events.append)

        async def enter() -> Entry | UserError:
            try:
                return await knocker.enter(code, None, self.tasks)
            except UserError as error:
                return error
            except asyncio.CancelledError:
                assert knocker.line is not None
                await knocker.line.close()  # as the session does that it belongs to
                raise

        return self.tasks.create_task(enter())

    async def refusal(self, code: str) -> str:
        """The title of why a code does not lead in."""
        refused = await asyncio.wait_for(self.knock(code, DeviceIdentity.generate(), []), PATIENCE_S)
        assert isinstance(refused, UserError)
        return refused.problem.title

    def welcome(self, guest: Guest, *, signer: DeviceIdentity, session: SessionId = SESSION) -> Welcome:
        entries = (
            RosterEntry(member=self.host.member, spki_sha256=self.host.spki_sha256, machine=Machine(name="Desk")),
            RosterEntry(member=guest.member, spki_sha256=guest.spki_sha256, machine=guest.machine),
        )
        roster = sign_roster(private_key(signer), Roster(session=session, epoch=1, entries=entries))
        return Welcome(
            session=session,
            roster=roster,
            host=Peer(
                member=self.host.member,
                spki_sha256=self.host.spki_sha256,
                probe_key=bytes(32),
                candidates=NOWHERE,
            ),
            model=model_spec(),
            context=4096,
            concurrency=1,
        )


def private_key(identity: DeviceIdentity) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(identity.to_bytes())


def introduction(identity: DeviceIdentity, name: str) -> Introduction:
    return Introduction(spki_sha256=identity.spki_sha256, machine=Machine(name=name))


@asynccontextmanager
async def open_house() -> AsyncGenerator[House]:
    server = await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE)
    address = server.addresses[0]
    doors, host = OneRendezvous(address), DeviceIdentity.generate()
    try:
        async with asyncio.TaskGroup() as tasks:
            happened: asyncio.Queue[Event] = asyncio.Queue()
            sign = Sign(
                me=introduction(host, "Desk"),
                offer=Offer(session=SESSION, group="Friends", model="A model"),
                announce=False,
            )
            door = HostDoor(doors, NoEndpoint(), sign, is_known=lambda _: False, happened=happened.put_nowait)
            await door.open(known(address), None, tasks)
            await door.invite()
            yield House(doors, door, host, tasks, happened)
            await door.close()
            tasks.create_task(close_house())
    except* HouseClosedError:
        pass
    finally:
        await server.close()


async def close_house() -> None:
    raise HouseClosedError


class HouseClosedError(Exception):
    """Ends every task of the house."""


def other_code(code: str) -> str:
    """A whole, well-formed code of the same number with other words."""
    right = parse_invitation(code, WORDS)
    assert isinstance(right, InvitationText)
    return make_code(right.code.nameplate, secrets.token_bytes(5), WORDS).spoken()


async def test_whoever_has_the_code_is_let_in_with_the_same_phrase_on_both_sides() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        events: list[Event] = []
        entering = house.knock(invitation.code, DeviceIdentity.generate(), events)
        guest = await house.guest()
        await house.door.answer(guest, house.welcome(guest, signer=house.host))
        entry = await asyncio.wait_for(entering, PATIENCE_S)
        assert isinstance(entry, Entry)
        assert entry.host.name == "Desk"
        assert [e.phrase for e in events if isinstance(e, DoorStep) and e.phrase] == [guest.phrase]


async def test_a_computer_is_told_that_it_knocks_at_its_own_door() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        refused = await asyncio.wait_for(house.knock(invitation.link, house.host, []), PATIENCE_S)
        assert isinstance(refused, UserError)
        assert "hosts that session itself" in refused.problem.title


async def test_the_link_leads_in_as_well() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        entering = house.knock(f"Join us: {invitation.link} !", DeviceIdentity.generate(), [])
        guest = await house.guest()
        await house.door.answer(guest, Declined())
        refused = await asyncio.wait_for(entering, PATIENCE_S)
        assert isinstance(refused, UserError)
        assert "did not let this computer in" in refused.problem.title


async def test_a_wrong_code_does_not_get_in_and_the_right_one_still_does() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        assert "does not open" in await house.refusal(other_code(invitation.code))
        house.knock(invitation.code, DeviceIdentity.generate(), [])
        await house.guest()


async def test_a_whole_household_may_knock_at_the_same_moment() -> None:
    """More than may try a code from one address at a time: the others wait for their turn."""
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        household = {DeviceIdentity.generate() for _ in range(2 * MAX_OPEN_PER_REMOTE)}
        for joiner in household:
            house.knock(invitation.code, joiner, [])
        came = {(await house.guest()).member for _ in household}
        assert came == {joiner.member for joiner in household}


async def test_five_wrong_codes_end_the_code_and_the_host_has_another() -> None:
    async with open_house() as house:
        first = await house.invitation()
        assert first.code is not None
        for _ in range(MAX_FAILURES):
            assert await house.refusal(other_code(first.code))
        second = await house.invitation()
        assert second.code is not None
        assert second.code != first.code
        assert await house.refusal(first.code)
        house.knock(second.code, DeviceIdentity.generate(), [])
        await house.guest()


async def test_exchanges_begun_and_left_unconfirmed_end_the_code_too() -> None:
    async with open_house() as house:
        first = await house.invitation()
        right = parse_invitation(first.link, WORDS)
        assert isinstance(right, InvitationText)
        for _ in range(MAX_FAILURES):
            line = await RendezvousClient.connect(right.ways()[0], tasks=house.tasks)
            exchange, _ = await line.call(right.code.nameplate)
            machine = JoinerExchange(
                code=right.code,
                me=introduction(DeviceIdentity.generate(), "Nobody"),
                words=WORDS,
                entropy=secrets.token_bytes(96),
            )
            await exchange.say(machine.hello)
            await exchange.hear()  # the host's hello; the proof never follows
            await line.close()
        second = await house.invitation()
        assert second.code != first.code


async def test_a_guest_that_leaves_before_it_is_let_in_is_gone() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        entering = house.knock(invitation.code, DeviceIdentity.generate(), [])
        guest = await house.guest()
        entering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await entering
        while True:
            event = await asyncio.wait_for(house.happened.get(), PATIENCE_S)
            if isinstance(event, GuestGone):
                assert event.member == guest.member
                return


@pytest.mark.parametrize("wrong", ["signer", "session"])
async def test_a_welcome_with_a_roster_that_is_not_this_hosts_is_not_believed(wrong: str) -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        entering = house.knock(invitation.code, DeviceIdentity.generate(), [])
        guest = await house.guest()
        signer = DeviceIdentity.generate() if wrong == "signer" else house.host
        session = SessionId("ab" * 16) if wrong == "session" else SESSION
        await house.door.answer(guest, house.welcome(guest, signer=signer, session=session))
        refused = await asyncio.wait_for(entering, PATIENCE_S)
        assert isinstance(refused, UserError)
        assert "broke off" in refused.problem.title


async def test_after_the_door_is_shut_the_code_leads_nowhere() -> None:
    async with open_house() as house:
        invitation = await house.invitation()
        assert invitation.code is not None
        house.door.shut()
        assert await house.refusal(invitation.code)


@pytest.mark.parametrize("heard", [True, False])
async def test_a_code_that_nobody_nearby_would_find_is_not_shown_and_its_link_is(*, heard: bool) -> None:
    doors = OwnRendezvous(await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE), heard=heard)
    host = DeviceIdentity.generate()
    sign = Sign(
        me=introduction(host, "Desk"), offer=Offer(session=SESSION, group="Friends", model="A model"), announce=True
    )
    happened: asyncio.Queue[Event] = asyncio.Queue()
    door = HostDoor(doors, NoEndpoint(), sign, is_known=lambda _: False, happened=happened.put_nowait)
    shown: list[Invitation] = []
    try:
        async with asyncio.TaskGroup() as tasks:
            house = House(doors, door, host, tasks, happened)
            await door.open(None, None, tasks)
            await door.invite()
            shown.append(await house.invitation())
            await door.close()
            tasks.create_task(close_house())
    except* HouseClosedError:
        pass
    link = parse_invitation(shown[0].link, WORDS)
    assert isinstance(link, InvitationText)
    assert shown[0].code == (link.code.spoken() if heard else None)
    assert link.at == (doors.address,)
    assert link.pin == TRUST.fingerprint[:PIN_BYTES]


async def test_a_door_that_is_shut_while_its_code_is_looked_for_shows_none() -> None:
    doors = OwnRendezvous(await RendezvousServer.open([Address("127.0.0.1", 0)], CERTIFICATE), heard=True)
    host, happened = DeviceIdentity.generate(), asyncio.Queue[Event]()
    sign = Sign(
        me=introduction(host, "Desk"), offer=Offer(session=SESSION, group="Friends", model="A model"), announce=True
    )
    door = HostDoor(doors, NoEndpoint(), sign, is_known=lambda _: False, happened=happened.put_nowait)
    doors.asked = door.shut
    try:
        async with asyncio.TaskGroup() as tasks:
            await door.open(None, None, tasks)
            await door.invite()
            await door.close()
            tasks.create_task(close_house())
    except* HouseClosedError:
        pass
    assert happened.empty()
