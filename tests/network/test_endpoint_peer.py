"""Two peers' paths and connections together, with time as it is told. No socket, no clock."""

import heapq
from itertools import count

from kafila.domain.plan import PathKind
from kafila.network.endpoint_peer import KnownPeer
from kafila.network.identity import DeviceIdentity
from kafila.network.link import Link
from kafila.network.link_session import Ending, Session
from kafila.network.paths import PeerPath
from kafila.network.quic import LARGE_BYTES, AioquicMaker, destination_id
from kafila.protocol.edge_states import Doubtful, OverAddress, OverRelay, Route
from kafila.protocol.links import (
    LINK_IDLE_TIMEOUT_S,
    Address,
    Candidates,
    Channel,
    LinkEvent,
    LinkLost,
    LinkUp,
    PathChanged,
    Peer,
)
from kafila.protocol.path_size import SMALL_BYTES

ANNA, BELA = sorted(
    (DeviceIdentity.from_bytes(bytes([number]) * 32) for number in (1, 2)), key=lambda each: each.member
)
KEY = bytes(range(32))
SLOT = 1
RELAYED_S, DIRECT_S = 0.030, 0.010


class Side:
    """One member's view of the other, and what it sends."""

    def __init__(self, world: "World", own: DeviceIdentity, other: DeviceIdentity, address: Address) -> None:
        peer = Peer(
            member=other.member,
            spki_sha256=other.spki_sha256,
            probe_key=KEY,
            candidates=Candidates(relay_slot=SLOT, addresses=(world.address_of(other),)),
        )
        self.address = address
        self.events: list[LinkEvent] = []
        self._far = world.address_of(other)
        self._world = world
        path = PeerPath(peer, own=own.member, carrier=self, relay=True, direct=True, large_bytes=LARGE_BYTES)
        self.known = KnownPeer(
            peer,
            path,
            own=own.member,
            maker=AioquicMaker(own, idle_timeout_s=LINK_IDLE_TIMEOUT_S),
            on_event=self.events.append,
            on_wake=lambda _: None,
        )
        path.update(peer, relay=True, now=world.now)

    def whereabouts(self) -> tuple[Address, ...]:
        return ()

    def send_direct(self, datagram: bytes, address: Address) -> None:
        if not self._world.is_cut and address == self._far:
            self._world.carry(self, datagram, OverAddress(self.address), DIRECT_S)

    def send_relayed(self, datagram: bytes, slot: int) -> None:
        if not self._world.is_deaf and slot == SLOT:
            self._world.carry(self, datagram, OverRelay(), RELAYED_S)

    def link(self) -> Link:
        link = self.known.link()
        assert link is not None
        return link

    def receive(self, datagram: bytes, route: Route, now: float) -> None:
        if not datagram[0] & 0x40:
            self.known.path.receive(datagram, route, now)
            return
        session = self._session(destination_id(datagram), now)
        if session is not None:
            session.receive(datagram, now)

    def _session(self, destination: bytes, now: float) -> Session | None:
        for session in self.known.sessions:
            if destination in session.connection_ids:
                return session
        session = self.known.accept(destination, now)
        if session is not None:
            session.connection_ids.add(destination)
        return session


class World:
    """Carries datagrams between the two sides, each after its delay."""

    def __init__(self) -> None:
        self.now: float = 1000.0
        self.is_cut = False
        self.is_deaf = False
        self.largest_direct = self.largest_relayed = 1500
        """Larger datagrams vanish on these ways."""
        self.carried: list[int] = []
        """The sizes of a link's datagrams that were not too large."""
        self._numbers = count()
        self._under_way: list[tuple[float, int, Side, bytes, Route]] = []
        self.anna = Side(self, ANNA, BELA, self.address_of(ANNA))
        self.bela = Side(self, BELA, ANNA, self.address_of(BELA))

    @staticmethod
    def address_of(identity: DeviceIdentity) -> Address:
        return Address("192.0.2.1" if identity is ANNA else "192.0.2.2", 4700)

    def carry(self, sender: Side, datagram: bytes, route: Route, delay_s: float) -> None:
        if len(datagram) > (self.largest_relayed if isinstance(route, OverRelay) else self.largest_direct):
            return
        if datagram[0] & 0x40:
            self.carried.append(len(datagram))
        receiver = self.bela if sender is self.anna else self.anna
        heapq.heappush(self._under_way, (self.now + delay_s, next(self._numbers), receiver, datagram, route))

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while True:
            self._settle()
            due = [at for side in (self.anna, self.bela) if (at := side.known.next_tick()) is not None]
            due += [self._under_way[0][0]] if self._under_way else []
            next_at = min(due, default=end)
            if next_at >= end:
                break
            # A clock never stands still, and the library waits for it to pass a deadline.
            self.now = max(self.now + 1e-6, next_at)
            while self._under_way and self._under_way[0][0] <= self.now:
                _, _, receiver, datagram, route = heapq.heappop(self._under_way)
                receiver.receive(datagram, route, self.now)
            for side in (self.anna, self.bela):
                if (at := side.known.next_tick()) is not None and at <= self.now:
                    side.known.tick(self.now)
        self.now = end

    def _settle(self) -> None:
        for side in (self.anna, self.bela):
            side.known.settle(self.now)

    def connected(self) -> "World":
        for side in (self.anna, self.bela):
            side.known.open(self.now)
        self.pass_time(1.2)
        return self

    def put(self, message: bytes) -> None:
        self.anna.link().outboxes[Channel.DECODE].put(message)

    def arrived(self) -> bytes | None:
        return self.bela.link().inboxes[Channel.DECODE].take()


def paths(side: Side) -> list[PathKind]:
    return [event.path for event in side.events if isinstance(event, PathChanged)]


def seconds_to_arrive(it: World, message: bytes) -> float:
    begun_at = it.now
    it.put(message)
    while it.arrived() != message:
        it.pass_time(0.01)
        assert it.now < begun_at + 60
    return it.now - begun_at


def test_datagrams_are_large_once_the_way_was_found_to_carry_them() -> None:
    it = World().connected()
    it.carried.clear()
    seconds_to_arrive(it, bytes(200_000))
    assert max(it.carried) == LARGE_BYTES


def test_where_large_datagrams_vanish_none_are_sent() -> None:
    it = World()
    it.largest_direct = 1300
    it.connected()
    it.pass_time(60.0)
    assert seconds_to_arrive(it, bytes(200_000)) < 1
    assert max(it.carried) == SMALL_BYTES


def test_a_way_that_carries_large_datagrams_no_more_is_noticed_and_nothing_is_lost() -> None:
    it = World().connected()
    seconds_to_arrive(it, bytes(200_000))
    it.largest_direct = 1300
    assert seconds_to_arrive(it, bytes(200_000)) < 10
    it.pass_time(1.0)
    it.carried.clear()
    assert seconds_to_arrive(it, bytes(200_000)) < 1
    assert max(it.carried) == SMALL_BYTES
    it.largest_direct = 1500
    it.pass_time(30.0)
    seconds_to_arrive(it, bytes(200_000))
    assert max(it.carried) == LARGE_BYTES


def test_the_relay_is_sent_large_datagrams_only_if_it_carries_them_too() -> None:
    it = World()
    it.largest_relayed = 1300
    it.connected()
    seconds_to_arrive(it, bytes(200_000))
    it.is_cut = True
    it.put(bytes(200_000))
    it.pass_time(4.0)
    assert it.arrived() is not None
    assert paths(it.anna)[-1] is PathKind.RELAYED


def test_the_link_is_up_over_the_relay_before_a_slower_direct_path_is_found() -> None:
    it = World()
    it.is_cut = True
    it.connected()
    assert LinkUp(peer=BELA.member) in it.anna.events
    assert LinkUp(peer=ANNA.member) in it.bela.events
    assert set(paths(it.anna)) == {PathKind.RELAYED}
    it.is_cut = False
    it.pass_time(1.0)
    assert paths(it.anna)[-1] is PathKind.DIRECT


def test_a_message_that_the_dying_path_swallowed_goes_out_again_as_soon_as_there_is_doubt() -> None:
    it = World().connected()
    assert paths(it.anna)[-1] is PathKind.DIRECT
    it.is_cut = True
    it.put(b"swallowed")
    while not isinstance(it.anna.known.path.edge.state, Doubtful):
        it.pass_time(0.001)
    it.pass_time(RELAYED_S + 0.002)
    assert it.arrived() == b"swallowed"


def test_when_both_ways_are_back_what_waited_goes_out_within_a_second() -> None:
    it = World().connected()
    it.is_cut = it.is_deaf = True
    it.put(b"waits")
    it.pass_time(40.0)
    assert it.arrived() is None
    it.is_cut = it.is_deaf = False
    it.pass_time(1.1)
    assert it.arrived() == b"waits"


def test_a_dialler_that_nobody_answers_tries_anew_and_connects_when_someone_does() -> None:
    it = World()
    it.is_cut = it.is_deaf = True
    it.anna.known.open(it.now)
    it.pass_time(35.0)
    assert it.anna.known.link() is None
    assert not any(isinstance(event, LinkUp | LinkLost) for event in it.anna.events)
    it.is_cut = it.is_deaf = False
    it.pass_time(2.5)
    it.put(b"at last")
    it.pass_time(0.2)
    assert it.arrived() == b"at last"


def test_only_the_lower_id_dials_and_only_the_higher_accepts() -> None:
    it = World()
    it.bela.known.open(it.now)
    it.pass_time(5.0)
    assert it.bela.known.sessions == it.anna.known.sessions == []
    assert it.anna.known.accept(bytes(8), it.now) is None
    assert it.bela.known.accept(bytes(8), it.now) is not None


def test_a_flood_of_first_flights_keeps_one_handshake_at_a_time() -> None:
    it = World()
    accepted = [it.bela.known.accept(number.to_bytes(8), it.now) for number in range(100)]
    assert sum(session is not None for session in accepted) == 1


def test_a_closed_peer_is_dialled_no_more() -> None:
    it = World().connected()
    it.anna.link().close()
    it.pass_time(5.0)
    assert it.anna.known.sessions == []
    assert it.anna.events[-1] != LinkUp(peer=BELA.member)
    assert LinkLost(peer=BELA.member, reason=Ending.WE_LEFT) in it.anna.events
    assert LinkLost(peer=ANNA.member, reason=Ending.THEY_LEFT) in it.bela.events
