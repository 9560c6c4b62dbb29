"""This computer's part in the ring: fetch, load, connect, run, and as the head, answer.

What goes wrong here is told as an event; nothing of it ends the session by itself.
"""

import asyncio
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING

from kafila.domain.commands import Ask, StopAnswer
from kafila.domain.errors import PeerError, Reason, UserError
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import FormStep
from kafila.engine.events import (
    Answered,
    Event,
    FirstTokenBack,
    HeadSampled,
    LoadStage,
    StageFailed,
    StageLoaded,
    StageProgressed,
    StageSampled,
)
from kafila.engine.faults import first_cause
from kafila.engine.head import Head
from kafila.engine.meters import Rate, StageMeter
from kafila.engine.ports import Link, ReadRange
from kafila.engine.ring import Circuit, run_stage
from kafila.protocol.links import LinkClosed

if TYPE_CHECKING:
    from kafila.engine.engine import World

log = logging.getLogger(__name__)

SAMPLE_S = 0.5

Start = Callable[[Coroutine[None, None, None]], "asyncio.Task[None] | None"]


class StageWork:
    """The stage of one session, from one plan to the next."""

    def __init__(  # all that a session lends it
        self,
        world: "World",
        me: MemberId,
        *,
        happened: Callable[[Event], None],
        start: Start,
        connected: Callable[[MemberId], Awaitable[Link]],
        read_from_host: ReadRange,
    ) -> None:
        self._world = world
        self._me = me
        self._happened = happened
        self._start = start
        self._connected = connected
        self._read_from_host = read_from_host
        self._running: asyncio.Task[None] | None = None
        self._head: Head | None = None
        self._turn_wanted: int | None = None
        """The epoch whose first token was asked for, perhaps before this computer had all its links."""
        self._answers: asyncio.TaskGroup | None = None
        """Answers end with the ring that they are written by."""

    def load(self, order: LoadStage) -> None:
        """Load this computer's blocks, and run them from then on."""
        earlier, self._head, self._answers = self._running, None, None
        self._running = self._start(self._run_after(earlier, order))

    async def _run_after(self, earlier: "asyncio.Task[None] | None", order: LoadStage) -> None:
        if earlier is not None:
            earlier.cancel()
            await asyncio.wait([earlier])
        await self._run(order)

    async def _run(self, order: LoadStage) -> None:
        epoch = order.form.epoch
        try:
            resident = await self._load(order)
            self._happened(StageLoaded(epoch=epoch, resident_weight_bytes=resident, process_id=os.getpid()))
            await self._serve(order)
        except* LinkClosed:
            log.info("the ring of epoch %d is open", epoch)
        except* Exception as group:  # noqa: BLE001  # whatever it was, the others are told
            self._happened(failure_of(group, epoch))

    async def _load(self, order: LoadStage) -> int:
        form = order.form
        share = form.plan.share_of(self._me)

        def progressed(step: FormStep) -> Callable[[int, int], None]:
            def report(done: int, total: int) -> None:
                self._happened(StageProgressed(epoch=form.epoch, step=step, done_bytes=done, total_bytes=total))

            return report

        folder = await self._world.models.folder_for(
            order.spec,
            first=share.first,
            end=share.end,
            head=share.head,
            read=self._read_from_host,
            progress=progressed(FormStep.FETCH),
        )
        return await self._world.stage.load(
            folder,
            order.spec,
            first=share.first,
            end=share.end,
            head=share.head,
            epoch=form.epoch,
            tiling=form.tiling,
            last=form.plan.shares[-1].member == self._me,
            context=order.context,
            concurrency=order.concurrency,
            progress=progressed(FormStep.LOAD),
        )

    async def _serve(self, order: LoadStage) -> None:
        form, me = order.form, self._me
        ring = [share.member for share in form.plan.shares]
        links: tuple[Link, Link] | None = None
        if len(ring) > 1:
            at = ring.index(me)
            successor = await self._connected(ring[(at + 1) % len(ring)])
            predecessor = await self._connected(ring[at - 1])
            links = (successor, predecessor)
        meter = StageMeter()
        async with asyncio.TaskGroup() as tasks:
            if form.plan.head == me:
                circuit = Circuit(
                    self._world.stage,
                    epoch=form.epoch,
                    tiling=form.tiling,
                    meter=meter,
                    links=links,
                )
                self._head = Head(
                    self._world.stage,
                    circuit,
                    context=order.context,
                    concurrency=order.concurrency,
                    digest_key=secrets.token_bytes(32),
                    say=lambda asker, event: self._happened(Answered(asker=asker, event=event)),
                )
                self._answers = tasks
                if self._turn_wanted == form.epoch:
                    self.turn_once(form.epoch)
                tasks.create_task(circuit.run())
            elif links is not None:
                tasks.create_task(run_stage(self._world.stage, successor=links[0], predecessor=links[1], meter=meter))
            tasks.create_task(self._sample(form.epoch, meter, links))

    async def _sample(self, epoch: int, meter: StageMeter, links: tuple[Link, Link] | None) -> None:
        sent = Rate()
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now = loop.time()
            self._happened(
                StageSampled(
                    epoch=epoch,
                    busy=meter.busy(now),
                    stage_ms=meter.stage_ms(),
                    bytes_per_s=sent.of(links[0].tx_bytes, now) if links else 0.0,
                )
            )
            if self._head is not None:
                self._happened(HeadSampled(epoch=epoch, pace=self._head.pace(now), chatting=self._head.chatting()))

    # As the head ---------------------------------------------------------------------------------

    def turn_once(self, epoch: int) -> None:
        """One token round the ring, as soon as there is one."""
        self._turn_wanted = epoch
        if self._head is not None:
            self._start(self._turn_once(self._head, epoch))

    async def _turn_once(self, head: Head, epoch: int) -> None:
        await head.turn_once()
        self._happened(FirstTokenBack(epoch=epoch))

    def start_answer(self, asker: MemberId, ask: Ask) -> None:
        """Answer a question."""
        if self._head is not None and self._answers is not None:
            self._answers.create_task(self._head.answer(asker, ask))

    def cancel_answer(self, asker: MemberId, stop: StopAnswer) -> None:
        """Stop an answer."""
        if self._head is not None:
            self._head.stop(asker, stop)


def failure_of(error: BaseException, epoch: int) -> StageFailed:
    """What to tell of a failure of this computer's stage."""
    cause = first_cause(error)
    match cause:
        case UserError(problem=problem, reason=reason):
            return StageFailed(epoch=epoch, reason=reason, problem=problem)
        case PeerError(fault=fault):
            log.warning("the ring broke the protocol: %s", fault)
            return StageFailed(epoch=epoch, reason=Reason.NUMBERS)
        case _:
            log.info("the stage failed", exc_info=cause)
            return StageFailed(epoch=epoch, reason=Reason.FAILED)
