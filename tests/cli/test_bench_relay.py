"""`kafila bench relay`: a small load on a rendezvous that is a process of its own."""

import asyncio

import msgspec
import pytest

from kafila.cli import bench_relay
from kafila.cli.main import main
from kafila.cli.program import program
from kafila.domain.errors import UserError
from kafila.network.bench import sessions
from kafila.network.bench.rendezvous import Effort, measure_rendezvous
from kafila.protocol.rendezvous_limits import Limits

pytestmark = pytest.mark.loopback

QUICK = Effort(cost_rounds=1, delay_rounds=20, idle_s=0.5)

from_many_addresses = pytest.mark.skipif(
    not sessions.has_many_addresses(), reason="this system has one address to speak to itself from"
)


@from_many_addresses
def test_forty_sessions_sign_on_greet_and_stay() -> None:
    """What takes longer than a client waits fails; how long it takes is for the command to say."""
    figures = asyncio.run(measure_rendezvous([*program(), "rendezvous"], sessions=40, members=4, effort=QUICK))
    signalling = figures.signalling
    assert (signalling.sessions, signalling.addresses, signalling.broken) == (40, 4, 0)
    assert 0 < signalling.hello_ms["p50"] <= signalling.hello_ms["p95"]
    assert signalling.session_s["p95"] <= signalling.all_ready_s
    assert figures.relay.relayed_mb > 20
    assert min(figures.relay.cpu_s_per_mb, figures.relay.tcp_cpu_s_per_mb) > 0
    assert min(figures.relay.relayed_us["p50"], figures.relay.direct_us["p50"]) > 0
    shown = "\n".join(bench_relay.draw(figures))
    assert "40 sessions of 4, from 4 addresses" in shown
    assert "ms/MB" in shown
    assert msgspec.to_builtins(figures)["relay"]["payload_bytes"] == 1200


@from_many_addresses
def test_no_address_has_more_sessions_than_the_rendezvous_lets_it() -> None:
    sources = sessions.sources_for(1000, 4, Limits())
    busiest = max(sources.count(source) for source in sources)
    assert busiest * 4 <= Limits().connections_per_source
    assert busiest * 3 <= Limits().calls.burst
    assert sessions.sources_for(3, 2, Limits()) == [None] * 3
    with pytest.raises(UserError, match="more than one address may have"):
        sessions.sources_for(1, 40, Limits())


@pytest.mark.parametrize("given", ["--sessions=0", "--members=1", "--sessions=many"])
def test_what_cannot_be_measured_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "relay", given])
    assert ended.value.code == 2
    assert "is not a number from" in capsys.readouterr().err


def test_a_session_too_large_for_one_address_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "relay", "--members", "40"]) == 1
    assert capsys.readouterr().err.startswith("A session of 40 is more than one address may have")
