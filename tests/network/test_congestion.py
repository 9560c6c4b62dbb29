"""The controller on lines of all kinds, alone and in company. The kernel's TCP is the company in tests/nat."""

from collections.abc import Callable
from statistics import median

import pytest
from aioquic.quic.congestion.base import QuicCongestionControl

from helpers.bottleneck import PACKET_BYTES, Bottleneck, Flow, cubic, ours

MB = 1e6
LINE_MBIT = 20.0
LINE_MB_S = LINE_MBIT / 8


def speed(line: Bottleneck, flow: Flow, *, settle_s: float = 2.0, seconds: float = 4.0) -> float:
    """Megabytes a second, after a while."""
    line.run(settle_s)
    before = flow.arrived_bytes
    line.run(seconds)
    return (flow.arrived_bytes - before) / seconds / MB


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.02])
@pytest.mark.parametrize("rtt_ms", [5, 50, 150])
def test_it_fills_a_line_also_where_chance_loses_packets(rtt_ms: float, loss: float) -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=100, loss=loss)
    assert speed(line, Flow(line, ours(), rtt_ms=rtt_ms)) > 0.75 * LINE_MB_S


def test_cubic_does_not_which_is_why_there_is_another() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=100, loss=0.01)
    assert speed(line, Flow(line, cubic(), rtt_ms=50)) < 0.25 * LINE_MB_S


def test_it_leaves_the_queue_nearly_empty() -> None:
    waits: dict[str, float] = {}
    for name, control in (("ours", ours()), ("cubic", cubic())):
        line = Bottleneck(mbit=LINE_MBIT, queue_ms=100)
        Flow(line, control, rtt_ms=50)
        line.run(2)
        line.waits_ms.clear()
        line.run(4)
        waits[name] = median(line.waits_ms)
    assert waits["ours"] < 5
    assert waits["cubic"] > 40


@pytest.mark.parametrize("queue_ms", [10, 60])
@pytest.mark.parametrize("other", [cubic, ours])
@pytest.mark.parametrize("order", ["we come first", "we come later"])
def test_a_neighbour_keeps_its_share(other: Callable[[], QuicCongestionControl], queue_ms: float, order: str) -> None:
    line = Bottleneck(mbit=10, queue_ms=queue_ms)
    controls = (ours(), other()) if order == "we come first" else (other(), ours())
    first = Flow(line, controls[0], rtt_ms=30)
    line.run(1)
    second = Flow(line, controls[1], rtt_ms=30)
    line.run(5)
    before = first.arrived_bytes, second.arrived_bytes
    line.run(12)
    one, two = first.arrived_bytes - before[0], second.arrived_bytes - before[1]
    assert two / 3 < one < two * 3


def test_a_line_that_becomes_slow_is_not_flooded_for_long() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=300)
    Flow(line, ours(), rtt_ms=30)
    line.run(2)
    line.mbit = LINE_MBIT / 5
    line.run(6)
    line.waits_ms.clear()
    line.run(2)
    assert median(line.waits_ms) < 30


def test_a_longer_path_is_learned_at_once_when_it_is_told_of() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=100)
    control = ours()
    flow = Flow(line, control, rtt_ms=2)
    line.run(2)
    flow.rtt_s = 0.1
    control.begin_anew()
    assert speed(line, flow, settle_s=1.5, seconds=2) > 0.75 * LINE_MB_S


def test_after_an_outage_it_begins_with_little_and_finds_its_rate_again() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=100)
    control = ours()
    flow = Flow(line, control, rtt_ms=50)
    line.run(2)
    control.on_persistent_congestion()
    assert control.congestion_window < 10 * PACKET_BYTES
    assert speed(line, flow) > 0.75 * LINE_MB_S


def test_a_little_talk_says_nothing_of_what_the_path_can_do() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=100)
    flow = Flow(line, ours(), rtt_ms=50)
    for _ in range(300):
        flow.waiting_packets = 4
        flow.pump()
        line.run(0.05)
        assert flow.waiting_packets == 0
    flow.waiting_packets = None
    flow.pump()
    assert speed(line, flow, settle_s=1.0) > 0.75 * LINE_MB_S


def test_what_is_under_way_is_counted_to_the_byte() -> None:
    line = Bottleneck(mbit=LINE_MBIT, queue_ms=20, loss=0.05)
    control = ours()
    flow = Flow(line, control, rtt_ms=20)
    flow.waiting_packets = 5000
    line.run(30)
    assert flow.waiting_packets == 0
    assert control.bytes_in_flight == 0
    assert 4500 * PACKET_BYTES < flow.arrived_bytes < 5000 * PACKET_BYTES
