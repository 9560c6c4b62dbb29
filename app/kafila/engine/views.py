"""What there is to see of a session, derived from what is known of it."""

from collections.abc import Mapping

import msgspec

from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.domain.snapshot import (
    Ended,
    Forming,
    FormingMember,
    Joining,
    JoinStep,
    Member,
    Newcomer,
    RingEdge,
    RingMember,
    Serving,
    SessionView,
    WaitingRoom,
)
from kafila.engine.host import GRACE_S
from kafila.engine.hosting import (
    FormingRing,
    Gathering,
    Hosting,
    Over,
    Row,
    Seat,
    ServingRing,
)
from kafila.engine.member import HOST_GRACE_S, MemberSeat
from kafila.protocol.told import in_words


def name_of(seat: MemberSeat, member: MemberId | None) -> str:
    """What a member calls another of its session."""
    if member == seat.me:
        return "This computer"
    if member == seat.host:
        return seat.host_name
    match seat.view:
        case WaitingRoom(members=those) | Forming(rows=those) | Serving(ring=those):
            machines = {one.member: one.machine.name for one in those}
        case _:
            machines = {}
    return machines.get(member, "A computer") if member else "A computer"


def host_view(hosting: Hosting, now: float) -> WaitingRoom | Forming | Serving | Ended:
    """What the host sees."""
    match hosting.stage:
        case Gathering():
            return _waiting_room(hosting)
        case FormingRing(plan=plan, rows=rows):
            return Forming(
                is_host=True,
                group=hosting.group,
                model=hosting.model,
                plan=plan,
                rows=tuple(_forming_row(hosting, member, row) for member, row in rows.items()),
                edges=_edges(hosting, plan, rows),
            )
        case ServingRing():
            return _serving(hosting, hosting.stage, now)
        case Over(reason=reason, failed=failed):
            return Ended(reason=reason, failed=failed)


def shared_view(view: WaitingRoom | Forming | Serving) -> WaitingRoom | Forming | Serving:
    """The host's view as the members may see it: without the code, and without newcomers."""
    if isinstance(view, WaitingRoom):
        return msgspec.structs.replace(view, is_host=False, code=None, link=None, newcomers=(), problem=None)
    return msgspec.structs.replace(view, is_host=False)


def member_view(seat: MemberSeat, now: float) -> SessionView:
    """What a member sees: the host's view, or that the host does not answer."""
    view = seat.view
    if view is None:
        return Joining(step=JoinStep.MEASURING, model=seat.spec.name)
    if seat.host_silent_since is None:
        return view
    silent_s = now - seat.host_silent_since
    match view:
        case WaitingRoom():
            return msgspec.structs.replace(view, problem=_host_silent(seat))
        case Serving(ring=ring):
            return msgspec.structs.replace(
                view,
                ring=tuple(msgspec.structs.replace(m, away_s=silent_s) if m.is_host else m for m in ring),
                paused=_host_silent(seat),
                grace_left_s=max(0.0, HOST_GRACE_S - silent_s),
            )
        case Forming():
            return view


def _host_silent(seat: MemberSeat) -> Problem:
    return Problem(
        title=f"{seat.host_name} stopped answering",
        advice="It hosts the session. We wait a minute; nothing you wrote is lost.",
    )


def host_gone(seat: MemberSeat) -> Problem:
    """The sentence for a host that is waited for no longer."""
    heard = seat.host_silent_since is not None
    return Problem(
        title=f"{seat.host_name} {'stopped answering' if heard else 'does not answer'}",
        advice="It hosts the session, so the session is over. Ask for a new code when it is back.",
    )


def _waiting_room(hosting: Hosting) -> WaitingRoom:
    invitation = hosting.invitation
    return WaitingRoom(
        is_host=True,
        group=hosting.group,
        model=hosting.model,
        blocks=hosting.spec.blocks,
        context=hosting.context,
        concurrency=hosting.concurrency,
        code=invitation.code if invitation else None,
        link=invitation.link if invitation else None,
        reach=hosting.reach,
        no_port=hosting.no_port,
        trust_known=hosting.trust_known,
        starts_at=hosting.start_at,
        members=tuple(
            Member(
                member=seat.member,
                machine=seat.machine,
                is_host=seat.member == hosting.me,
                capability=seat.capability,
                path=seat.path,
            )
            for seat in hosting.seats
        ),
        newcomers=tuple(
            Newcomer(
                member=guest.member,
                machine=guest.machine,
                phrase=guest.phrase,
                known=guest.known,
            )
            for guest in hosting.guests
        ),
        plan=hosting.plan,
        problem=hosting.problem,
    )


def _forming_row(hosting: Hosting, member: MemberId, row: Row) -> FormingMember:
    return FormingMember(
        member=member,
        machine=_seat(hosting, member).machine,
        step=row.step,
        done_bytes=row.done_bytes,
        total_bytes=row.total_bytes,
    )


def _seat(hosting: Hosting, member: MemberId) -> Seat:
    seat = hosting.seat(member)
    if seat is None:
        raise KeyError(member)
    return seat


def _serving(hosting: Hosting, ring: ServingRing, now: float) -> Serving:
    silences = hosting.silences(now)
    away = max(silences, key=silences.__getitem__, default=None)
    return Serving(
        is_host=True,
        group=hosting.group,
        model=hosting.model,
        context=hosting.context,
        ring=tuple(_ring_member(hosting, ring, m, away_s=silences.get(m)) for m in ring.rows),
        edges=_edges(hosting, ring.plan, ring.rows),
        pace=ring.pace,
        chatting=ring.chatting,
        formed_in_s=ring.formed_in_s,
        paused=in_words(Reason.AWAY, _seat(hosting, away).machine.name) if away else None,
        grace_left_s=max(0.0, GRACE_S - silences[away]) if away else None,
        planned=ring.word,
    )


def _ring_member(hosting: Hosting, ring: ServingRing, member: MemberId, *, away_s: float | None) -> RingMember:
    seat, share, row = _seat(hosting, member), ring.plan.share_of(member), ring.rows[member]
    loaded, report = row.loaded, row.report
    return RingMember(
        member=member,
        machine=seat.machine,
        first=share.first,
        end=share.end,
        head=share.head,
        is_host=member == hosting.me,
        busy=report.busy if report else 0.0,
        stage_ms=report.stage_ms if report else None,
        resident_weight_bytes=loaded.resident_weight_bytes if loaded else 0,
        process_id=loaded.process_id if loaded else 0,
        away_s=away_s,
    )


def _edges(hosting: Hosting, plan: Plan, rows: Mapping[MemberId, Row]) -> tuple[RingEdge, ...]:
    order = [share.member for share in plan.shares]
    if len(order) == 1:
        return ()
    edges: list[RingEdge] = []
    for at, member in enumerate(order):
        successor = order[(at + 1) % len(order)]
        edge, report = rows[member].edge, rows[member].report
        silent = any(_seat(hosting, m).silent_since is not None for m in (member, successor))
        edges.append(
            RingEdge(
                from_member=member,
                to_member=successor,
                path=None if silent or edge is None else edge.path,
                rtt_ms=edge.rtt_ms if edge else None,
                after_ms=edge.after_ms if edge else 0.0,
                bytes_per_s=report.bytes_per_s if report else 0.0,
            )
        )
    return tuple(edges)
