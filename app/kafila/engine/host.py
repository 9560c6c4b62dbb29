"""The part of the host: who is in, what the plan is, and when the ring serves.

gathering ──start──▶ forming ──first token──▶ serving ──▶ over
    ▲                   │                        │
    └── (stays until a plan is admitted)         └── paused while a member is away
"""

from dataclasses import replace

import msgspec

from kafila.domain.commands import (
    Admission,
    Admit,
    Command,
    Decline,
    DivideByHand,
    NewCode,
    PlanAnew,
    Remove,
    StartRing,
    TrustKnown,
)
from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.domain.snapshot import FormStep
from kafila.engine.events import (
    AnswerGuest,
    CompanionEnded,
    Effect,
    Event,
    Given,
    Guest,
    GuestCame,
    GuestGone,
    Heard,
    Invitation,
    InvitationChanged,
    LinkChanged,
    RenewInvitation,
    Send,
    StageFailed,
    StartCompanions,
    Ticked,
)
from kafila.engine.host_plan import (
    form_anew,
    form_ring,
    peer_of,
    plan_anew,
    replan,
    set_peers,
    sign_members,
    start_when_complete,
)
from kafila.engine.hosting import FormingRing, Gathering, Hosting, Over, Seat, ServingRing, Stepped
from kafila.protocol.control import (
    Declined,
    EdgeReport,
    End,
    Failed,
    FirstToken,
    GiveFirstToken,
    HeadReport,
    Leaving,
    Loaded,
    Measured,
    Message,
    Progress,
    StageReport,
    Welcome,
)
from kafila.protocol.links import (
    LinkEvent,
    LinkHeard,
    LinkLost,
    LinkQuiet,
    LinkUp,
    PathChanged,
)
from kafila.protocol.told import Told, in_words, own_failure

GRACE_S = 60.0
"""How long the ring waits for a member that does not answer."""

FORMING_SILENCE_S = 4.0
"""How much longer than a link's quiet time forming waits for a silent member."""

FORMING_DEADLINE_S = 300.0
"""Forming ends with a sentence where nothing at all has moved for so long."""


def step_host(hosting: Hosting, event: Event, now: float) -> Stepped:
    """What the host makes of an event."""
    if isinstance(hosting.stage, Over):
        return hosting, []
    match event:
        case Given(command=command):
            return _command(hosting, command, now)
        case InvitationChanged(invitation=invitation):
            return _invited(hosting, invitation)
        case GuestCame(guest=guest):
            return _guest_came(hosting, guest, now)
        case GuestGone(member=member):
            return _without_guest(hosting, member), []
        case LinkChanged(event=change):
            return _link_changed(hosting, change, now)
        case Heard(sender=sender, message=message):
            return _heard(hosting, sender, message, now)
        case StageFailed() | CompanionEnded():
            return _failed_here(hosting, event)
        case Ticked():
            return _look_at_the_clock(hosting, now)
        case _:
            return hosting, []


def _failed_here(hosting: Hosting, event: StageFailed | CompanionEnded) -> Stepped:
    if isinstance(event, CompanionEnded):
        return end(hosting, Told(reason=Reason.SILENT), failed=True, here=in_words(Reason.SILENT, event.name))
    if event.epoch != hosting.epoch:
        return hosting, []
    here = event.problem and own_failure(event.problem)
    return end(hosting, Told(reason=event.reason, about=hosting.me), failed=True, here=here)


# People ------------------------------------------------------------------------------------------


def _command(hosting: Hosting, command: Command, now: float) -> Stepped:
    match command:
        case Admit(member=member):
            return _admit(hosting, member, now)
        case Decline(member=member):
            guest = _guest(hosting, member)
            refusal = [AnswerGuest(guest=guest, answer=Declined())] if guest else []
            return _without_guest(hosting, member), list(refusal)
        case Remove(member=member) if isinstance(hosting.stage, Gathering):
            return _unseat(hosting, member, told=True)
        case NewCode():
            return replace(hosting, invitation=None), [RenewInvitation()]
        case TrustKnown(on=on):
            return _admit_known(replace(hosting, trust_known=on), now)
        case StartRing() if isinstance(hosting.stage, Gathering):
            return form_ring(hosting, now)
        case DivideByHand(blocks=blocks) if isinstance(hosting.stage, Gathering):
            return replan(replace(hosting, by_hand=blocks)), []
        case PlanAnew() if isinstance(hosting.stage, ServingRing):
            return _divide_anew(hosting, hosting.stage, now)
        case _:
            return hosting, []


def _divide_anew(hosting: Hosting, ring: ServingRing, now: float) -> Stepped:
    """Form the ring again where the stages themselves suggest another division."""
    found = plan_anew(hosting, ring)
    if not isinstance(found, Plan):
        word = found.sentence if found else _ASK_FIRST
        return replace(hosting, stage=replace(ring, word=word)), []
    word = found.advice[0] if found.advice else ""
    if _parts(found) == _parts(ring.plan):
        return replace(hosting, stage=replace(ring, word=word)), []
    return form_anew(replace(hosting, plan=found), found, now)


def _parts(plan: Plan) -> list[tuple[MemberId, int, int]]:
    return [(share.member, share.first, share.end) for share in plan.shares]


def _invited(hosting: Hosting, invitation: Invitation | None) -> Stepped:
    first = hosting.invitation is None and invitation is not None and hosting.companions
    hosting = replace(hosting, invitation=invitation)
    if invitation:
        hosting = replace(hosting, reach=invitation.reach, no_port=invitation.no_port)
    if first and invitation:
        count, hosting = hosting.companions, replace(hosting, companions=0)
        return hosting, [StartCompanions(link=invitation.link, count=count)]
    return hosting, []


def _guest(hosting: Hosting, member: MemberId) -> Guest | None:
    return next((guest for guest in hosting.guests if guest.member == member), None)


def _without_guest(hosting: Hosting, member: MemberId) -> Hosting:
    return replace(hosting, guests=tuple(g for g in hosting.guests if g.member != member))


def _guest_came(hosting: Hosting, guest: Guest, now: float) -> Stepped:
    if not isinstance(hosting.stage, Gathering) or guest.member == hosting.me:
        return hosting, [AnswerGuest(guest=guest, answer=Declined())]
    hosting = _without_guest(hosting, guest.member)
    hosting = replace(hosting, guests=(*hosting.guests, _told_apart(hosting, guest)))
    if hosting.admission is Admission.ALL:
        return _admit(hosting, guest.member, now)
    return _admit_known(hosting, now)


def _told_apart(hosting: Hosting, guest: Guest) -> Guest:
    """The guest under a name that nobody else in the session has: “Attic mini (2)”."""
    others = (*hosting.seats, *hosting.guests)
    taken = {one.machine.name for one in others if one.member != guest.member}
    name, number = guest.machine.name, 1
    while name in taken:
        number += 1
        name = f"{guest.machine.name} ({number})"
    return replace(guest, machine=msgspec.structs.replace(guest.machine, name=name))


def _admit_known(hosting: Hosting, now: float) -> Stepped:
    effects: list[Effect] = []
    for guest in hosting.guests if hosting.trust_known else ():
        if guest.known:
            hosting, more = _admit(hosting, guest.member, now)
            effects += more
    return hosting, effects


def _admit(hosting: Hosting, member: MemberId, now: float) -> Stepped:
    guest = _guest(hosting, member)
    if guest is None or not isinstance(hosting.stage, Gathering):
        return hosting, []
    seat = Seat(
        member=member,
        machine=guest.machine,
        spki_sha256=guest.spki_sha256,
        candidates=guest.candidates,
        silent_since=now,
    )
    # A computer that comes back (after a crash, say) takes its old seat. The link with what it was is
    # closed, or it would be held for as long as a silent peer is waited for, and none made with the new.
    others = replace(hosting, seats=tuple(s for s in hosting.seats if s.member != member))
    closing = [set_peers(others)] if hosting.seat(member) else []
    hosting = _without_guest(hosting, member)
    hosting = replace(hosting, seats=(*others.seats, seat), epoch=hosting.epoch + 1)
    welcome = Welcome(
        session=hosting.session,
        roster=sign_members(hosting),
        host=peer_of(hosting, hosting.seats[0], member),
        model=hosting.spec,
        context=hosting.context,
        concurrency=hosting.concurrency,
    )
    hosting = replan(hosting)
    return hosting, [*closing, set_peers(hosting), AnswerGuest(guest=guest, answer=welcome)]


def _unseat(hosting: Hosting, member: MemberId, *, told: bool) -> Stepped:
    if member == hosting.me or hosting.seat(member) is None:
        return hosting, []
    goodbye: list[Effect] = (
        [Send(to=member, message=End(told=Told(reason=Reason.REMOVED), failed=True))] if told else []
    )
    seats = tuple(seat for seat in hosting.seats if seat.member != member)
    hosting = replan(replace(hosting, seats=seats, epoch=hosting.epoch + 1))
    return hosting, [*goodbye, set_peers(hosting)]


# What members say --------------------------------------------------------------------------------


def _heard(hosting: Hosting, sender: MemberId, message: Message, now: float) -> Stepped:
    seat = hosting.seat(sender)
    if seat is None:
        return hosting, []
    match message:
        case Measured(capability=capability):
            if not isinstance(hosting.stage, Gathering):
                return hosting, []
            hosting = _reseat(hosting, replace(seat, capability=capability))
            return start_when_complete(replan(hosting), now)
        case Leaving():
            return _gone(hosting, seat)
        case Failed(reason=reason):
            if isinstance(hosting.stage, Gathering):
                hosting, effects = _unseat(hosting, sender, told=False)
                return replace(hosting, problem=in_words(reason, seat.machine.name)), effects
            return end(hosting, Told(reason=reason, about=sender), failed=True)
        case _:
            return _heard_of_ring(hosting, sender, message, now)


def _heard_of_ring(hosting: Hosting, sender: MemberId, message: Message, now: float) -> Stepped:
    stage = hosting.stage
    if (
        not isinstance(stage, FormingRing | ServingRing)
        or getattr(message, "epoch", None) != hosting.epoch
        or sender not in stage.rows
    ):
        return hosting, []
    row = stage.rows[sender]
    match message:
        case Progress(step=step, done_bytes=done, total_bytes=total):
            row = replace(row, step=step, done_bytes=done, total_bytes=total)
        case Loaded():
            row = replace(row, step=FormStep.CONNECT, loaded=message)
        case EdgeReport(path=path):
            since = now if row.unheard_since is None else row.unheard_since
            edge = _since_start(message, hosting.seat(sender))
            row = replace(row, edge=edge, unheard_since=None if path else since)
        case StageReport():
            row = replace(row, report=message)
        case HeadReport(pace=pace, chatting=chatting) if isinstance(stage, ServingRing):
            stage = replace(stage, pace=pace, chatting=chatting)
        case FirstToken() if isinstance(stage, FormingRing) and sender == stage.plan.head:
            serving = ServingRing(plan=stage.plan, rows=stage.rows, formed_in_s=now - stage.since)
            return replace(hosting, stage=serving), []
        case _:
            return hosting, []
    stage = replace(stage, rows={**stage.rows, sender: row})
    if isinstance(stage, FormingRing):
        stage = replace(stage, moved_at=now)
        return _ask_for_first_token(replace(hosting, stage=stage), stage)
    return replace(hosting, stage=stage), []


def _since_start(edge: EdgeReport, seat: Seat | None) -> EdgeReport:
    """A member's clock began when it had the plan; the start was half a round trip earlier."""
    if seat is None or seat.rtt_ms is None or not edge.after_ms:
        return edge
    return msgspec.structs.replace(edge, after_ms=edge.after_ms + seat.rtt_ms / 2)


def _ask_for_first_token(hosting: Hosting, stage: FormingRing) -> Stepped:
    alone = len(stage.rows) == 1
    ready = {
        member: row.loaded is not None and (alone or (row.edge is not None and row.edge.path))
        for member, row in stage.rows.items()
    }
    rows = {
        member: replace(row, step=FormStep.FIRST_TOKEN) if ready[member] and row.step is FormStep.CONNECT else row
        for member, row in stage.rows.items()
    }
    stage = replace(stage, rows=rows)
    if stage.first_token_asked or not all(ready.values()):
        return replace(hosting, stage=stage), []
    stage = replace(stage, first_token_asked=True)
    ask = Send(to=stage.plan.head, message=GiveFirstToken(epoch=hosting.epoch))
    return replace(hosting, stage=stage), [ask]


# Coming and going --------------------------------------------------------------------------------


def _reseat(hosting: Hosting, seat: Seat) -> Hosting:
    seats = tuple(seat if s.member == seat.member else s for s in hosting.seats)
    return replace(hosting, seats=seats)


def _link_changed(hosting: Hosting, change: LinkEvent, now: float) -> Stepped:
    seat = hosting.seat(change.peer)
    if seat is None:
        return hosting, []
    match change:
        case LinkUp() | LinkHeard():
            return _reseat(hosting, replace(seat, linked=True, silent_since=None)), []
        case PathChanged(path=path, rtt_ms=rtt_ms):
            return _reseat(hosting, replace(seat, path=path, rtt_ms=rtt_ms)), []
        case LinkQuiet():
            since = now if seat.silent_since is None else seat.silent_since
            return _reseat(hosting, replace(seat, silent_since=since, path=None)), []
        case LinkLost() if not seat.linked:  # the one that this computer had before it came again
            return hosting, []
        case LinkLost():
            return _gone(hosting, seat)


def _gone(hosting: Hosting, seat: Seat) -> Stepped:
    if isinstance(hosting.stage, Gathering):
        return _unseat(hosting, seat.member, told=False)
    return end(hosting, Told(reason=Reason.LEFT, about=seat.member), failed=True)


def _look_at_the_clock(hosting: Hosting, now: float) -> Stepped:
    silences = hosting.silences(now)
    away = max(silences, key=silences.__getitem__, default=None)
    silent_s = silences[away] if away else 0.0
    match hosting.stage:
        case Gathering() if away and silent_s > GRACE_S:
            return _unseat(hosting, away, told=False)
        case FormingRing() if away and silent_s > FORMING_SILENCE_S:
            return end(hosting, Told(reason=Reason.SILENT, about=away), failed=True)
        case FormingRing(moved_at=moved_at) if now - moved_at > FORMING_DEADLINE_S:
            return end(hosting, Told(reason=Reason.STUCK), failed=True)
        case ServingRing() if away and silent_s > GRACE_S:
            return end(hosting, Told(reason=Reason.SILENT, about=away), failed=True)
        case _:
            return hosting, []


def end(hosting: Hosting, told: Told, *, failed: bool, here: Problem | None = None) -> Stepped:
    """End the session for everyone, with a sentence. `here`: what this computer's person reads instead."""
    if isinstance(hosting.stage, Over):
        return hosting, []
    about = hosting.seat(told.about) if told.about else None
    reason = here or in_words(told.reason, *((about.machine.name,) if about else ()))
    goodbyes: list[Effect] = [Send(to=seat.member, message=End(told=told, failed=failed)) for seat in hosting.seats[1:]]
    goodbyes += [AnswerGuest(guest=guest, answer=Declined()) for guest in hosting.guests]
    return replace(hosting, stage=Over(reason=reason, failed=failed), guests=()), goodbyes


_ASK_FIRST = "Ask something first: the parts are timed while they work."
