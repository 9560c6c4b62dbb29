"""Frames on their way round: what a stage does with them, and how the head sends them off.

    head ──▶ stage ──▶ stage ──▶ head        one token, one circuit

A sequence's frames stay in order on their channel; a refusal travels on round the ring to the
head, which then starts the sequence anew.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from kafila.domain.ids import RequestId
from kafila.engine.meters import StageMeter
from kafila.engine.ports import Link, Stage
from kafila.protocol.digests import TokenDigests
from kafila.protocol.frames import (
    ActivationFrame,
    Frame,
    RefusalFrame,
    ReleaseFrame,
    decode_frame,
    encode_frame,
)
from kafila.protocol.links import Channel

log = logging.getLogger(__name__)

PREFILL_ROWS = 128
"""Prompt tokens that travel together; smaller chunks overlap better, larger ones cost less."""

PREFILL_AHEAD = 3
"""Chunks of one prompt that may be in the ring at once."""

CHANNELS = (Channel.DECODE, Channel.PREFILL)


async def run_stage(stage: Stage, *, predecessor: Link, successor: Link, meter: StageMeter) -> None:
    """Carry frames from one neighbour through this stage to the next, until a link ends."""

    async def carry(channel: Channel) -> None:
        while True:
            frame = decode_frame(await predecessor.receive(channel))
            onward = await pass_through(stage, frame, meter)
            await successor.send(channel, encode_frame(onward))

    async with asyncio.TaskGroup() as tasks:
        for channel in CHANNELS:
            tasks.create_task(carry(channel))


async def pass_through(stage: Stage, frame: Frame, meter: StageMeter) -> Frame:
    """What leaves this stage for what came in."""
    match frame:
        case ActivationFrame():
            onward = await stage.forward(frame)
            if isinstance(onward, ActivationFrame):
                now = asyncio.get_running_loop().time()
                meter.add(onward.spans_us[-1], rows=frame.rows, now=now)
            return onward
        case ReleaseFrame(request=request):
            await stage.release(request)
            return frame
        case RefusalFrame():
            return frame


class RingRefusedError(Exception):
    """The ring refused a sequence even from its start: a bug, or members of different plans."""


class StoppedError(Exception):
    """Nobody waits for the sequence any more; nothing of it is in flight."""


Stopped = Callable[[], bool]


class CachedSequence:
    """Tokens whose keys and values lie in the caches of every stage."""

    def __init__(self, request: RequestId, digest_key: bytes) -> None:
        self.request = request
        self.fed: list[int] = []
        self.digests = TokenDigests(digest_key)
        self.lock = asyncio.Lock()

    def reusable(self, ids: Sequence[int]) -> int:
        """How many leading tokens of `ids` need not be fed again; at least one always must be."""
        common = 0
        for ours, theirs in zip(self.fed, ids, strict=False):
            if ours != theirs:
                break
            common += 1
        return min(common, len(ids) - 1)


class Circuit:
    """The head's way of sending sequences round the ring."""

    def __init__(
        self,
        stage: Stage,
        *,
        epoch: int,
        tiling: bytes,
        meter: StageMeter,
        links: tuple[Link, Link] | None,
    ) -> None:
        """`links`: the successor's and the predecessor's; None in a ring of one."""
        self._stage = stage
        self._epoch, self._tiling = epoch, tiling
        self.meter = meter
        self._links = links
        self._back: dict[RequestId, asyncio.Queue[Frame]] = {}

    async def run(self) -> None:
        """Take in what comes back, until a link ends."""
        if self._links is None:
            return
        async with asyncio.TaskGroup() as tasks:
            for channel in CHANNELS:
                tasks.create_task(self._take_in(self._links[1], channel))

    async def _take_in(self, predecessor: Link, channel: Channel) -> None:
        while True:
            frame = decode_frame(await predecessor.receive(channel))
            waiting = self._back.get(frame.request)
            # What is still under way of an earlier plan finds nobody who waits for it.
            if waiting is not None and frame.epoch == self._epoch and not isinstance(frame, ReleaseFrame):
                waiting.put_nowait(frame)

    async def feed(
        self, sequence: CachedSequence, ids: Sequence[int], position: int, stopped: Stopped = lambda: False
    ) -> ActivationFrame:
        """Bring a sequence to exactly `ids`, of which `position` are believed to be cached.

        Returns the frame of the last token. Where a stage refuses, everything is fed from the
        start; raises RingRefusedError where that is refused too, and StoppedError where it is
        stopped between two chunks. The caller holds the lock.
        """
        frame = await self._feed(sequence, ids, position, stopped)
        if frame is None and position:
            log.info("sequence %d starts anew", sequence.request)
            frame = await self._feed(sequence, ids, 0, stopped)
        if frame is None:
            raise RingRefusedError
        return frame

    async def _feed(
        self, sequence: CachedSequence, ids: Sequence[int], position: int, stopped: Stopped
    ) -> ActivationFrame | None:
        """The last token's frame, or None where a stage refused; nothing is left in flight."""
        sequence.digests.rewind(position)
        sequence.digests.extend(ids[position:])
        del sequence.fed[position:]
        back = self._back[sequence.request] = asyncio.Queue()
        try:
            frame = await self._send_chunks(sequence, ids, position, back, stopped)
        finally:
            del self._back[sequence.request]
        if frame is not None:
            sequence.fed[position:] = ids[position:]
        return frame

    async def _send_chunks(
        self,
        sequence: CachedSequence,
        ids: Sequence[int],
        position: int,
        back: asyncio.Queue[Frame],
        stopped: Stopped,
    ) -> ActivationFrame | None:
        newest: Frame | None = None
        refused = False
        in_flight = 0
        for start in range(position, len(ids), PREFILL_ROWS):
            rows = ids[start : start + PREFILL_ROWS]
            if in_flight == PREFILL_AHEAD:
                newest, in_flight = await back.get(), in_flight - 1
                refused = refused or isinstance(newest, RefusalFrame)
            if refused or stopped():
                break
            frame = await self._stage.begin(
                sequence.request,
                start,
                rows,
                digests=sequence.digests.slice(start, len(rows)),
                last_only=True,
            )
            if isinstance(frame, RefusalFrame):
                refused = True
                break
            self.meter.add(frame.spans_us[-1], rows=len(rows), now=asyncio.get_running_loop().time())
            await self._send(frame, back)
            in_flight += 1
        for _ in range(in_flight):
            newest = await back.get()
            refused = refused or isinstance(newest, RefusalFrame)
        if stopped():
            raise StoppedError
        return newest if isinstance(newest, ActivationFrame) and not refused else None

    async def _send(self, frame: ActivationFrame, back: asyncio.Queue[Frame]) -> None:
        if self._links is None:
            back.put_nowait(frame)
            return
        channel = Channel.DECODE if frame.rows == 1 else Channel.PREFILL
        await self._links[0].send(channel, encode_frame(frame))

    async def release(self, sequence: CachedSequence) -> None:
        """Free the sequence's caches on every stage."""
        await self._stage.release(sequence.request)
        if self._links is not None:
            frame = ReleaseFrame(epoch=self._epoch, tiling=self._tiling, request=sequence.request)
            await self._links[0].send(Channel.DECODE, encode_frame(frame))
