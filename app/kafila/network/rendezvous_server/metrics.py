"""The rendezvous's numbers in the text format that Prometheus reads. They name nobody."""

from collections.abc import Iterator

import msgspec

from kafila.protocol.rendezvous_server import SignallingCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the rendezvous is, without saying anything of anybody."""

    status: str
    signalling: SignallingCounts
    relayed_frames: int
    relayed_bytes: int
    relay_drops: dict[str, int]
    relay_connections: int
    connections_dropped: dict[str, int]
    """TCP connections that were turned away or given up below signalling, by reason."""
    relay_frames_lost: int
    """Frames that a connection over TCP did not take in time."""
    stun_answers: int
    stun_refused: int
    """Requests of an address that asks more than it may."""
    unsent_datagrams: int


def write_metrics(health: Health) -> str:
    """Every number with its kind and meaning."""
    return "".join(_lines(health))


def _lines(health: Health) -> Iterator[str]:
    counts = health.signalling
    yield from _metric("sessions", "gauge", "Sessions that are open.", counts.sessions)
    yield from _metric("connections", "gauge", "Signalling connections.", counts.connections)
    yield from _metric("clients", "gauge", "Clients, those without a connection included.", counts.clients)
    yield from _metric("relay_connections", "gauge", "Members that use the relay over TCP.", health.relay_connections)
    yield from _metric("waiting_bytes", "gauge", "What signalling clients have not taken.", counts.waiting_bytes)
    yield from _metric("relayed_frames_total", "counter", "Frames passed on.", health.relayed_frames)
    yield from _metric("relayed_bytes_total", "counter", "Bytes passed on.", health.relayed_bytes)
    yield from _metric("stun_answers_total", "counter", "STUN requests answered.", health.stun_answers)
    yield from _metric("stun_refused_total", "counter", "STUN requests over the rate.", health.stun_refused)
    yield from _metric("unsent_datagrams_total", "counter", "Datagrams the kernel refused.", health.unsent_datagrams)
    yield from _metric("frames_lost_total", "counter", "Frames a slow connection lost.", health.relay_frames_lost)
    yield from _by_reason("relay_dropped_total", "Relay frames that went nowhere.", health.relay_drops)
    yield from _by_reason(
        "connections_dropped_total", "Connections turned away or given up.", health.connections_dropped
    )
    yield from _by_reason("refused_total", "Requests turned away.", counts.refused)
    yield from _by_reason("faults_total", "Clients let go for breaking the protocol.", counts.faults)
    yield from _by_reason("overflows_total", "Exchanges ended because too much waited.", counts.overflows)


def _by_reason(name: str, meaning: str, values: dict[str, int]) -> Iterator[str]:
    full = f"kafila_rendezvous_{name}"
    yield f"# HELP {full} {meaning}\n# TYPE {full} counter\n"
    for reason, value in sorted(values.items()):
        yield f'{full}{{reason="{reason}"}} {value}\n'


def _metric(name: str, kind: str, meaning: str, value: int) -> Iterator[str]:
    full = f"kafila_rendezvous_{name}"
    yield f"# HELP {full} {meaning}\n# TYPE {full} {kind}\n{full} {value}\n"
