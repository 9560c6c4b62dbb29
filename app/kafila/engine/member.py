"""The part of a member, which every computer of a session plays, the host's own included.

welcomed ──▶ measured ──▶ (Form) loading ──▶ loaded ──▶ serving ──▶ ended
                            ▲                              │
                            └───────── a new plan ─────────┘
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafila.domain.chat import AnswerDone, AnswerFailed
from kafila.domain.commands import Ask, StopAnswer
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId, MemberId, SessionId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import Forming, Serving, WaitingRoom
from kafila.engine.events import (
    Answered,
    CancelAnswer,
    Effect,
    Event,
    FirstTokenBack,
    HeadSampled,
    Heard,
    LinkChanged,
    LoadStage,
    MeasuredHere,
    Send,
    SetPeers,
    StageFailed,
    StageLoaded,
    StageProgressed,
    StageSampled,
    StartAnswer,
    Tell,
    TurnOnce,
)
from kafila.protocol.control import (
    AnswerBroke,
    AnswerEvent,
    AnswerPart,
    EdgeReport,
    Failed,
    FirstToken,
    Form,
    GiveFirstToken,
    HeadReport,
    Loaded,
    Measured,
    Message,
    Progress,
    Question,
    StageReport,
    StopQuestion,
    View,
)
from kafila.protocol.links import (
    LinkEvent,
    LinkHeard,
    LinkLost,
    LinkQuiet,
    LinkUp,
    PathChanged,
    Peer,
)
from kafila.protocol.shown import view_from_host
from kafila.protocol.told import in_words

HOST_GRACE_S = 60.0
"""How long a member waits for a host that does not answer."""

FORMING_GRACE_S = 4.0
"""The same while the ring forms, when nobody has anything to lose by hearing at once."""

FIRST_LINK_S = 30.0
"""How long a member that was let in waits for a first word over its link with the host."""

Asked = tuple[ConversationId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """How a link runs."""

    path: PathKind
    rtt_ms: float | None
    since: float
    """When it took that path, or the link came about on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSeat:
    """What a member knows of its session."""

    me: MemberId
    host: MemberId
    host_name: str
    session: SessionId
    spec: ModelSpec
    context: int
    concurrency: int
    since: float = 0.0
    """When it was let in; the host was from the start."""
    form: Form | None = None
    form_at: float = 0.0
    hops: Mapping[MemberId, Hop] = field(default_factory=dict[MemberId, Hop])
    """How the links of this computer run; the one to the next member is an edge of the ring."""
    linked: frozenset[MemberId] = field(default_factory=frozenset[MemberId])
    """Those whose link is there, and who answer."""
    view: WaitingRoom | Forming | Serving | None = None
    host_silent_since: float | None = None
    failure: Problem | None = None
    """Why this computer cannot do its part."""
    asked: frozenset[Asked] = field(default_factory=frozenset[Asked])
    """Answers that this computer's person still waits for."""

    @property
    def successor(self) -> MemberId | None:
        """The next member of the ring; None in a ring of one, or before a plan."""
        if self.form is None or len(self.form.plan.shares) == 1:
            return None
        order = [share.member for share in self.form.plan.shares]
        return order[(order.index(self.me) + 1) % len(order)]


def step_member(seat: MemberSeat, event: Event, now: float) -> tuple[MemberSeat, list[Effect]]:
    """What a member makes of an event."""
    match event:
        case Heard(sender=sender, message=message):
            return _hear(seat, sender, message, now)
        case LinkChanged(event=change):
            return _link_changed(seat, change, now)
        case MeasuredHere(capability=capability):
            return seat, [Send(to=seat.host, message=Measured(capability=capability))]
        case Answered(asker=asker, event=answer):
            return _answered(seat, asker, answer)
        case StageFailed(epoch=epoch, reason=reason, problem=problem) if seat.form and epoch == seat.form.epoch:
            return replace(seat, failure=problem), [Send(to=seat.host, message=Failed(reason=reason))]
        case _:
            report = _report(event)
            current = seat.form is not None and getattr(event, "epoch", None) == seat.form.epoch
            return seat, [Send(to=seat.host, message=report)] if report and current else []


def _report(event: Event) -> Message | None:
    """What the host is told of something that happened to this computer's stage."""
    match event:
        case StageProgressed(epoch=epoch, step=step, done_bytes=done, total_bytes=total):
            return Progress(epoch=epoch, step=step, done_bytes=done, total_bytes=total)
        case StageLoaded(epoch=epoch, resident_weight_bytes=resident, process_id=process):
            return Loaded(epoch=epoch, resident_weight_bytes=resident, process_id=process)
        case FirstTokenBack(epoch=epoch):
            return FirstToken(epoch=epoch)
        case StageSampled(epoch=epoch, busy=busy, stage_ms=stage_ms, bytes_per_s=rate):
            return StageReport(epoch=epoch, busy=busy, stage_ms=stage_ms, bytes_per_s=rate)
        case HeadSampled(epoch=epoch, pace=pace, chatting=chatting):
            return HeadReport(epoch=epoch, pace=pace, chatting=chatting)
        case _:
            return None


def _hear(seat: MemberSeat, sender: MemberId, message: Message, now: float) -> tuple[MemberSeat, list[Effect]]:
    match message:
        case View(view=view) if sender == seat.host:
            return replace(seat, view=view_from_host(view)), []
        case Form() if sender == seat.host:
            return _form(seat, message, now)
        case GiveFirstToken(epoch=epoch) if sender == seat.host and _leads(seat, epoch):
            return seat, [TurnOnce(epoch=epoch)]
        case Question(ask=ask) if _leads(seat):
            return seat, [StartAnswer(asker=sender, ask=ask)]
        case StopQuestion(stop=stop) if _leads(seat):
            return seat, [CancelAnswer(asker=sender, stop=stop)]
        case AnswerPart(event=event) if seat.form and sender == seat.form.plan.head:
            return _answered(seat, seat.me, event)
        case _:
            return seat, []


def _leads(seat: MemberSeat, epoch: int | None = None) -> bool:
    form = seat.form
    return form is not None and form.plan.head == seat.me and epoch in (None, form.epoch)


def _form(seat: MemberSeat, form: Form, now: float) -> tuple[MemberSeat, list[Effect]]:
    seat = replace(seat, form=form, form_at=now)
    load = LoadStage(
        form=form,
        spec=seat.spec,
        host=seat.host,
        context=seat.context,
        concurrency=seat.concurrency,
    )
    return seat, [*_link_with(seat, form.peers), load, *_report_edge(seat)]


def _report_edge(seat: MemberSeat) -> list[Effect]:
    """Tell the host how the hop to the next member runs, if there is one."""
    if seat.form is None or seat.successor is None:
        return []
    hop = seat.hops.get(seat.successor) if seat.successor in seat.linked else None
    report = EdgeReport(
        epoch=seat.form.epoch,
        path=hop.path if hop else None,
        rtt_ms=hop.rtt_ms if hop else None,
        after_ms=max(0.0, hop.since - seat.form_at) * 1e3 if hop else 0.0,
    )
    return [Send(to=seat.host, message=report)]


def _link_with(seat: MemberSeat, peers: Sequence[Peer]) -> list[Effect]:
    # The host's own peers are all members, and the host part of the engine has set them.
    return [] if seat.me == seat.host else [SetPeers(peers=tuple(peers))]


def _link_changed(seat: MemberSeat, change: LinkEvent, now: float) -> tuple[MemberSeat, list[Effect]]:
    if change.peer == seat.host:
        match change:
            case LinkQuiet() | LinkLost():
                seat = replace(seat, host_silent_since=seat.host_silent_since or now)
            case LinkUp() | LinkHeard():
                seat = replace(seat, host_silent_since=None)
            case PathChanged():
                pass
    peer, hops, linked = change.peer, dict(seat.hops), seat.linked
    before = hops.get(peer)
    match change:
        case PathChanged(path=path, rtt_ms=rtt_ms):
            since = before.since if before and before.path is path else now
            hops[peer] = Hop(path=path, rtt_ms=rtt_ms, since=since)
        case LinkUp():
            # Until now nothing could travel, whatever path it would have taken.
            hops |= {peer: replace(before, since=now)} if before else {}
            linked |= {peer}
        case LinkHeard():
            linked |= {peer}
        case LinkQuiet():
            linked -= {peer}
        case LinkLost():
            hops.pop(peer, None)
            linked -= {peer}
    seat = replace(seat, hops=hops, linked=linked)
    return seat, _report_edge(seat) if peer == seat.successor else []


def gave_up(seat: MemberSeat, now: float) -> bool:
    """Whether the host has been silent for too long."""
    if seat.view is None and now - seat.since > FIRST_LINK_S:
        return True
    if seat.host_silent_since is None:
        return False
    patience_s = HOST_GRACE_S if isinstance(seat.view, Serving | WaitingRoom) else FORMING_GRACE_S
    return now - seat.host_silent_since > patience_s


def _answered(seat: MemberSeat, asker: MemberId, event: AnswerEvent) -> tuple[MemberSeat, list[Effect]]:
    if asker != seat.me:
        return seat, [Send(to=asker, message=AnswerPart(event=event))]
    key = (event.conversation, event.answer)
    if key not in seat.asked:
        return seat, []
    if isinstance(event, AnswerDone | AnswerBroke):
        seat = replace(seat, asked=seat.asked - {key})
    if isinstance(event, AnswerBroke):
        return seat, [Tell(event=_unanswered(*key, in_words(event.reason)))]
    return seat, [Tell(event=event)]


def ask(seat: MemberSeat, question: Ask) -> tuple[MemberSeat, list[Effect]]:
    """The person here asks the ring something."""
    if seat.form is None or not isinstance(seat.view, Serving):
        return seat, [Tell(event=_unanswered(question.conversation, question.answer, NOT_SERVING))]
    head = seat.form.plan.head
    seat = replace(seat, asked=seat.asked | {(question.conversation, question.answer)})
    if head == seat.me:
        return seat, [StartAnswer(asker=seat.me, ask=question)]
    return seat, [Send(to=head, message=Question(ask=question))]


def stop(seat: MemberSeat, wanted: StopAnswer) -> list[Effect]:
    """The person here has read enough of an answer."""
    if seat.form is None:
        return []
    if _leads(seat):
        return [CancelAnswer(asker=seat.me, stop=wanted)]
    return [Send(to=seat.form.plan.head, message=StopQuestion(stop=wanted))]


def give_up_answers(seat: MemberSeat, problem: Problem) -> list[Effect]:
    """Tell the person here that what is still open will not come."""
    return [Tell(event=_unanswered(conversation, answer, problem)) for conversation, answer in sorted(seat.asked)]


def _unanswered(conversation: ConversationId, answer: int, problem: Problem) -> AnswerFailed:
    return AnswerFailed(conversation=conversation, answer=answer, problem=problem)


NOT_SERVING = Problem(
    title="The ring is not answering yet",
    advice="Wait until the session has started, then ask again.",
)
