"""Puts the edge machine of one peer to work: probes in and out, datagrams on their way."""

import ipaddress
import secrets
from collections.abc import Iterable
from typing import Protocol

from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId
from kafila.protocol.edge import Edge
from kafila.protocol.edge_states import Answer, Ask, Moved, OverAddress, OverRelay, Route, TellWhere
from kafila.protocol.links import Address, PathChanged, Peer
from kafila.protocol.path_size import PathSize
from kafila.protocol.probes import Ping, Pong, ProbeCodec, Where


class Carrier(Protocol):
    """What can carry a datagram away: the socket, and the seat at the relay."""

    def send_direct(self, datagram: bytes, address: Address) -> None:
        """Straight to an address."""
        ...

    def send_relayed(self, datagram: bytes, slot: int) -> None:
        """To another seat at the relay."""
        ...

    def whereabouts(self) -> tuple[Address, ...]:
        """Where this member may be reached, as far as is known now; the relay is asked to look again."""
        ...


class PeerPath:
    """The way to one peer."""

    def __init__(
        self, peer: Peer, *, own: MemberId, carrier: Carrier, relay: bool, direct: bool, large_bytes: int
    ) -> None:
        self.edge = Edge(relay=relay, direct=direct, draw=_draw)
        self._size = PathSize(large_bytes, draw=_draw)
        self.slot = peer.candidates.relay_slot
        self._own = own
        self._peer = peer.member
        self._codec = ProbeCodec(peer.probe_key, own=own, peer=peer.member)
        self._carrier = carrier

    @property
    def tag(self) -> bytes:
        """The tag that the peer's probes carry."""
        return self._codec.peer_tag

    @property
    def datagram_bytes(self) -> int:
        """The size of datagrams that `send` can be given now."""
        return self._size.size

    def follow(self, routes: Iterable[Route], now: float) -> None:
        """These are the ways that a link uses from now on; none while there is no link."""
        self._size.follow(routes, now)

    def tick(self, now: float) -> None:
        """Do what is due. Read what has arrived first."""
        self.edge.tick(now)
        for ask in self._size.tick(now):
            self._send_by(ask.route, self._codec.encode(Ping(transaction=ask.transaction, size=ask.size)))

    def next_tick(self) -> float | None:
        """When `tick` is due next."""
        due = [at for at in (self.edge.next_tick(), self._size.next_tick()) if at is not None]
        return min(due, default=None)

    def update(self, peer: Peer, *, relay: bool, now: float) -> None:
        """What is known of the peer, as of now. The path in use stays."""
        self._codec = ProbeCodec(peer.probe_key, own=self._own, peer=peer.member)
        self.slot = peer.candidates.relay_slot
        self.edge.set_candidates(_usable(peer.candidates.addresses), now)
        self.edge.set_relay(available=relay, now=now)

    def receive(self, datagram: bytes, route: Route, now: float) -> None:
        """A datagram that carries the peer's tag. What the peer did not make is passed over."""
        try:
            probe = self._codec.decode(datagram)
        except PeerError:
            return
        match probe:
            case Ping(transaction=transaction):
                self.edge.heard_ping(route, transaction, now)
            case Pong(transaction=transaction):
                if not self._size.heard_pong(route, transaction, now):
                    self.edge.heard_pong(route, transaction, now)
            case Where(transaction=transaction, addresses=addresses):
                if isinstance(route, OverRelay):
                    self.edge.heard_where(_usable(addresses), transaction, now)

    def act(self) -> list[PathChanged]:
        """Carry out what the edge wants; returns what there is to tell."""
        news: list[PathChanged] = []
        for effect in self.edge.effects():
            match effect:
                case Ask(route=route, transaction=transaction):
                    self._send_by(route, self._codec.encode(Ping(transaction=transaction)))
                case Answer(route=route, transaction=transaction):
                    self._send_by(route, self._codec.encode(Pong(transaction=transaction)))
                case TellWhere(transaction=transaction):
                    where = Where(transaction=transaction, addresses=self._carrier.whereabouts())
                    self._send_by(OverRelay(), self._codec.encode(where))
                case Moved(path=path, rtt_s=rtt_s):
                    rtt_ms = None if rtt_s is None else rtt_s * 1000
                    news.append(PathChanged(peer=self._peer, path=path, rtt_ms=rtt_ms))
        return news

    def send(self, datagram: bytes) -> None:
        """Send a link's datagram by every way that is in use."""
        for route in self.edge.routes():
            self._send_by(route, datagram)

    def _send_by(self, route: Route, datagram: bytes) -> None:
        match route:
            case OverAddress(address=address):
                self._carrier.send_direct(datagram, address)
            case OverRelay():
                if self.slot is not None:
                    self._carrier.send_relayed(datagram, self.slot)


def _draw() -> int:
    return secrets.randbits(64)


def _usable(addresses: Iterable[Address]) -> list[Address]:
    """The candidates that may be sent to: others could be abused, or block on a name look-up."""
    return [address for address in addresses if _is_usable(address)]


def _is_usable(address: Address) -> bool:
    try:
        host = ipaddress.ip_address(address.host)
    except ValueError:
        return False
    return not (host.is_multicast or host.is_unspecified or host.is_link_local) and address.port > 0
