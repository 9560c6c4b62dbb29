"""One connection from its first datagram to its last, with time as it is told. No socket, no clock."""

import pytest

from kafila.network.identity import DeviceIdentity
from kafila.network.link_channels import Hello, channel_stream, encode_record
from kafila.network.link_session import SHAKE_WITHIN_S, CloseCode, Ended, Ending, Session, Shaking, Up
from kafila.network.quic import AioquicMaker, QuicCore, destination_id
from kafila.network.quic_events import ClosedByPeer, CoreEvent
from kafila.protocol.edge import Edge
from kafila.protocol.links import (
    LINK_IDLE_TIMEOUT_S,
    MAX_MESSAGE_BYTES,
    QUIET_AFTER_S,
    Channel,
    LinkEvent,
    LinkHeard,
    LinkLost,
    LinkQuiet,
    LinkUp,
)

ANNA, BELA, CARL = (DeviceIdentity.from_bytes(bytes([number]) * 32) for number in (1, 2, 3))


def maker(identity: DeviceIdentity) -> AioquicMaker:
    return AioquicMaker(identity, idle_timeout_s=LINK_IDLE_TIMEOUT_S)


def session(core: QuicCore, peer: DeviceIdentity, now: float) -> Session:
    edge = Edge(relay=True, direct=True, draw=lambda: 1)
    return Session(core, peer=peer.member, spki_sha256=peer.spki_sha256, edge=edge, now=now, wake=lambda: None)


class Talk:
    """Anna's session dials Bela's. What they tell is noted; datagrams pass while `carried`."""

    def __init__(self, *, anna_expects: DeviceIdentity = BELA, bela_expects: DeviceIdentity = ANNA) -> None:
        self.now = 1000.0
        self.anna = session(maker(ANNA).dial(BELA.member, self.now), anna_expects, self.now)
        first = self.anna.pump(self.now)
        self.bela = session(maker(BELA).accept(ANNA.member, destination_id(first[0])), bela_expects, self.now)
        self.told: dict[str, list[LinkEvent]] = {"anna": [], "bela": []}
        self.carried = True
        for datagram in first:
            self.bela.receive(datagram, self.now)

    def settle(self) -> "Talk":
        """Pass datagrams to and fro until there are none."""
        quiet_turns = 0
        while quiet_turns < 2:
            quiet_turns += 1
            for name, sender, receiver in (("bela", self.bela, self.anna), ("anna", self.anna, self.bela)):
                for datagram in sender.pump(self.now):
                    quiet_turns = 0
                    if self.carried:
                        receiver.receive(datagram, self.now)
                self.told[name] += sender.news()
        return self

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := min(self.anna.next_tick(), self.bela.next_tick())) <= end:
            self.now = max(self.now, due)
            for each in (self.anna, self.bela):
                if not each.finished:
                    each.tick(self.now)
            self.settle()
            if self.anna.finished or self.bela.finished:
                break
        self.now = max(self.now, end)


def test_both_sides_come_up_once_each_has_checked_the_other() -> None:
    it = Talk().settle()
    assert it.told == {"anna": [LinkUp(peer=BELA.member)], "bela": [LinkUp(peer=ANNA.member)]}
    assert it.anna.is_alive()
    assert it.bela.is_alive()


def test_a_client_is_not_up_before_the_other_has_looked_at_its_certificate() -> None:
    it = Talk()
    for datagram in it.bela.pump(it.now):
        it.anna.receive(datagram, it.now)
    it.anna.pump(it.now)
    assert it.anna.state == Shaking(since=it.now, peer_is_right=True)
    assert it.anna.news() == []


@pytest.mark.parametrize("wrong", ["anna", "bela"])
def test_a_key_that_is_not_the_rosters_ends_it_before_it_is_up(wrong: str) -> None:
    it = Talk(bela_expects=CARL) if wrong == "anna" else Talk(anna_expects=CARL)
    it.settle()
    assert it.told == {"anna": [], "bela": []}
    ours, theirs = (it.bela, it.anna) if wrong == "anna" else (it.anna, it.bela)
    assert ours.state == Ended(reason=Ending.WRONG_KEY)
    # Whoever ends a connection within the handshake cannot say more than that it does.
    said = Ending.WRONG_KEY_OURS if wrong == "anna" else Ending.NO_HANDSHAKE
    assert theirs.state == Ended(reason=said)


def test_silence_is_told_as_quiet_then_as_heard_or_as_lost() -> None:
    it = Talk().settle()
    it.wait(QUIET_AFTER_S * 3)
    assert it.told["anna"] == [LinkUp(peer=BELA.member)]
    it.carried = False
    it.wait(QUIET_AFTER_S + 1.1)
    assert it.told["anna"][1:] == [LinkQuiet(peer=BELA.member)]
    it.wait(30.0)
    it.carried = True
    it.wait(1.1)
    assert it.told["anna"][2:] == [LinkHeard(peer=BELA.member)]
    assert it.told["bela"][1:] == [LinkQuiet(peer=ANNA.member), LinkHeard(peer=ANNA.member)]
    it.carried = False
    it.wait(LINK_IDLE_TIMEOUT_S + 2.0)
    assert it.told["anna"][3:] == [
        LinkQuiet(peer=BELA.member),
        LinkLost(peer=BELA.member, reason=Ending.SILENT),
    ]


def test_what_was_sent_into_silence_goes_out_again_as_soon_as_the_peer_is_heard() -> None:
    it = Talk().settle()
    it.carried = False
    it.anna.link.outboxes[Channel.DECODE].put(b"kept")
    it.wait(40.0)
    assert it.bela.link.inboxes[Channel.DECODE].take() is None
    it.carried = True
    it.wait(1.1)
    assert it.bela.link.inboxes[Channel.DECODE].take() == b"kept"


def test_a_handshake_that_nobody_answers_is_given_up() -> None:
    it = Talk()
    it.carried = False
    it.wait(SHAKE_WITHIN_S + 0.1)
    assert it.anna.state == Ended(reason=Ending.NO_HANDSHAKE)
    assert it.told == {"anna": [], "bela": []}


def test_leaving_is_told_and_a_lost_farewell_is_said_again() -> None:
    it = Talk().settle()
    it.carried = False
    it.anna.leave()
    it.settle()
    assert it.told["anna"][-1] == LinkLost(peer=BELA.member, reason=Ending.WE_LEFT)
    assert isinstance(it.bela.state, Up)
    it.carried = True
    it.bela.tick(it.now + 1.1)
    it.settle()
    assert it.told["bela"][-1] == LinkLost(peer=ANNA.member, reason=Ending.THEY_LEFT)


def test_farewells_are_not_said_for_ever() -> None:
    it = Talk().settle()
    it.anna.leave()
    said = len(it.anna.pump(it.now))
    for _ in range(100):
        it.anna.receive(bytes([0x40]) + bytes(60), it.now)
        said += len(it.anna.pump(it.now))
    assert 1 < said < 12


class Rogue:
    """A member with the right certificate that then does as it likes; Bela's session is the other end."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.core = maker(ANNA).dial(BELA.member, self.now)
        first = self.core.datagrams(self.now)
        self.bela = session(maker(BELA).accept(ANNA.member, destination_id(first[0])), ANNA, self.now)
        self.seen: list[CoreEvent] = []
        for datagram in first:
            self.bela.receive(datagram, self.now)
        self.settle()
        self.core.open_streams(12)

    def settle(self) -> None:
        for _ in range(6):
            for datagram in self.bela.pump(self.now):
                self.core.receive(datagram, self.now)
            self.seen += self.core.events()
            for datagram in self.core.datagrams(self.now):
                self.bela.receive(datagram, self.now)
            self.now += 0.001

    def write(self, stream: int, data: bytes) -> None:
        self.core.write(stream, data)
        self.settle()


def test_a_message_that_overtakes_the_hello_is_kept() -> None:
    it = Rogue()
    assert isinstance(it.bela.state, Shaking)
    it.write(channel_stream(Channel.DECODE), (5).to_bytes(4) + b"early")
    assert isinstance(it.bela.state, Up)
    assert it.bela.link.inboxes[Channel.DECODE].take() == b"early"
    it.write(0, encode_record(Hello()))
    assert it.bela.news() == [LinkUp(peer=ANNA.member)]


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (0, b"garbage that is no record"),
        (channel_stream(Channel.WEIGHTS), (MAX_MESSAGE_BYTES + 1).to_bytes(4)),
        (channel_stream(Channel.WEIGHTS) + 1, b"a channel that there is not"),
    ],
)
def test_a_member_that_breaks_the_protocol_loses_its_link_and_is_told_why(stream: int, data: bytes) -> None:
    it = Rogue()
    it.write(0, encode_record(Hello()))
    assert isinstance(it.bela.state, Up)
    it.write(stream, data)
    assert it.bela.state == Ended(reason=Ending.BROKEN)
    assert ClosedByPeer(code=CloseCode.BROKEN_PROTOCOL, ours=True) in it.seen


def test_an_end_with_a_code_of_another_protocol_is_told_in_our_words() -> None:
    it = Rogue()
    it.write(0, encode_record(Hello()))
    it.core.close(0x4242)
    it.settle()
    assert it.bela.news()[-1] == LinkLost(peer=ANNA.member, reason=Ending.BROKEN)
