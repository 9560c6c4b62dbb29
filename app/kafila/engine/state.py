"""The session as one value, and the one function that changes it.

    NoSession ─host─▶ Opening ─▶ HostRole ──┐
        ▲  └─────join─▶ Entering ─▶ MemberRole ──┤
        └────────────── leave, end, failure ─────┘

Nothing here reads a clock, draws a random number or touches a socket: `now` is an argument, in
seconds of a clock that only goes forward.
"""

from dataclasses import dataclass, replace

from kafila.domain.chat import AnswerFailed
from kafila.domain.commands import (
    Admission,
    Ask,
    Command,
    HostSession,
    JoinSession,
    LeaveSession,
    MeetAt,
    Rename,
    StopAnswer,
    TryDemo,
)
from kafila.domain.errors import Problem, Reason
from kafila.domain.plan import Objective
from kafila.domain.snapshot import (
    Ended,
    Forming,
    Idle,
    Joining,
    JoinStep,
    ModelCard,
    Preparing,
    Serving,
    SessionView,
    Snapshot,
    ThisComputer,
    WaitingRoom,
)
from kafila.engine.events import (
    Broke,
    CloseSession,
    DoorStep,
    Effect,
    Event,
    Given,
    Heard,
    LinkChanged,
    Measure,
    OpenDoor,
    Opened,
    OpenSession,
    RendezvousMet,
    Send,
    SetPeers,
    Tell,
    Ticked,
    Welcomed,
)
from kafila.engine.host import end, step_host
from kafila.engine.hosting import Hosting, Over, Seat
from kafila.engine.member import (
    NOT_SERVING,
    MemberSeat,
    ask,
    gave_up,
    give_up_answers,
    step_member,
    stop,
)
from kafila.engine.this_computer import met, set_up
from kafila.engine.views import host_gone, host_view, member_view, name_of, shared_view
from kafila.protocol.control import End, Leaving, View
from kafila.protocol.links import LinkLost
from kafila.protocol.told import Told, in_words, own_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class NoSession:
    """Nothing is going on; `last` is how the last session or attempt ended."""

    last: Problem | Ended | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The host's session is being opened."""

    command: HostSession
    companions: int
    model_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRole:
    """This computer hosts, and is a member of its own session."""

    hosting: Hosting
    seat: MemberSeat
    shown: WaitingRoom | Forming | Serving | None = None
    """The view that the members have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entering:
    """This computer asks to be let in."""

    view: Joining


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRole:
    """This computer is a member of somebody else's session."""

    seat: MemberSeat


Role = NoSession | Opening | HostRole | Entering | MemberRole


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that the engine knows."""

    me: ThisComputer
    models: tuple[ModelCard, ...] = ()
    role: Role = NoSession()


Stepped = tuple[State, list[Effect]]


def step(state: State, event: Event, now: float) -> Stepped:
    """What follows from an event: the new state, and what is to be done."""
    if isinstance(event, Given) and isinstance(event.command, Rename | MeetAt):
        me, effects = set_up(state.me, event.command)
        return replace(state, me=me), effects
    if isinstance(event, RendezvousMet):
        me, effects = met(state.me, event)
        return replace(state, me=me), effects
    match state.role:
        case NoSession():
            return _idle(state, event)
        case Opening():
            return _opening(state, state.role, event)
        case HostRole():
            return _hosting(state, state.role, event, now)
        case Entering():
            return _entering(state, state.role, event, now)
        case MemberRole():
            return _member(state, state.role, event, now)


def snapshot(state: State, now: float) -> Snapshot:
    """Everything there is to see."""
    return Snapshot(me=state.me, models=state.models, session=_view(state.role, now))


def _view(role: Role, now: float) -> SessionView:
    match role:
        case NoSession(last=last):
            return last if isinstance(last, Ended) else Idle(problem=last)
        case Opening():
            return Preparing(doing=f"Getting {role.model_name} ready.")
        case HostRole(hosting=hosting):
            return host_view(hosting, now)
        case Entering(view=view):
            return view
        case MemberRole(seat=seat):
            return member_view(seat, now)


# No session --------------------------------------------------------------------------------------


def _idle(state: State, event: Event) -> Stepped:
    if not isinstance(event, Given):
        return state, []
    match event.command:
        case HostSession() as command:
            return _open(state, command, companions=0, loopback_only=False)
        case TryDemo(members=members):
            command = HostSession(
                model="demo",
                group="Try it here",
                # All members are this one computer, so that its engines have alike shares.
                objective=Objective.BALANCED,
                admission=Admission.ALL,
                start_at=members,
            )
            return _open(state, command, companions=members - 1, loopback_only=True)
        case JoinSession() as command:
            entering = Entering(view=Joining(step=JoinStep.FINDING))
            return replace(state, role=entering), [OpenDoor(command=command)]
        case LeaveSession():
            return replace(state, role=NoSession()), []
        case command:
            return state, _not_now(command)


def _open(state: State, command: HostSession, *, companions: int, loopback_only: bool) -> Stepped:
    name = next((card.name for card in state.models if card.id == command.model), "the model")
    opening = Opening(command=command, companions=companions, model_name=name)
    effect = OpenSession(command=command, loopback_only=loopback_only)
    return replace(state, role=opening), [effect]


def _not_now(command: Command) -> list[Effect]:
    if not isinstance(command, Ask):
        return []
    failed = AnswerFailed(conversation=command.conversation, answer=command.answer, problem=NOT_SERVING)
    return [Tell(event=failed)]


def _opening(state: State, opening: Opening, event: Event) -> Stepped:
    match event:
        case Opened():
            return _opened(state, opening, event)
        case Broke(problem=problem):
            return replace(state, role=NoSession(last=problem)), [CloseSession()]
        case Given(command=LeaveSession()):
            return replace(state, role=NoSession()), [CloseSession()]
        case Given(command=command):
            return state, _not_now(command)
        case _:
            return state, []


def _opened(state: State, opening: Opening, opened: Opened) -> Stepped:
    command = opening.command
    own_seat = Seat(
        member=state.me.member,
        machine=state.me.machine,
        spki_sha256=opened.spki_sha256,
        candidates=opened.candidates,
    )
    hosting = Hosting(
        group=command.group or f"{state.me.machine.name}’s group",
        model=opened.spec.name,
        opened=opened,
        context=min(command.context, opened.spec.max_context),
        concurrency=command.concurrency,
        objective=command.objective,
        admission=command.admission,
        start_at=command.start_at,
        companions=opening.companions,
        seats=(own_seat,),
    )
    seat = MemberSeat(
        me=state.me.member,
        host=state.me.member,
        host_name=state.me.machine.name,
        session=opened.session,
        spec=opened.spec,
        context=hosting.context,
        concurrency=hosting.concurrency,
    )
    role = HostRole(hosting=hosting, seat=seat)
    return replace(state, role=role), [Measure(spec=opened.spec)]


# The host ----------------------------------------------------------------------------------------


def _hosting(state: State, role: HostRole, event: Event, now: float) -> Stepped:
    match event:
        case Given(command=Ask() as question):
            seat, effects = ask(role.seat, question)
            return replace(state, role=replace(role, seat=seat)), effects
        case Given(command=StopAnswer() as wanted):
            return state, stop(role.seat, wanted)
        case Given(command=LeaveSession()):
            hosting, effects = end(role.hosting, Told(reason=Reason.HOST_ENDED), failed=False)
        case Broke(problem=problem):
            hosting, effects = end(role.hosting, Told(reason=Reason.HOST_FAILED), failed=True, here=problem)
        case _:
            hosting, effects = step_host(role.hosting, event, now)
    seat, more = step_member(role.seat, event, now)
    role = replace(role, hosting=hosting, seat=seat)
    return _show(state, role, [*effects, *more], event, now)


def _show(state: State, role: HostRole, effects: list[Effect], event: Event, now: float) -> Stepped:
    """Tell the members what there is to see: at once where it is another page, else on a tick."""
    if isinstance(role.hosting.stage, Over):
        over = role.hosting.stage
        effects += give_up_answers(role.seat, over.reason)
        ended = Ended(reason=over.reason, failed=over.failed)
        return replace(state, role=NoSession(last=ended)), [*effects, CloseSession()]
    view = host_view(role.hosting, now)
    if isinstance(view, Ended):
        return replace(state, role=role), effects
    shared = shared_view(view)
    if shared != role.shown and (isinstance(event, Ticked) or _other_page(shared, role.shown)):
        role = replace(role, shown=shared, seat=replace(role.seat, view=view))
        effects += [
            Send(to=seat.member, message=View(view=shared)) for seat in role.hosting.seats[1:] if seat.path is not None
        ]
    return replace(state, role=role), effects


def _other_page(view: WaitingRoom | Forming | Serving, shown: WaitingRoom | Forming | Serving | None) -> bool:
    if type(view) is not type(shown):
        return True
    if isinstance(view, Serving) and isinstance(shown, Serving):
        return (view.paused is None) != (shown.paused is None)
    return False


# Joining, and being a member ---------------------------------------------------------------------


def _entering(state: State, role: Entering, event: Event, now: float) -> Stepped:
    match event:
        case DoorStep():
            view = Joining(
                step=event.step,
                host=event.host,
                group=event.group,
                model=event.model,
                phrase=event.phrase,
            )
            return replace(state, role=replace(role, view=view)), []
        case Welcomed(welcome=welcome, host=host):
            seat = MemberSeat(
                me=state.me.member,
                host=welcome.host.member,
                host_name=host.name,
                session=welcome.session,
                spec=welcome.model,
                context=welcome.context,
                concurrency=welcome.concurrency,
                since=now,
            )
            effects: list[Effect] = [SetPeers(peers=(welcome.host,)), Measure(spec=welcome.model)]
            return replace(state, role=MemberRole(seat=seat)), effects
        case Broke(problem=problem):
            return replace(state, role=NoSession(last=problem)), [CloseSession()]
        case Given(command=LeaveSession()):
            return replace(state, role=NoSession()), [CloseSession()]
        case Given(command=command):
            return state, _not_now(command)
        case _:
            return state, []


def _member(state: State, role: MemberRole, event: Event, now: float) -> Stepped:
    seat = role.seat
    match event:
        case Given(command=Ask() as question):
            seat, effects = ask(seat, question)
        case Given(command=StopAnswer() as wanted):
            effects = stop(seat, wanted)
        case Given(command=LeaveSession()):
            goodbye = Send(to=seat.host, message=Leaving())
            return replace(state, role=NoSession()), [goodbye, CloseSession()]
        case Heard(sender=sender, message=End(told=told, failed=failed)) if sender == seat.host:
            if told.about == seat.me and seat.failure is not None:
                return _left(state, seat, own_failure(seat.failure), failed=failed)
            return _left(state, seat, in_words(told.reason, name_of(seat, told.about)), failed=failed)
        case Broke(problem=problem):
            state, effects = _left(state, seat, problem, failed=True)
            return state, [Send(to=seat.host, message=Leaving()), *effects]
        case LinkChanged(event=LinkLost(peer=peer)) if peer == seat.host:
            return _left(state, seat, _HOST_GONE, failed=True)
        case Ticked() if gave_up(seat, now):
            return _left(state, seat, host_gone(seat), failed=True)
        case _:
            seat, effects = step_member(seat, event, now)
    return replace(state, role=replace(role, seat=seat)), effects


def _left(state: State, seat: MemberSeat, reason: Problem, *, failed: bool) -> Stepped:
    ended = Ended(reason=reason, failed=failed)
    effects = [*give_up_answers(seat, reason), CloseSession()]
    return replace(state, role=NoSession(last=ended)), effects


_HOST_GONE = Problem(
    title="The connection to the host ended",
    advice="Ask the host whether the session is still open, and join again with a new code.",
)
