"""The rendezvous machines of both sides, with the bytes between them in the test's hand."""

import hashlib
from collections import deque
from itertools import count

from kafila.protocol.rendezvous_client import Disconnect, Happening, RendezvousClientMachine, Send
from kafila.protocol.rendezvous_limits import Limits
from kafila.protocol.rendezvous_server import Drop, RendezvousMachine, Transmit
from kafila.protocol.rendezvous_switchboard import SeatGiven, SeatTaken
from kafila.protocol.trust import Authority

SECRET = b"0123456789abcdef"


class Draw:
    """Bytes that a test can count on."""

    def __init__(self) -> None:
        self._count = count()

    def __call__(self, size: int) -> bytes:
        return hashlib.blake2b(next(self._count).to_bytes(8, "big"), digest_size=size).digest()


class Member:
    """A client machine, what has happened to it, and its connection."""

    def __init__(self, net: "Net", source: str) -> None:
        self.machine = RendezvousClientMachine()
        self.happened: list[Happening] = []
        self.source = source
        self.connection: int | None = None
        self.to_server: deque[bytes] = deque()
        self.to_client: deque[bytes] = deque()
        self._net = net

    def connect(self) -> None:
        """Open a connection; what was under way on an old one is lost."""
        self.cut()
        self.machine.connected("127.0.0.1", Authority("rendezvous.example.org"), self._net.now)
        self.perform()
        self._net.accept(self)

    def cut(self) -> None:
        """Lose the connection, and what was under way on it. The server hears of it."""
        if self.connection is None:
            return
        gone, self.connection = self.connection, None
        self.to_server.clear()
        self.to_client.clear()
        self.machine.disconnected()
        self.perform()
        self._net.lose(gone)

    def perform(self) -> None:
        for output in self.machine.drain():
            match output:
                case Send(data=data):
                    self.to_server.append(data)
                case Disconnect():
                    self.cut()
                case _:
                    self.happened.append(output)

    def take(self) -> list[Happening]:
        """What happened since this was asked last."""
        happened, self.happened = self.happened, []
        return happened


class Net:
    """A server machine and its clients."""

    def __init__(self, limits: Limits | None = None, secret: bytes = SECRET) -> None:
        self.now = 100.0
        self.limits = limits or Limits()
        self.draw = Draw()
        self.server = RendezvousMachine(secret=secret, draw=self.draw, limits=self.limits)
        self.seats: dict[int, SeatGiven] = {}
        self.members: dict[int, Member] = {}
        self._numbers = count(1)

    def restart(self, secret: bytes = SECRET) -> None:
        """Another server takes the place of this one; every connection is lost."""
        members = list(self.members.values())
        self.server = RendezvousMachine(secret=secret, draw=self.draw, limits=self.limits)
        self.seats.clear()
        for member in members:
            member.cut()

    def member(self, source: str = "198.51.100.7") -> Member:
        """A client, connected and welcome."""
        member = Member(self, source)
        member.connect()
        self.settle()
        member.take()
        return member

    def accept(self, member: Member) -> None:
        member.connection = number = next(self._numbers)
        self.members[number] = member
        self._perform(self.server.connect(number, member.source, 3478, self.now))

    def lose(self, connection: int) -> None:
        self.members.pop(connection, None)
        self._perform(self.server.disconnect(connection, self.now))

    def to_server(self, member: Member) -> None:
        """Deliver the oldest message under way from a client."""
        connection = member.connection
        if connection is not None and member.to_server:
            data = member.to_server.popleft()
            self._perform(self.server.receive(connection, data, self.now))

    def to_client(self, member: Member) -> None:
        """Deliver the oldest message under way to a client."""
        if member.connection is not None and member.to_client:
            member.machine.receive(member.to_client.popleft(), self.now)
            member.perform()

    def settle(self) -> None:
        """Deliver everything that is under way."""
        while any(each.to_server or each.to_client for each in self.members.values()):
            for member in list(self.members.values()):
                self.to_server(member)
                self.to_client(member)

    def wait(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass, with everybody's ticks."""
        end = self.now + seconds
        while self.now < end:
            self.now += step
            self._perform(self.server.tick(self.now))
            for member in list(self.members.values()):
                member.machine.tick(self.now)
                member.perform()
            self.settle()

    def _perform(self, effects: list[Transmit | Drop | SeatGiven | SeatTaken]) -> None:
        for effect in effects:
            match effect:
                case Transmit(connection=number, data=data):
                    if number in self.members:
                        self.members[number].to_client.append(data)
                case Drop(connection=number):
                    self._drop(number)
                case SeatGiven(slot=slot):
                    self.seats[slot] = effect
                case SeatTaken(slot=slot):
                    del self.seats[slot]

    def _drop(self, number: int) -> None:
        member = self.members.pop(number, None)
        if member is None or member.connection != number:
            return
        while member.to_client:  # A dropped connection still delivers what was sent before.
            member.machine.receive(member.to_client.popleft(), self.now)
            member.perform()
        member.connection = None
        member.to_server.clear()
        member.machine.disconnected()
        member.perform()
