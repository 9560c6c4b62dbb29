"""The host's door, at which people knock with a code.

Through the rendezvous both sides see nothing but opaque messages of each other. The host's side
counts failed guesses, and makes a new code at once when too many have ended the old one.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafila.domain.errors import PeerError, Problem
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import NoPort, Reach
from kafila.engine.events import Broke, Event, Guest, GuestCame, GuestGone, Invitation, InvitationChanged
from kafila.engine.known_rendezvous import met
from kafila.engine.own_rendezvous import OwnRendezvous
from kafila.engine.ports import Announcement, Doors, Endpoint, Exchange, Line
from kafila.protocol.attempts import CONFIRM_WITHIN_S
from kafila.protocol.control import Declined, Here, Welcome, decode_sealed, encode_message
from kafila.protocol.door import Closed, Door
from kafila.protocol.invitation import Code
from kafila.protocol.invitation import Invitation as InvitationText
from kafila.protocol.links import Address, Candidates
from kafila.protocol.pairing import (
    GoOn,
    Introduction,
    Offer,
    PairedJoiner,
)
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import ExchangeClosedError, HostSeat, HostSeatChanged, SeatGone, SignallingEvent
from kafila.protocol.trust import pin_of

if TYPE_CHECKING:
    from kafila.protocol.sealed import SealedChannel

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What stands at the door."""

    me: Introduction
    offer: Offer
    announce: bool
    """Whether the session is made known on the local network."""
    open_port: bool = False
    """Whether the router may be asked to let in who has the link, from anywhere."""


class HostDoor:
    """Lets people knock, as long as there is a code."""

    def __init__(
        self,
        doors: Doors,
        endpoint: Endpoint,
        sign: Sign,
        *,
        is_known: Callable[[MemberId], bool],
        happened: Callable[[Event], None],
    ) -> None:
        """`is_known`: whether a computer was let in before."""
        self._doors = doors
        self._endpoint = endpoint
        self._sign = sign
        self._is_known = is_known
        self._happened = happened
        self._own: OwnRendezvous | None = None
        self._reachable: tuple[Address, ...] = ()
        self._no_port: NoPort | None = None
        self.line: Line | None = None
        self._nameplate = 0
        self._code: Code | None = None
        self._spoken: bool | None = None
        """Whether a joiner finds the session by the code alone; None: not known yet."""
        self._announcement: Announcement | None = None
        self._door = Door(me=sign.me, offer=sign.offer, words=doors.words, entropy=secrets.token_bytes)
        self._exchanges = 0
        self._guests: dict[MemberId, tuple[Exchange, SealedChannel]] = {}
        self._changes: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()

    async def open(self, rendezvous: RendezvousAt | None, listen: Address | None, tasks: asyncio.TaskGroup) -> None:
        """Reach a rendezvous, or (None) run one here, and take this computer's seat at its relay.

        Where the router may be asked, one here is tried first: it serves if the rendezvous gets through to it.
        """
        if rendezvous is not None and not self._sign.open_port:
            at = rendezvous
        else:
            at = await self._serve(listen, rendezvous, tasks)
        if self._own is None:
            self._reachable = (at.address,)
        self.line = await self._doors.line(at, tasks=tasks, on_event=self._signalling)
        if at is rendezvous and (news := met(at, self.line.trust)):
            self._happened(news)
        seat = await self.line.open_session()
        await self._endpoint.take_seat(seat.seat)
        self._nameplate = seat.nameplate
        tasks.create_task(self._answer_knocks(self.line, tasks))
        tasks.create_task(self._make_changes())

    async def invite(self) -> None:
        """Make the first code."""
        await self._make_code(self._nameplate)

    async def _serve(
        self, listen: Address | None, witness: RendezvousAt | None, tasks: asyncio.TaskGroup
    ) -> RendezvousAt:
        """Run a rendezvous here; the address of the one to use, which is the witness where it cannot get through."""
        own = self._own = OwnRendezvous(self._doors, announced=self._sign.announce, changed=self._show)
        here = await own.open(listen, open_port=self._sign.open_port, tasks=tasks)
        if witness is None or await own.prove(witness):
            return here
        self._own, self._no_port = None, own.no_port
        await own.close()
        return witness

    async def close(self) -> None:
        """Leave the rendezvous, and end the one that runs here."""
        try:
            if self._announcement is not None:
                await self._announcement.stop()
            if self.line is not None:
                await self.line.close()
        finally:
            if self._own is not None:
                await self._own.close()

    # The code ------------------------------------------------------------------------------------

    async def _make_code(self, nameplate: int) -> None:
        code = self._code = self._door.open(nameplate)
        self._spoken = None
        if self._announcement is not None:
            await self._announcement.update(nameplate)
        elif self._sign.announce and self._own is not None:
            self._announcement = await self._doors.announce(nameplate, self._own.port, self._own.fingerprint)
        spoken = await self._can_be_spoken(nameplate)
        # Meanwhile the door may have been shut, or the code have ended.
        if self._code is code:
            self._spoken = spoken
            self._show()

    def _show(self) -> None:
        """Tell of the code, once it is known whether it is enough; and again when the reach is another."""
        if self._code is None or self._spoken is None:
            return
        own = self._own
        text = InvitationText(
            code=self._code,
            at=self._reachable if own is None else own.reachable,
            pin=None if self.line is None else pin_of(self.line.trust),
        )
        invitation = Invitation(
            code=self._code.spoken() if self._spoken else None,
            link=text.link(),
            reach=Reach.RENDEZVOUS if own is None else own.reach,
            no_port=self._no_port if own is None else own.no_port,
        )
        self._happened(InvitationChanged(invitation=invitation))

    async def _can_be_spoken(self, nameplate: int) -> bool:
        """Whether a joiner finds the session by the code alone: nearby, or by its own settings."""
        if self._own is None or not self._sign.announce:
            return True
        return bool(await self._doors.find(nameplate))

    def renew(self) -> None:
        """End the code, and make another."""
        self._changes.put_nowait(self._renew)

    def shut(self) -> None:
        """End the code; who is in stays in."""
        self._code = None
        self._door.close()
        if self.line is not None:
            self.line.close_nameplate()
        if self._announcement is not None:
            self._changes.put_nowait(self._take_back_announcement)

    async def _renew(self) -> None:
        if self.line is not None:
            self._code = None
            await self._make_code(await self.line.new_nameplate())

    async def _reseat(self, seat: HostSeat) -> None:
        await self._endpoint.take_seat(seat.seat)
        if self._code is not None and self._code.nameplate != seat.nameplate:
            await self._make_code(seat.nameplate)

    async def _take_back_announcement(self) -> None:
        announcement, self._announcement = self._announcement, None
        if announcement is not None:
            await announcement.stop()

    async def _make_changes(self) -> None:
        while True:
            change = await self._changes.get()
            await change()

    def _signalling(self, event: SignallingEvent) -> None:
        match event:
            case HostSeatChanged(seat=seat):
                self._changes.put_nowait(lambda: self._reseat(seat))
            case SeatGone():
                self._happened(Broke(problem=_RENDEZVOUS_FORGOT))
            case _:
                log.info("signalling: %s", type(event).__name__)

    # Knocks --------------------------------------------------------------------------------------

    async def _answer_knocks(self, line: Line, tasks: asyncio.TaskGroup) -> None:
        async for exchange in line.incoming():
            self._exchanges += 1
            tasks.create_task(self._receive(exchange, self._exchanges))

    async def _receive(self, exchange: Exchange, number: int) -> None:
        """One exchange, from the first message until the guest is answered or gone."""
        paired: PairedJoiner | None = None
        self._door.knock(number, exchange.remote)
        try:
            async with asyncio.timeout(CONFIRM_WITHIN_S):
                paired = await self._pair(exchange, number)
        except (ExchangeClosedError, TimeoutError) as error:
            log.info("an exchange ended without proof: %s", type(error).__name__)
        if paired is None:
            self._door.hang_up(number)
            self._renew_if_burned()
            exchange.hang_up()
            return
        try:
            await self._receive_guest(exchange, paired)
        except (ExchangeClosedError, TimeoutError, PeerError):
            waiting = self._guests.get(paired.member)
            if waiting is not None and waiting[0] is exchange:  # not if it has knocked again since
                del self._guests[paired.member]
                self._happened(GuestGone(member=paired.member))

    async def _pair(self, exchange: Exchange, number: int) -> PairedJoiner | None:
        now = asyncio.get_running_loop().time
        while True:
            match self._door.receive(number, await exchange.hear(), now()):
                case GoOn(reply=reply):
                    await exchange.say(reply)
                case PairedJoiner() as paired:
                    await exchange.say(paired.reply)
                    return paired
                case Closed(reply=reply, fault=fault):
                    log.info("an exchange is over: %s", fault or "it was turned away")
                    self._renew_if_burned()
                    if reply is not None:
                        await exchange.say(reply)
                    return None

    def _renew_if_burned(self) -> None:
        if self._door.burned and self._code is not None:
            log.warning("the code has ended after too many failed guesses")
            self._code = None
            self.renew()

    async def _receive_guest(self, exchange: Exchange, paired: PairedJoiner) -> None:
        async with asyncio.timeout(CONFIRM_WITHIN_S):
            here = decode_sealed(paired.channel.open(await exchange.hear()))
        if not isinstance(here, Here):
            fault = "a guest that does not say where it is"
            raise PeerError(fault)
        self._guests[paired.member] = (exchange, paired.channel)
        self._happened(GuestCame(guest=_guest(paired, here.candidates, known=self._is_known(paired.member))))
        # Nothing more is expected of a guest: what comes is the end of the exchange.
        await exchange.hear()
        fault = "a guest that speaks out of turn"
        raise PeerError(fault)

    async def answer(self, guest: Guest, answer: Welcome | Declined) -> None:
        """Tell a guest that it is let in, or not."""
        waiting = self._guests.pop(guest.member, None)
        if waiting is None:
            return
        exchange, channel = waiting
        with contextlib.suppress(ExchangeClosedError):
            await exchange.say(channel.seal(encode_message(answer)))
            exchange.hang_up()


def _guest(paired: PairedJoiner, candidates: Candidates, *, known: bool) -> Guest:
    return Guest(
        member=paired.member,
        machine=paired.machine,
        spki_sha256=paired.spki_sha256,
        candidates=candidates,
        phrase=paired.phrase,
        known=known,
    )


_RENDEZVOUS_FORGOT = Problem(
    title="The rendezvous has forgotten this session", advice="Host again, and send a new code."
)
