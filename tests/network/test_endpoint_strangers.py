"""Who may not have a link: strangers, the nameless, and members that speak as others."""

import asyncio
import random
import socket
import ssl

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted

from helpers.links_lab import LOOPBACK, WITHIN_S, Lab, Node, connect, exchange, open_lab
from kafila.domain.errors import PeerError
from kafila.network.identity import DeviceIdentity
from kafila.network.link import LinkClosed
from kafila.network.link_session import CloseCode, Ending
from kafila.network.quic import ALPN, AioquicMaker
from kafila.protocol.links import Candidates, LinkLost, LinkUp, Peer, RelaySeat
from kafila.protocol.relay_frames import (
    DeliveredFrame,
    KeepAliveFrame,
    RelayedFrame,
    decode_from_relay,
    encode_to_relay,
)

pytestmark = pytest.mark.loopback


class BareDialer:
    """A QUIC client in another's seat, with the certificate that it is given, or none."""

    def __init__(self, seat: RelaySeat, destination: int, shown: DeviceIdentity | None) -> None:
        self._seat, self._destination, self._counter = seat, destination, 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((LOOPBACK, 0))
        self._socket.settimeout(0)
        self.shaken = False
        self._quic = QuicConnection(
            configuration=QuicConfiguration(
                alpn_protocols=[ALPN],
                is_client=True,
                verify_mode=ssl.CERT_NONE,
                certificate=None if shown is None else shown.certificate,
                private_key=None if shown is None else shown.private_key,
            )
        )

    def _send(self, frame: RelayedFrame | KeepAliveFrame) -> None:
        relay = self._seat.relay
        self._socket.sendto(encode_to_relay(frame, self._seat.key), (relay.host, relay.port))

    def _count(self) -> int:
        self._counter += 1
        return self._counter

    async def dial(self) -> int:
        """Dial, and go on until the other side ends it; the code it gave."""
        loop = asyncio.get_running_loop()
        try:
            self._send(KeepAliveFrame(slot=self._seat.slot, counter=self._count()))
            self._quic.connect(("fd00::1", 1), loop.time())
            async with asyncio.timeout(WITHIN_S):
                while (code := self._ended()) is None:
                    self._exchange(loop.time())
                    await asyncio.sleep(0.002)
                return code
        finally:
            self._socket.close()

    def _exchange(self, now: float) -> None:
        try:
            while True:
                frame = decode_from_relay(self._socket.recv(2048))
                if isinstance(frame, DeliveredFrame) and frame.payload[0] & 0x40:
                    self._quic.receive_datagram(frame.payload, ("fd00::1", 1), now)
        except BlockingIOError:
            pass
        if (due := self._quic.get_timer()) is not None and due <= now:
            self._quic.handle_timer(now)
        for datagram, _ in self._quic.datagrams_to_send(now):
            self._send(
                RelayedFrame(
                    source=self._seat.slot,
                    counter=self._count(),
                    destination=self._destination,
                    payload=datagram,
                )
            )

    def _ended(self) -> int | None:
        while (event := self._quic.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                self.shaken = True
            if isinstance(event, ConnectionTerminated):
                return event.error_code
        return None


class Expecting:
    """A member that waits to be dialled by another one, which is not there; its seat is taken by whoever comes."""

    def __init__(self, waiting: Node, absent: DeviceIdentity, seat: RelaySeat, *, asks: bool = True) -> None:
        assert waiting.seat is not None
        self.waiting, self.absent, self.seat, self.slot = waiting, absent, seat, waiting.seat.slot
        self.key = bytes(range(32))
        waiting.endpoint.set_peers({absent.member: self.peer(absent, seat.slot)})
        if asks:
            waiting.endpoint.open_link(absent.member)

    def peer(self, identity: DeviceIdentity, slot: int | None) -> Peer:
        return Peer(
            member=identity.member,
            spki_sha256=identity.spki_sha256,
            probe_key=self.key,
            candidates=Candidates(relay_slot=slot, addresses=()),
        )

    def let_in_nobody(self) -> bool:
        kinds = {type(event) for event in self.waiting.events}
        return LinkUp not in kinds and self.waiting.endpoint.link(self.absent.member) is None


async def expecting(lab: Lab, absent: DeviceIdentity, waiting: DeviceIdentity) -> Expecting:
    return Expecting(await lab.node(waiting), absent, lab.relay.seat())


def identities(count: int) -> list[DeviceIdentity]:
    """New devices; each one dials those after it."""
    return sorted((DeviceIdentity.generate() for _ in range(count)), key=lambda each: each.member)


async def test_the_expected_member_is_let_in() -> None:
    """The other tests' dialler, with the right certificate: it is the certificate that decides."""
    async with open_lab() as lab:
        member, waiting = identities(2)
        it = await expecting(lab, member, waiting)
        dialler = BareDialer(it.seat, it.slot, member)
        async with asyncio.TaskGroup() as tasks:
            dialling = tasks.create_task(dialler.dial())
            # A bare dialler says no hello, so its handshake is all that there is to see.
            await it.waiting.poll(lambda: dialler.shaken)
            it.waiting.endpoint.set_peers({})
        assert dialling.result() == CloseCode.NOT_A_PEER


async def test_a_stranger_in_a_members_seat_is_refused() -> None:
    async with open_lab() as lab:
        member, waiting = identities(2)
        it = await expecting(lab, member, waiting)
        dialler = BareDialer(it.seat, it.slot, DeviceIdentity.generate())
        assert await dialler.dial() == CloseCode.WRONG_KEY
        assert it.let_in_nobody()


async def test_whoever_shows_no_certificate_is_refused() -> None:
    async with open_lab() as lab:
        member, waiting = identities(2)
        it = await expecting(lab, member, waiting)
        assert await BareDialer(it.seat, it.slot, None).dial() == CloseCode.WRONG_KEY
        assert it.let_in_nobody()


async def test_a_first_flight_from_an_unknown_address_leaves_no_trace() -> None:
    async with open_lab() as lab:
        member, waiting = identities(2)
        node = await lab.node(waiting)
        it = Expecting(node, member, lab.relay.seat(), asks=False)
        _send_first_flight(member, node)
        other = await lab.node()
        key = lab.key(node, other)
        expected = it.peer(member, it.seat.slot)
        node.endpoint.set_peers({member.member: expected, other.member: other.as_peer(key)})
        other.endpoint.set_peers({waiting.member: node.as_peer(key)})
        _send_first_flight(member, node)
        await exchange(*await connect(other, node))
        # An answer would go by the only way that is known to that member, whose seat is empty.
        assert lab.relay.dropped == {}


def _send_first_flight(member: DeviceIdentity, to: Node) -> None:
    core = AioquicMaker(member, idle_timeout_s=60).dial(to.member, 1.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unknown:
        for datagram in core.datagrams(1.0):
            unknown.sendto(datagram, (LOOPBACK, to.endpoint.local.port))


async def test_a_member_that_dials_as_another_is_refused() -> None:
    async with open_lab() as lab:
        impostor_identity, absent, waiting = identities(3)
        it = await expecting(lab, absent, waiting)
        peers = {identity.member: it.peer(identity, None) for identity in (impostor_identity,)}
        it.waiting.endpoint.set_peers({**peers, absent.member: it.peer(absent, it.seat.slot)})
        # A member in good standing, which has got hold of the other's seat and probe key.
        impostor = await lab.node(impostor_identity, seat=it.seat)
        impostor.endpoint.set_peers({waiting.member: it.peer(waiting, it.slot)})
        impostor.endpoint.open_link(waiting.member)
        lost = await impostor.told(LinkLost)
        assert lost == LinkLost(peer=waiting.member, reason=Ending.WRONG_KEY_OURS)
        assert it.let_in_nobody()
        assert it.waiting.endpoint.link(impostor.member) is None


async def test_a_member_that_answers_as_another_is_refused() -> None:
    async with open_lab() as lab:
        dialling, absent, impostor_identity = identities(3)
        node, seat = await lab.node(dialling), lab.relay.seat()
        it = Expecting(node, absent, seat)
        impostor = await lab.node(impostor_identity, seat=seat)
        impostor.endpoint.set_peers({dialling.member: it.peer(dialling, it.slot)})
        with pytest.raises(LinkClosed, match="not the one"):
            await asyncio.wait_for(node.endpoint.connected(absent.member), WITHIN_S)
        lost = await node.told(LinkLost)
        assert lost == LinkLost(peer=absent.member, reason=Ending.WRONG_KEY)
        assert impostor.endpoint.link(dialling.member) is None
        assert not any(isinstance(event, LinkUp) for event in (*node.events, *impostor.events))


async def test_a_roster_that_gives_a_member_another_key_is_refused() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        peer = other.as_peer(bytes(32))
        wrong = Peer(
            member=peer.member,
            spki_sha256=bytes(32),
            probe_key=peer.probe_key,
            candidates=peer.candidates,
        )
        with pytest.raises(PeerError):
            one.endpoint.set_peers({other.member: wrong})


async def test_a_peer_that_leaves_the_roster_loses_its_link_and_the_others_keep_theirs() -> None:
    async with open_lab() as lab:
        one, gone = await lab.pair()
        kept = await lab.node()
        lab.introduce(one, gone, kept)
        here, there = await connect(one, kept)
        await connect(one, gone)
        lab.introduce(one, kept)
        assert await one.told(LinkLost) == LinkLost(peer=gone.member, reason=Ending.REMOVED)
        assert await gone.told(LinkLost) == LinkLost(peer=one.member, reason=Ending.REMOVED_US)
        await exchange(here, there)
        assert one.endpoint.link(gone.member) is None
        with pytest.raises(LinkClosed):
            await one.endpoint.connected(gone.member)
        with pytest.raises(KeyError):
            one.endpoint.open_link(gone.member)
        assert not any(isinstance(event, LinkLost) for event in kept.events)


async def test_nothing_that_strangers_send_leaves_a_trace_or_does_harm() -> None:
    async with open_lab() as lab:
        one, other = await lab.pair()
        lab.introduce(one, other)
        here, there = await connect(one, other)
        await exchange(here, there)
        genuine = [data[9:] for data in lab.relay.seen if data[0] == 0x0B] + lab.relay.seen
        chance = random.Random(11)  # noqa: S311
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for _ in range(1500):
                stranger.sendto(_garbled(chance, genuine), (LOOPBACK, one.endpoint.local.port))
                await asyncio.sleep(0)
        await exchange(here, there)
        events = [event for event in one.events if isinstance(event, LinkUp | LinkLost)]
        assert events == [LinkUp(peer=other.member)]


def _garbled(chance: random.Random, genuine: list[bytes]) -> bytes:
    """Something that looks like a datagram for an endpoint."""
    data = bytearray(chance.choice(genuine))
    match chance.randrange(5):
        case 0:
            return bytes(data)
        case 1:
            return chance.randbytes(chance.randrange(1, 1300))
        case 2:
            return bytes(data[: chance.randrange(len(data))])
        case 3:
            return bytes([chance.randrange(256)]) + bytes(data[1:])
        case _:
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            return bytes(data)
