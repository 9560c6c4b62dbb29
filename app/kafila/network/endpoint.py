"""A member's end of all its links: one UDP socket for probes, relay frames and QUIC.

What arrives is read in batches, sorted by its first byte, and taken in; then every peer that it
concerned settles, which sends what is due. One timer serves all deadlines. Nothing here has a task
of its own, and nothing waits.

A datagram from an unknown source leaves no trace. Only a roster member may open a connection, from
its own seat at the relay or from an address that has answered an authenticated probe.
"""

import asyncio
from collections.abc import Callable, Mapping

from kafila.domain.errors import PeerError, UserError
from kafila.domain.ids import MemberId
from kafila.network.endpoint_addresses import own_addresses
from kafila.network.endpoint_peer import KnownPeer
from kafila.network.endpoint_relay import RelaySide
from kafila.network.endpoint_socket import UdpSocket
from kafila.network.identity import DeviceIdentity, member_id
from kafila.network.link import Link, LinkClosed
from kafila.network.link_session import CloseCode, Ending, Session
from kafila.network.paths import PeerPath
from kafila.network.quic import TRANSPORT, AioquicMaker, Transport, destination_id, opens_connection
from kafila.protocol.edge import MAX_CANDIDATES
from kafila.protocol.edge_states import OverAddress, OverRelay, Route
from kafila.protocol.links import (
    LINK_IDLE_TIMEOUT_S,
    Address,
    Candidates,
    LinkEvent,
    Peer,
    RelaySeat,
)
from kafila.protocol.probes import sender_tag
from kafila.protocol.relay_frames import DELIVERED, SEATED, DeliveredFrame

FAREWELL_GAP_S = 0.03
FAREWELLS = 2
MAX_BATCHES_BEFORE_TICK = 64


class Endpoint:
    """All links of this member. Made by `open`, ended by `close`."""

    def __init__(
        self,
        identity: DeviceIdentity,
        udp: UdpSocket,
        on_event: Callable[[LinkEvent], None],
        *,
        direct: bool,
        transport: Transport,
    ) -> None:
        """For `open`."""
        self._own = identity.member
        self._udp = udp
        self._on_event = on_event
        self._direct = direct
        self._loop = asyncio.get_running_loop()
        self._large_bytes = transport.datagram_bytes
        self._maker = AioquicMaker(identity, idle_timeout_s=LINK_IDLE_TIMEOUT_S, transport=transport)
        self._peers: dict[MemberId, KnownPeer] = {}
        self._leaving: list[KnownPeer] = []
        self._by_slot: dict[int, KnownPeer] = {}
        self._by_tag: dict[bytes, KnownPeer] = {}
        self._by_connection: dict[bytes, tuple[KnownPeer, Session]] = {}
        self._relay = RelaySide(udp, on_change=self._on_relay_change, on_delivered=self._take_in_streamed)
        self._unsettled: set[KnownPeer] = set()
        self._settling: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @classmethod
    async def open(
        cls,
        identity: DeviceIdentity,
        listen: Address | None,
        on_event: Callable[[LinkEvent], None],
        *,
        direct: bool = True,
        transport: Transport = TRANSPORT,
    ) -> "Endpoint":
        """Open the socket, at `listen` or at a free port everywhere. Raises UserError.

        `on_event` is called from the event loop, never from within a call to the endpoint.
        Without `direct`, all links stay on the relay and no address of this computer is told.
        """
        udp = UdpSocket.bind(listen)
        endpoint = cls(identity, udp, on_event, direct=direct, transport=transport)
        try:
            own_addresses(udp)
        except UserError:
            udp.close()
            raise
        udp.start(endpoint._read)
        return endpoint

    @property
    def member(self) -> MemberId:
        """This device's name in the group."""
        return self._own

    @property
    def local(self) -> Address:
        """What the socket is bound to."""
        return self._udp.local

    def candidates(self) -> Candidates:
        """Where others may reach this member, as far as is known now."""
        observed = () if self._relay.observed is None else (self._relay.observed,)
        found = dict.fromkeys((*own_addresses(self._udp), *observed)) if self._direct else ()
        return Candidates(relay_slot=self._relay.slot, addresses=tuple(found)[:MAX_CANDIDATES])

    # The seat at the relay

    async def take_seat(self, seat: RelaySeat) -> bool:
        """Take a seat at the relay, and keep it. True once the relay answers.

        False where it has not answered for a while; it is asked on and on all the same. Raises
        UserError where the relay's name leads nowhere.
        """
        return await self._relay.take(seat)

    def forget_seat(self) -> None:
        """Give the seat up: the session it belongs to is over."""
        self._relay.forget()

    def _on_relay_change(self) -> None:
        """Let every edge know whether there is a relay, and every peer where it sees us."""
        now = self._loop.time()
        for known in self._peers.values():
            known.path.edge.set_relay(available=self._has_relay_to(known.path.slot), now=now)
            known.path.edge.tell_where()
            self._unsettled.add(known)
        self._settle()

    def _has_relay_to(self, slot: int | None) -> bool:
        return self._relay.seated is not None and slot is not None

    # Peers and links

    def set_peers(self, peers: Mapping[MemberId, Peer]) -> None:
        """The only members that may connect, from now on.

        Links with those that stay go on undisturbed; one whose peer is gone, or has another key,
        is closed. Raises PeerError for a peer whose name is not that of its key.
        """
        for member, peer in peers.items():
            if member != peer.member or member_id(peer.spki_sha256) != member:
                fault = "a roster that gives a member another's key"
                raise PeerError(fault)
        for known in list(self._peers.values()):
            peer = peers.get(known.peer.member)
            if peer is None or peer.spki_sha256 != known.peer.spki_sha256:
                known.close(CloseCode.NOT_A_PEER, Ending.REMOVED)
                self._leaving.append(self._peers.pop(known.peer.member))
                self._wake(known)
        for peer in peers.values():
            if peer.member != self._own:
                self._set_peer(peer)
        everyone = self._peers.values()
        self._by_slot = {k.path.slot: k for k in everyone if k.path.slot is not None}
        self._by_tag = {known.path.tag: known for known in everyone}

    def _set_peer(self, peer: Peer) -> None:
        relay = self._has_relay_to(peer.candidates.relay_slot)
        known = self._peers.get(peer.member)
        if known is None:
            path = PeerPath(
                peer, own=self._own, carrier=self, relay=relay, direct=self._direct, large_bytes=self._large_bytes
            )
            known = self._peers[peer.member] = KnownPeer(
                peer,
                path,
                own=self._own,
                maker=self._maker,
                on_event=self._tell,
                on_wake=self._wake,
            )
        known.peer = peer
        known.path.update(peer, relay=relay, now=self._loop.time())
        self._wake(known)

    def open_link(self, member: MemberId) -> None:
        """Bring about a link with a peer; `connected` waits for it. KeyError if it is none."""
        known = self._peers[member]
        known.open(self._loop.time())
        self._wake(known)

    def close_link(self, member: MemberId) -> None:
        """Close the link with a peer, or stop trying."""
        if (known := self._peers.get(member)) is not None:
            known.close(CloseCode.LEFT, Ending.WE_LEFT)

    def link(self, member: MemberId) -> Link | None:
        """The link with a peer, while it is up."""
        known = self._peers.get(member)
        return None if known is None else known.link()

    async def connected(self, member: MemberId) -> Link:
        """The link with a peer, once it is up. Raises LinkClosed where it cannot come about."""
        known = self._peers.get(member)
        if known is None:
            raise LinkClosed(Ending.REMOVED)
        return await known.connected()

    async def close(self) -> None:
        """Close all links, tell the peers, and give the port back."""
        if self._closed:
            return
        self._closed = True
        try:
            for known in self._everyone():
                known.close(CloseCode.LEFT, Ending.WE_LEFT)
            self._settle_all()
            # A farewell that gets lost would leave the peer waiting for a long time.
            for _ in range(FAREWELLS):
                await asyncio.sleep(FAREWELL_GAP_S)
                for known in self._everyone():
                    known.say_farewell()
            await self._relay.close()
        finally:
            for handle in (self._settling, self._timer):
                if handle is not None:
                    handle.cancel()
            self._udp.close()

    # Carrier

    def send_direct(self, datagram: bytes, address: Address) -> None:
        """See `Carrier`."""
        self._udp.send(datagram, address)

    def send_relayed(self, datagram: bytes, slot: int) -> None:
        """See `Carrier`."""
        self._relay.send(datagram, slot)

    def whereabouts(self) -> tuple[Address, ...]:
        """See `Carrier`."""
        self._relay.look_again(self._loop.time())
        return self.candidates().addresses

    # What arrives

    def _read(self) -> None:
        now = self._loop.time()
        for datagram, source in self._udp.read():
            self._take_in(datagram, source, now)
        self._settle()

    def _take_in(self, datagram: bytes, source: Address, now: float) -> None:
        if not datagram:
            return
        if datagram[0] & 0x40:
            self._take_in_quic(datagram, source, now)
        elif datagram[0] in (SEATED, DELIVERED):
            if (frame := self._relay.receive(datagram, source, now)) is not None:
                self._take_in_relayed(frame, now)
        elif (tag := sender_tag(datagram)) is not None:
            self._take_in_probe(datagram, self._by_tag.get(tag), OverAddress(source), now)

    def _take_in_streamed(self, frame: DeliveredFrame) -> None:
        self._take_in_relayed(frame, self._loop.time())
        self._settle()

    def _take_in_relayed(self, frame: DeliveredFrame, now: float) -> None:
        known, datagram = self._by_slot.get(frame.source), frame.payload
        if known is None:
            return
        if datagram[0] & 0x40:
            self._take_in_quic(datagram, known, now)
        elif sender_tag(datagram) == known.path.tag:
            self._take_in_probe(datagram, known, OverRelay(), now)

    def _take_in_probe(self, datagram: bytes, known: KnownPeer | None, route: Route, now: float) -> None:
        if known is not None:
            known.path.receive(datagram, route, now)
            self._unsettled.add(known)

    def _at_address(self, source: Address) -> KnownPeer | None:
        """The peer that has proved to be at this address."""
        return next((each for each in self._peers.values() if each.path.edge.has_answered(source)), None)

    def _take_in_quic(self, datagram: bytes, sender: KnownPeer | Address, now: float) -> None:
        destination = destination_id(datagram)
        if (found := self._by_connection.get(destination)) is not None:
            # By whatever way it came: QUIC authenticates every packet of a connection.
            known, session = found
            session.receive(datagram, now)
            self._unsettled.add(known)
        elif opens_connection(datagram):
            known = self._at_address(sender) if isinstance(sender, Address) else sender
            if known is not None:
                self._accept(datagram, destination, known, now)

    def _accept(self, datagram: bytes, destination: bytes, known: KnownPeer, now: float) -> None:
        session = known.accept(destination, now)
        if session is None:
            return
        session.receive(datagram, now)
        if not session.is_alive():
            known.forget(session)
            return
        session.connection_ids.add(destination)
        self._unsettled.add(known)
        self._file(known)

    # What follows from it

    def _wake(self, known: KnownPeer) -> None:
        """Something changed from above: settle soon, once for all that changes in this turn."""
        self._unsettled.add(known)
        if self._settling is None and not self._closed:
            self._settling = self._loop.call_soon(self._settle_soon)

    def _settle_soon(self) -> None:
        self._settling = None
        self._settle()

    def _settle(self) -> None:
        now = self._loop.time()
        try:
            while self._unsettled:
                known = self._unsettled.pop()
                known.settle(now)
                self._file(known)
            self._leaving = [known for known in self._leaving if known.sessions]
        finally:
            # A mistake with one peer must not stop the clock for all.
            self._set_timer()

    def _settle_all(self) -> None:
        self._unsettled.update(self._everyone())
        self._settle()

    def _file(self, known: KnownPeer) -> None:
        """Keep the table of connection ids as the peer's sessions have it."""
        now_filed = {
            connection_id: (known, session) for session in known.sessions for connection_id in session.connection_ids
        }
        for connection_id in known.filed_ids - now_filed.keys():
            del self._by_connection[connection_id]
        self._by_connection.update(now_filed)
        known.filed_ids = frozenset(now_filed)

    def _everyone(self) -> list[KnownPeer]:
        return [*self._peers.values(), *self._leaving]

    def _tell(self, event: LinkEvent) -> None:
        if not self._closed:
            self._loop.call_soon(self._on_event, event)

    # Time

    def _set_timer(self) -> None:
        due = [at for known in self._everyone() if (at := known.next_tick()) is not None]
        if (relay_due := self._relay.next_tick()) is not None:
            due.append(relay_due)
        next_at = min(due, default=None)
        if self._timer is not None:
            # Firing too early costs less than setting the timer anew for every datagram.
            if next_at is None or self._timer.when() <= next_at:
                return
            self._timer.cancel()
            self._timer = None
        if next_at is not None and not self._closed:
            self._timer = self._loop.call_at(next_at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._read_all()
        self._tick()

    def _read_all(self) -> None:
        """Take in what has arrived: whoever judges silence must have listened."""
        for _ in range(MAX_BATCHES_BEFORE_TICK):
            batch = self._udp.read()
            if not batch:
                return
            now = self._loop.time()
            for datagram, source in batch:
                self._take_in(datagram, source, now)
            self._settle()

    def _tick(self) -> None:
        now = self._loop.time()
        self._relay.tick(now)
        for known in self._everyone():
            due = known.next_tick()
            if due is not None and due <= now:
                known.tick(now)
                self._unsettled.add(known)
        self._settle()
