"""A joiner's way in: find the session, prove the code, wait to be let in, check the welcome."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError, Problem, UserError
from kafila.domain.snapshot import JoinStep
from kafila.engine.events import DoorStep, Event
from kafila.engine.known_rendezvous import met
from kafila.engine.ports import Doors, Endpoint, Exchange, Line
from kafila.protocol.attempts import CONFIRM_WITHIN_S
from kafila.protocol.control import Here, Welcome, decode_sealed, encode_message
from kafila.protocol.invitation import Code, parse_invitation
from kafila.protocol.invitation import Invitation as InvitationText
from kafila.protocol.links import Address
from kafila.protocol.pairing import (
    GoOn,
    Introduction,
    OtherVersion,
    PairedHost,
    TurnedAway,
    TurnedAwayReason,
    WrongCode,
)
from kafila.protocol.pake import EXCHANGE_ENTROPY_BYTES, JoinerExchange
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import ExchangeClosedError, SignallingEvent, SignallingLost
from kafila.protocol.roster import Roster, RosterKeeper
from kafila.protocol.trust import Pinned

log = logging.getLogger(__name__)

ADMISSION_PATIENCE_S = 600.0
"""How long a joiner waits to be let in."""

TURNS, TURN_S = 12, 1.0
"""How often, and how long after each other, a joiner knocks where others are at the door just then."""

SIGNALLING_PATIENCE_S = 6.0
"""How long a joiner waits for a rendezvous that has gone: it may be one that a host has taken along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a joiner has once it is let in."""

    welcome: Welcome
    host: Machine
    keeper: RosterKeeper
    """Takes in this host's rosters alone."""


class Knocker:
    """A joiner on its way in."""

    def __init__(
        self, doors: Doors, endpoint: Endpoint, me: Introduction, *, happened: Callable[[Event], None]
    ) -> None:
        self._doors = doors
        self._endpoint = endpoint
        self._me = me
        self._happened = happened
        self.line: Line | None = None
        self._exchange: Exchange | None = None
        self._patience: asyncio.TimerHandle | None = None

    async def enter(self, text: str, rendezvous: RendezvousAt | None, tasks: asyncio.TaskGroup) -> Entry:
        """Find the session, prove the code, wait to be let in. Raises UserError with what went wrong."""
        invitation = parse_invitation(text, self._doors.words)
        if not isinstance(invitation, InvitationText):
            problem = invitation.problem()
            raise UserError(title=problem.title, advice=problem.advice)
        self._happened(DoorStep(step=JoinStep.FINDING))
        exchange = self._exchange = await self._call(invitation, rendezvous, tasks)
        self._happened(DoorStep(step=JoinStep.SPEAKING))
        try:
            async with asyncio.timeout(CONFIRM_WITHIN_S):
                exchange, paired = await self._pair_in_turn(exchange, invitation.code)
                await exchange.say(paired.channel.seal(encode_message(Here(candidates=self._endpoint.candidates()))))
            self._happened(
                DoorStep(
                    step=JoinStep.WAITING,
                    host=paired.machine,
                    group=paired.group,
                    model=paired.model,
                    phrase=paired.phrase,
                )
            )
            async with asyncio.timeout(ADMISSION_PATIENCE_S):
                answer = decode_sealed(paired.channel.open(await exchange.hear()))
        except TimeoutError:
            raise UserError(title=_SILENT.title, advice=_SILENT.advice) from None
        except (ExchangeClosedError, PeerError) as error:
            log.info("joining ended: %s", type(error).__name__)
            raise UserError(title=_BROKEN_OFF.title, advice=_BROKEN_OFF.advice) from None
        exchange.hang_up()
        if not isinstance(answer, Welcome):
            raise UserError(title=_DECLINED.title, advice=_DECLINED.advice)
        return self._check(answer, paired)

    async def _call(
        self, invitation: InvitationText, rendezvous: RendezvousAt | None, tasks: asyncio.TaskGroup
    ) -> Exchange:
        """Reach the host by the first of the possible ways that leads to it."""
        nameplate = invitation.code.nameplate
        failure = UserError(
            title=f"No session answers to {nameplate}",
            advice="Check the number with the person hosting. On another network, use the invitation link.",
        )
        tried = set[Address]()
        ways = _ways(invitation, rendezvous)
        for nearby in (False, True):
            for at in await self._doors.find(nameplate) if nearby else ways:
                if at.address in tried:
                    continue
                tried.add(at.address)
                try:
                    return await self._call_at(at, nameplate, tasks, is_configured=at is rendezvous)
                except UserError as error:
                    failure = error
        raise failure

    async def _call_at(
        self, at: RendezvousAt, nameplate: int, tasks: asyncio.TaskGroup, *, is_configured: bool
    ) -> Exchange:
        line = await self._doors.line(at, tasks=tasks, on_event=self._signalling)
        if is_configured and (news := met(at, line.trust)):
            self._happened(news)
        try:
            exchange, seat = await line.call(nameplate)
        except UserError:
            await line.close()
            raise
        self.line = line
        await self._endpoint.take_seat(seat)
        return exchange

    def _signalling(self, event: SignallingEvent) -> None:
        log.info("signalling: %s", type(event).__name__)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if isinstance(event, SignallingLost) and self._exchange is not None:
            # Nobody else would say that this exchange leads nowhere any more.
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(SIGNALLING_PATIENCE_S, self._exchange.hang_up)

    async def _pair_in_turn(self, exchange: Exchange, code: Code) -> tuple[Exchange, PairedHost]:
        """Prove the code; a host that has its hands full is called again. With the exchange that led in."""
        turns = TURNS
        while not isinstance(answer := await self._pair(exchange, code), PairedHost):
            turns -= 1
            busy = isinstance(answer, TurnedAway) and answer.reason is TurnedAwayReason.BUSY
            if self.line is None or not busy or not turns:
                problem = answer.problem()
                raise UserError(title=problem.title, advice=problem.advice)
            exchange.hang_up()
            await asyncio.sleep(TURN_S * (0.5 + secrets.randbelow(1000) / 1000))
            exchange, seat = await self.line.call(code.nameplate)
            self._exchange = exchange
            await self._endpoint.take_seat(seat)
        return exchange, answer

    async def _pair(self, exchange: Exchange, code: Code) -> PairedHost | WrongCode | OtherVersion | TurnedAway:
        machine = JoinerExchange(
            code=code,
            me=self._me,
            words=self._doors.words,
            entropy=secrets.token_bytes(EXCHANGE_ENTROPY_BYTES),
        )
        await exchange.say(machine.hello)
        while True:
            match machine.receive(await exchange.hear()):
                case GoOn(reply=reply):
                    await exchange.say(reply)
                case answer:
                    return answer

    def _check(self, welcome: Welcome, paired: PairedHost) -> Entry:
        """A welcome is believed only from the host that proved the code."""
        keeper = RosterKeeper(host_spki_sha256=paired.spki_sha256, session=paired.session)
        same_host = (
            welcome.session == paired.session
            and welcome.host.member == paired.member
            and welcome.host.spki_sha256 == paired.spki_sha256
        )
        roster = keeper.accept(welcome.roster) if same_host else None
        if not isinstance(roster, Roster) or not any(
            entry.spki_sha256 == self._me.spki_sha256 for entry in roster.entries
        ):
            raise UserError(title=_BROKEN_OFF.title, advice=_BROKEN_OFF.advice)
        return Entry(welcome=welcome, host=paired.machine, keeper=keeper)


def _ways(invitation: InvitationText, rendezvous: RendezvousAt | None) -> tuple[RendezvousAt, ...]:
    """The configured rendezvous first. Of its certificate a link knows more than an address alone."""
    linked = invitation.ways()
    if rendezvous is None:
        return linked
    if isinstance(rendezvous.trust, Pinned) and not rendezvous.trust.remembered:
        return (rendezvous, *linked)
    return (next((way for way in linked if way.address == rendezvous.address), rendezvous), *linked)


_DECLINED = Problem(title="The host did not let this computer in", advice="Ask them, then use the code again.")
_SILENT = Problem(
    title="The host has not let you in", advice="Ask them whether they are there, then use the code again."
)
_BROKEN_OFF = Problem(title="The host broke off", advice="The code may have ended. Ask the host for a new one.")
