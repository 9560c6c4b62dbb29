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
    relay_frames_lost: int
    """Frames that a connection over TCP did not take in time."""
    stun_answers: int
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
    yield from _metric("refused_total", "counter", "Requests turned away.", counts.refused)
    yield from _metric("faults_total", "counter", "Clients let go for breaking the protocol.", counts.faults)
    yield from _metric("overflows_total", "counter", "Exchanges ended by a full queue.", counts.overflows)
    yield from _metric("relayed_frames_total", "counter", "Frames passed on.", health.relayed_frames)
    yield from _metric("relayed_bytes_total", "counter", "Bytes passed on.", health.relayed_bytes)
    yield from _metric("stun_answers_total", "counter", "STUN requests answered.", health.stun_answers)
    yield from _metric("unsent_datagrams_total", "counter", "Datagrams the kernel refused.", health.unsent_datagrams)
    yield from _metric("frames_lost_total", "counter", "Frames a slow connection lost.", health.relay_frames_lost)
    name = "kafila_rendezvous_relay_dropped_total"
    yield f"# HELP {name} Relay frames that went nowhere, by reason.\n# TYPE {name} counter\n"
    for reason, dropped in sorted(health.relay_drops.items()):
        yield f'{name}{{reason="{reason}"}} {dropped}\n'


def _metric(name: str, kind: str, meaning: str, value: int) -> Iterator[str]:
    full = f"kafila_rendezvous_{name}"
    yield f"# HELP {full} {meaning}\n# TYPE {full} {kind}\n{full} {value}\n"
