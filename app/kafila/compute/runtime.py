"""What the engine has of a stage: blocks that it loads, and frames that go in and come out.

Everything of MLX happens on its own thread; the event loop never waits for it, and only bytes,
numbers and text come back.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kafila.compute.mlx_thread import MlxThread
from kafila.compute.part import Part, Sampled
from kafila.domain.commands import ChatMessage
from kafila.domain.ids import RequestId
from kafila.domain.model import ModelSpec
from kafila.protocol.frames import ActivationFrame, RefusalFrame

if TYPE_CHECKING:
    from kafila.compute.worker import Worker


class StageRuntime:
    """One member's stage. Calls are served one after another, in the order they were made.

    Several runtimes may share a thread; whoever made the thread closes it.
    """

    def __init__(self, thread: MlxThread) -> None:
        self._thread = thread
        self._worker: Worker | None = None

    async def load(  # noqa: PLR0913  # a plan's share, its bounds and where its files are
        self,
        folder: Path,
        spec: ModelSpec,
        *,
        first: int,
        end: int,
        head: bool,
        epoch: int,
        tiling: bytes,
        last: bool,
        context: int,
        concurrency: int,
        progress: Callable[[int, int], None],
    ) -> int:
        """Load blocks [first, end), and the head's tensors; give back the bytes now in memory.

        `progress` gets bytes done and bytes in all, on the event loop. What was loaded before
        is dropped first. Raises UserError where the folder lacks what is needed. Cancelled, it
        stops after the block that it is at.
        """
        await self.unload()
        loop = asyncio.get_running_loop()
        part = Part(
            first=first,
            end=end,
            head=head,
            last=last,
            epoch=epoch,
            tiling=tiling,
            context=context,
            concurrency=concurrency,
        )

        abandoned = threading.Event()

        def report(done: int, total: int) -> None:
            if abandoned.is_set():
                raise _AbandonedError
            loop.call_soon_threadsafe(progress, done, total)

        try:
            worker = await self._thread.run(_new_worker, folder, spec, part, report)
        except asyncio.CancelledError:
            abandoned.set()
            raise
        self._worker = worker
        return worker.resident_bytes

    async def forward(self, frame: ActivationFrame) -> ActivationFrame | RefusalFrame:
        """The frame behind this member's blocks, with its span; or why it was refused.

        Raises PeerError for a frame that no honest head sends.
        """
        return await self._thread.run(self._loaded.forward, frame)

    async def begin(
        self,
        request: RequestId,
        position: int,
        ids: Sequence[int],
        *,
        digests: bytes,
        last_only: bool,
    ) -> ActivationFrame | RefusalFrame:
        """On the head: embed token ids at `position` and run the own blocks on them.

        Raises UserError where the sequence would outgrow the session's context.
        """
        return await self._thread.run(self._loaded.begin, request, position, ids, digests, last_only=last_only)

    async def sample(self, frame: ActivationFrame, *, temperature: float | None, top_p: float | None) -> Sampled:
        """On the head: the next token of the sequence, whose frame came round the ring.

        At temperature 0 it is the likeliest one. None: as the model's makers advise.
        """
        return await self._thread.run(self._loaded.sample, frame, temperature=temperature, top_p=top_p)

    async def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """On the head: a conversation as token ids, in the model's chat template."""
        return await self._thread.run(self._loaded.text.prompt_ids, messages)

    async def begin_text(self, request: RequestId) -> None:
        """On the head: a new answer begins, whatever text of the sequence was pending."""
        await self._thread.run(self._loaded.text.begin, request)

    async def end_text(self, request: RequestId) -> str:
        """On the head: an answer stops short of its end; the text that was still held back."""
        return await self._thread.run(self._loaded.text.end, request)

    async def release(self, request: RequestId) -> None:
        """Free the caches of a sequence, if any are held."""
        await self._thread.run(self._loaded.release, request)

    async def unload(self) -> None:
        """Drop the blocks and all caches."""
        if self._worker is not None:
            dropped = [self._worker]
            self._worker = None
            await self._thread.run(_drop, dropped)

    async def close(self) -> None:
        """The runtime is not used any more."""
        await self.unload()

    @property
    def _loaded(self) -> "Worker":
        if self._worker is None:
            message = "no blocks are loaded"
            raise RuntimeError(message)
        return self._worker


class _AbandonedError(Exception):
    """Nobody waits any more for what is being loaded."""


def _new_worker(folder: Path, spec: ModelSpec, part: Part, progress: Callable[[int, int], None]) -> "Worker":
    # What was abandoned may still be in memory.
    import_module("kafila.compute.backend").reclaim()
    module = import_module("kafila.compute.worker")
    return module.Worker(folder, spec, part, progress)


def _drop(workers: "list[Worker]") -> None:
    """Free what a worker holds here, where it was made."""
    workers.clear()
    import_module("kafila.compute.backend").reclaim()
