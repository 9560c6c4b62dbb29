"""The engine: performs the effects that `step` asks for, and turns what happens into events.

Every task has an owner: those of a session live in the session's own TaskGroup and end with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafila.domain.capability import Capability
from kafila.domain.chat import ChatEvent
from kafila.domain.commands import Command, LeaveSession
from kafila.domain.errors import PeerError, Problem, UserError
from kafila.domain.model import ModelSpec
from kafila.domain.snapshot import Snapshot, ThisComputer
from kafila.domain.wire import Output
from kafila.engine.events import (
    AnswerGuest,
    Broke,
    CancelAnswer,
    CloseInvitation,
    CloseSession,
    Effect,
    Event,
    Given,
    KeepMeetingPlace,
    KeepName,
    KeepRendezvous,
    LoadStage,
    Measure,
    MeasuredHere,
    OpenDoor,
    OpenSession,
    RenewInvitation,
    Send,
    SetPeers,
    StartAnswer,
    StartCompanions,
    Tell,
    Ticked,
    TurnOnce,
)
from kafila.engine.faults import first_cause
from kafila.engine.ports import Doors, Models, OpenEndpoint, Stage
from kafila.engine.session import Session
from kafila.engine.settings import SettingsFile
from kafila.engine.state import State, snapshot, step
from kafila.protocol.links import Address

if TYPE_CHECKING:
    from kafila.protocol.roster import Roster

log = logging.getLogger(__name__)

TICK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside the engine, as ports."""

    me: ThisComputer
    spki_sha256: bytes
    """The fingerprint of this device's public key."""
    sign_roster: "Callable[[Roster], bytes]"
    settings: SettingsFile
    models: Models
    doors: Doors
    open_endpoint: OpenEndpoint
    stage: Stage
    measure: Callable[[ModelSpec, Address | None], Awaitable[Capability]]
    """What this computer can do for a model, and what its network lets through, seen from a rendezvous."""
    engine_command: Sequence[str]
    """How another engine is started on this computer."""


@dataclass(slots=True)
class Engine:
    """One computer's part in sessions, one session at a time."""

    world: World
    say: Callable[[Output], None]
    _state: State = field(init=False)
    _events: asyncio.Queue[Event | None] = field(init=False, default_factory=asyncio.Queue)
    """None: it is over, once all that happened before has had its effect."""
    _session: Session | None = field(init=False, default=None)
    _said: Snapshot | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Begin with no session."""
        self._state = State(me=self.world.me, models=self.world.models.cards())

    async def run(self, commands: "asyncio.Queue[Command | None]") -> None:
        """Serve commands until None comes; then leave what there is to leave, and end."""
        async with asyncio.TaskGroup() as tasks:
            helpers = [
                tasks.create_task(self._take_commands(commands)),
                tasks.create_task(self._tick()),
            ]
            self._show()
            try:
                while (event := await self._events.get()) is not None:
                    await self._handle(event, tasks)
            finally:
                for helper in helpers:
                    helper.cancel()
                if self._session is not None:
                    await self._session.close()

    async def _take_commands(self, commands: "asyncio.Queue[Command | None]") -> None:
        while (command := await commands.get()) is not None:
            self._events.put_nowait(Given(command=command))
        self._events.put_nowait(Given(command=LeaveSession()))
        self._events.put_nowait(None)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._events.put_nowait(Ticked())

    async def _handle(self, event: Event, tasks: asyncio.TaskGroup) -> None:
        now = asyncio.get_running_loop().time()
        self._state, effects = step(self._state, event, now)
        for effect in effects:
            try:
                await self._perform(effect, tasks)
            except UserError as error:
                self._events.put_nowait(Broke(problem=error.problem))
        self._show()

    def _show(self) -> None:
        now = asyncio.get_running_loop().time()
        shown = snapshot(self._state, now)
        if shown != self._said:
            self._said = shown
            self.say(shown)

    # Effects -------------------------------------------------------------------------------------

    async def _perform(self, effect: Effect, tasks: asyncio.TaskGroup) -> None:
        match effect:
            case OpenSession() | OpenDoor():
                await self._close_session()
                self._session = Session(self.world, self._state.me, self._events.put_nowait)
                tasks.create_task(self._run_session(self._session, effect))
            case CloseSession():
                await self._close_session()
            case Tell(event=event):
                self._tell(event)
            case KeepName(machine=machine, owner=owner):
                self.world.settings.change(machine=machine, owner=owner)
            case KeepMeetingPlace(rendezvous=rendezvous):
                self.world.settings.change(rendezvous=rendezvous)
            case KeepRendezvous(address=address, certificate=certificate):
                self.world.settings.remember(address, certificate)
            case _ if self._session is not None:
                self._in_session(self._session, effect)
            case _:
                pass

    def _in_session(self, session: Session, effect: Effect) -> None:
        match effect:
            case Send(to=to, message=message):
                session.send(to, message)
            case SetPeers(peers=peers):
                session.set_peers(peers)
            case AnswerGuest(guest=guest, answer=answer):
                session.answer_guest(guest, answer)
            case RenewInvitation():
                session.renew_invitation()
            case CloseInvitation():
                session.close_invitation()
            case Measure(spec=spec):
                session.start(self._measure(spec, session.rendezvous()))
            case StartCompanions(link=link, count=count):
                session.start_companions(link, count)
            case _:
                self._in_ring(session, effect)

    def _in_ring(self, session: Session, effect: Effect) -> None:
        match effect:
            case LoadStage():
                session.stage.load(effect)
            case TurnOnce(epoch=epoch):
                session.stage.turn_once(epoch)
            case StartAnswer(asker=asker, ask=ask):
                session.stage.start_answer(asker, ask)
            case CancelAnswer(asker=asker, stop=stop):
                session.stage.cancel_answer(asker, stop)
            case _:
                pass

    def _tell(self, event: ChatEvent) -> None:
        self.say(event)

    async def _run_session(self, session: Session, opening: OpenSession | OpenDoor) -> None:
        try:
            await session.run(opening)
        except* Exception as group:  # noqa: BLE001  # whatever it was, the session ends and the engine stays
            self._broke(session, _problem_of(group))

    def _broke(self, session: Session, problem: Problem) -> None:
        if session is self._session:
            self._events.put_nowait(Broke(problem=problem))

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._show()
            await session.close()

    async def _measure(self, spec: ModelSpec, rendezvous: Address | None) -> None:
        capability = await self.world.measure(spec, rendezvous)
        self._events.put_nowait(MeasuredHere(capability=capability))


def _problem_of(group: BaseException) -> Problem:
    match first_cause(group):
        case UserError(problem=problem):
            return problem
        case PeerError(fault=fault):
            log.warning("another computer broke the protocol: %s", fault)
            return _PEER_BROKE
        case OSError() as error:
            log.warning("the session ended: %s", error.strerror)
            return _NETWORK_GONE
        case cause:
            log.info("the session failed", exc_info=cause)
            return _FAILED


_PEER_BROKE = Problem(
    title="Another computer said something that Kafila does not understand",
    advice="Make sure that everyone has the same version of Kafila, then try again.",
)
_NETWORK_GONE = Problem(
    title="The network failed",
    advice="Check that this computer is online, then try again.",
)
_FAILED = Problem(
    title="Kafila itself failed",
    advice="Host or join again. If it happens once more, start Kafila with --verbose and report what it says.",
)
