"""Recorded-like snapshots of a serving session, to draw and to test with."""

import msgspec

from kafila.domain.capability import Machine, MachineKind
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import (
    Ended,
    Pace,
    RingEdge,
    RingMember,
    Serving,
    SessionView,
    Snapshot,
    ThisComputer,
)

GB = 10**9
PEOPLE = (
    ("Studio laptop", "Ada", MachineKind.LAPTOP, 16, 0.38, 24.0),
    ("Living-room PC", "Jo", MachineKind.DESKTOP, 20, 0.27, 16.0),
    ("Office desktop", "Noor", MachineKind.SERVER, 12, 0.46, 28.0),
    ("Attic mini", "Kit", MachineKind.DESKTOP, 10, 0.47, 28.0),
    ("Kitchen laptop", "Sam", MachineKind.LAPTOP, 6, 0.41, 25.0),
)
TRIPS_MS = (3.0, 12.0, 84.0, 5.0, 18.0)


def member_id(at: int) -> MemberId:
    return MemberId(f"{at:016x}")


def ring_member(at: int, first: int) -> RingMember:
    name, owner, kind, blocks, busy, stage_ms = PEOPLE[at]
    return RingMember(
        member=member_id(at),
        machine=Machine(name=name, owner=owner, kind=kind, system="Linux, x86-64"),
        first=first,
        end=first + blocks,
        head=at == 0,
        is_host=at == 0,
        busy=busy,
        stage_ms=stage_ms,
        resident_weight_bytes=int(blocks * 0.28 * GB),
        process_id=4000 + at,
    )


def serving(count: int = 5, *, relayed: int | None = 2) -> Serving:
    """A ring of the first `count` computers; the edge that leaves number `relayed` is relayed."""
    ring: list[RingMember] = []
    first = 0
    for at in range(count):
        ring.append(ring_member(at, first))
        first = ring[-1].end
    edges = tuple(
        RingEdge(
            from_member=member_id(at),
            to_member=member_id((at + 1) % count),
            path=PathKind.RELAYED if at == relayed else PathKind.DIRECT,
            rtt_ms=TRIPS_MS[at],
            after_ms=80.0,
            bytes_per_s=164_000.0,
        )
        for at in range(count)
        if count > 1
    )
    return Serving(
        is_host=True,
        group="Sunday group",
        model="Qwen3 32B",
        context=4096,
        ring=tuple(ring),
        edges=edges,
        pace=Pace(
            tokens_per_second=16.4,
            words_per_second=11.9,
            circuit_ms_p50=182.0,
            circuit_ms_p95=204.0,
            compute_ms_p50=121.0,
            in_flight_ms_p50=61.0,
            tokens=420,
        ),
        chatting=min(3, count),
        formed_in_s=4.2,
    )


def paused(count: int = 5, *, away: int = 3, away_s: float = 24.0) -> Serving:
    """The same while one computer does not answer."""
    shown = serving(count)
    gone = member_id(away)
    return msgspec.structs.replace(
        shown,
        ring=tuple(
            msgspec.structs.replace(one, busy=0.0, away_s=away_s if one.member == gone else None) for one in shown.ring
        ),
        edges=tuple(
            msgspec.structs.replace(edge, path=None, rtt_ms=None)
            if gone in {edge.from_member, edge.to_member}
            else edge
            for edge in shown.edges
        ),
        paused=Problem(
            title=f"{PEOPLE[away][0]} stopped answering",
            advice=("Its lid may be closed or its network gone. If it returns, the answer goes on where it was."),
        ),
        grace_left_s=60.0 - away_s,
    )


def ended() -> Ended:
    return Ended(
        reason=Problem(title="The host ended the session", advice="Your conversations stay here."),
        failed=False,
    )


def snapshot(session: SessionView, *, me: int = 0) -> Snapshot:
    return Snapshot(
        me=ThisComputer(member=member_id(me), machine=ring_member(me, 0).machine),
        models=(),
        session=session,
    )
