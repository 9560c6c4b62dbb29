"""`kafila bench transport`: that it measures, and how it shows that. The figures are not for a test to judge."""

import sys

import pytest

from kafila.cli.bench_transport import draw
from kafila.network.bench.line import Line, Way
from kafila.network.bench.transport import Rate, Results, Wait, open_bench
from kafila.network.quic import Transport

PART = [sys.executable, "-m", "kafila", "bench", "transport", "--part"]


@pytest.mark.loopback
async def test_a_transfer_and_a_wait_are_measured() -> None:
    async with open_bench([*PART, "far"], [*PART, "line"]) as bench:
        line = Line(rtt_ms=10, mbit=100)
        rate = await bench.rate(Transport(datagram_bytes=1350), line, 0.5)
        wait = await bench.wait(Transport(), line, 0.2, prefill_bytes=1 << 20)
    assert 0 < rate.mb_s < 100 / 8
    assert rate.sender_cpu_ms_mb > 0
    assert 10 <= wait.idle_p50_ms <= wait.idle_p95_ms
    assert wait.beside_p95_ms >= wait.beside_p50_ms >= 10
    assert wait.prefill_s > (1 << 20) / (100e6 / 8)


def test_a_line_takes_its_time_and_drops_what_its_queue_does_not_hold() -> None:
    way = Way(Line(rtt_ms=20, mbit=8, queue_ms=9.5), seed=1)
    for _ in range(20):
        way.send(bytes(972), now=0.0)
    assert way.next_at() == pytest.approx(0.011)
    assert len(way.arrived(now=0.0125)) == 2
    assert len(way.arrived(now=1.0)) == 8


def test_a_line_loses_the_share_that_it_should() -> None:
    way = Way(Line(mbit=1e6, loss=0.1), seed=1)
    for _ in range(2000):
        way.send(b"word", now=0.0)
    assert 1700 < len(way.arrived(now=1.0)) < 1900


def test_the_tables_name_what_was_measured() -> None:
    rate = Rate(transport=Transport(), line=None, mb_s=11.26, sender_cpu_ms_mb=40, receiver_cpu_ms_mb=38)
    lossy = Rate(
        transport=Transport(congestion_control="cubic"),
        line=Line(rtt_ms=50, loss=0.01),
        mb_s=0.4,
        sender_cpu_ms_mb=100,
        receiver_cpu_ms_mb=90,
    )
    wait = Wait(
        transport=Transport(),
        line=Line(rtt_ms=50),
        idle_p50_ms=52,
        idle_p95_ms=60,
        beside_p50_ms=55,
        beside_p95_ms=70,
        prefill_s=3.1,
    )
    table = draw(Results(sizes=[rate], rates=[lossy], waits=[wait]))
    assert "  datagrams of 1350 bytes           11.3                  40         38" in table
    assert "  cubic, 50 ms, 1% lost              0.4                 100         90" in table
    assert table[-1].split() == ["kafila,", "50", "ms", "52", "60", "55", "70", "3.1"]
