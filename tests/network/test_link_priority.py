"""Decode beside prefill and weights on one connection: two sessions on a made-up line, in made-up time."""

from statistics import median

import pytest

from kafila.network.bench.line import Line, Way
from kafila.network.identity import DeviceIdentity
from kafila.network.link_session import Session, Up
from kafila.network.quic import AioquicMaker, QuicCore, Transport, destination_id
from kafila.protocol.edge import Edge
from kafila.protocol.links import LINK_IDLE_TIMEOUT_S, Channel

NEAR, FAR = sorted((DeviceIdentity.from_bytes(bytes([number]) * 32) for number in (1, 2)), key=lambda each: each.member)
TURN_S = 0.001
"""What an event loop takes between two looks at its timers."""
LINE = Line(rtt_ms=50, mbit=50, queue_ms=100)
HALF_MS = LINE.rtt_ms / 2
FRAME_BYTES = 4 << 10
FRAME_EVERY_S = 0.05
LOAD_BYTES = 4 << 20


def session(core: QuicCore, peer: DeviceIdentity, now: float) -> Session:
    edge = Edge(relay=True, direct=True, draw=lambda: 1)
    return Session(core, peer=peer.member, spki_sha256=peer.spki_sha256, edge=edge, now=now, wake=lambda: None)


class Pair:
    """Two sessions, the line between them, and the time."""

    def __init__(self, line: Line, transport: Transport) -> None:
        self.now = 1000.0
        near, far = (
            AioquicMaker(identity, idle_timeout_s=LINK_IDLE_TIMEOUT_S, transport=transport) for identity in (NEAR, FAR)
        )
        self.out, self.back = Way(line, 1), Way(line, 2)
        self.near = session(near.dial(FAR.member, self.now), FAR, self.now)
        first = self.near.pump(self.now)
        self.far = session(far.accept(NEAR.member, destination_id(first[0])), NEAR, self.now)
        for datagram in first:
            self.out.send(datagram, self.now)
        while not (isinstance(self.near.state, Up) and isinstance(self.far.state, Up)):
            self.turn()

    def turn(self) -> None:
        """What an event loop does in one turn, at both ends."""
        self.now += TURN_S
        for here, arriving, leaving in ((self.near, self.back, self.out), (self.far, self.out, self.back)):
            arrived = arriving.arrived(self.now)
            for datagram in arrived:
                here.receive(datagram, self.now)
            due = here.next_tick() <= self.now
            if due:
                here.tick(self.now)
            if arrived or due:
                self.pump(here, leaving)

    def pump(self, here: Session, leaving: Way) -> None:
        for datagram in here.pump(self.now):
            leaving.send(datagram, self.now)

    def send(self, channel: Channel, message: bytes) -> None:
        self.near.link.outboxes[channel].put(message)
        self.pump(self.near, self.out)

    def arrived(self, channel: Channel) -> bytes | None:
        return self.far.link.inboxes[channel].take()


def delays_ms(pair: Pair, *loads: Channel) -> list[float]:
    """How long decode frames take beside messages on other channels, until those have arrived."""
    for load in loads:
        pair.send(load, bytes(LOAD_BYTES))
    sent: list[float] = []
    took: list[float] = []
    waiting = set(loads)
    while waiting or len(took) < len(sent):
        if waiting and (not sent or pair.now >= sent[-1] + FRAME_EVERY_S):
            sent.append(pair.now)
            pair.send(Channel.DECODE, bytes(FRAME_BYTES))
        pair.turn()
        waiting -= {load for load in waiting if pair.arrived(load) is not None}
        while pair.arrived(Channel.DECODE) is not None:
            took.append((pair.now - sent[len(took)]) * 1000)
    return took


@pytest.mark.parametrize("loads", [(Channel.PREFILL,), (Channel.WEIGHTS,), (Channel.PREFILL, Channel.WEIGHTS)])
def test_decode_hardly_waits_for_megabytes_that_were_sent_before(loads: tuple[Channel, ...]) -> None:
    took = delays_ms(Pair(LINE, Transport()), *loads)
    assert len(took) > 15
    assert median(took) < HALF_MS + 15
    # While the line's rate is being found, a queue forms for a moment.
    assert max(took) < HALF_MS + LINE.queue_ms
    assert max(took[-5:]) < HALF_MS + 20


def test_nor_where_chance_loses_packets() -> None:
    lossy = Line(rtt_ms=LINE.rtt_ms, mbit=LINE.mbit, queue_ms=LINE.queue_ms, loss=0.02)
    took = delays_ms(Pair(lossy, Transport()), Channel.PREFILL)
    assert len(took) > 15
    assert median(took) < HALF_MS + 20
    # A packet that was lost is sent again a round trip later, and that one may be lost, too.
    assert max(took) < HALF_MS + 4 * LINE.rtt_ms + LINE.queue_ms


def answer_ms(pair: Pair) -> float:
    """How long a decode frame takes that the far side sends now."""
    sent_at = pair.now
    pair.far.link.outboxes[Channel.DECODE].put(bytes(FRAME_BYTES))
    pair.pump(pair.far, pair.back)
    while pair.near.link.inboxes[Channel.DECODE].take() is None:
        pair.turn()
    return (pair.now - sent_at) * 1000


def test_whoever_has_taken_in_megabytes_may_speak_at_once() -> None:
    """Its thousands of acknowledgements are no debt that has to be waited for."""
    pair = Pair(LINE, Transport())
    pair.send(Channel.PREFILL, bytes(2 * LOAD_BYTES))
    while pair.arrived(Channel.PREFILL) is None:
        answer_ms(pair)
    assert max(answer_ms(pair) for _ in range(5)) < HALF_MS + 15


def test_decode_frames_alone_go_at_once() -> None:
    pair = Pair(LINE, Transport())
    took: list[float] = []
    for _ in range(20):
        sent_at = pair.now
        pair.send(Channel.DECODE, bytes(FRAME_BYTES))
        while pair.arrived(Channel.DECODE) is None:
            pair.turn()
        took.append((pair.now - sent_at) * 1000)
    assert max(took[2:]) < HALF_MS + 6
