"""A ring of stages in one process, joined by the bytes of their frames; and chats over it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from kafila.compute.mlx_thread import MlxThread
from kafila.compute.runtime import StageRuntime
from kafila.domain.ids import RequestId
from kafila.domain.model import ModelSpec
from kafila.protocol.digests import TokenDigests
from kafila.protocol.frames import ActivationFrame, RefusalFrame, decode_frame, encode_frame
from kafila.weights.model_folder import read_model

if TYPE_CHECKING:
    from kafila.compute.part import Sampled

EPOCH, TILING = 3, b"tiling-8"


class Refused(Exception):  # noqa: N818  # what a test expects
    """A stage refused a frame."""

    def __init__(self, frame: RefusalFrame) -> None:
        super().__init__(frame.reason)
        self.frame = frame


class Ring:
    """Stages in ring order, the head first."""

    def __init__(self, stages: Sequence[StageRuntime], resident: Sequence[int], spec: ModelSpec) -> None:
        self.stages, self.resident, self.spec = stages, resident, spec

    @property
    def head(self) -> StageRuntime:
        return self.stages[0]

    async def turn(
        self, request: RequestId, position: int, ids: Sequence[int], digests: bytes, *, last_only: bool
    ) -> ActivationFrame:
        """Once round the ring, through bytes at every hop."""
        frame = await self.head.begin(request, position, ids, digests=digests, last_only=last_only)
        for stage in self.stages[1:]:
            arrived = decode_frame(encode_frame(frame))
            if not isinstance(arrived, ActivationFrame):
                break
            frame = await stage.forward(arrived)
        if isinstance(frame, RefusalFrame):
            raise Refused(frame)
        home = decode_frame(encode_frame(frame))
        assert isinstance(home, ActivationFrame)
        return home


class Chat:
    """One sequence, which keeps what it can of the turn before, as a head does."""

    def __init__(self, ring: Ring, request: int = 1) -> None:
        self._ring = ring
        self._request = RequestId(request)
        self._digests = TokenDigests(b"a session's key")
        self._ids: list[int] = []
        self.reused = 0
        self.text = ""
        self.last: Sampled | None = None

    async def ask(self, prompt: Sequence[int], tokens: int, *, chunk: int = 512) -> list[int]:
        """Greedy tokens behind a prompt, which begins with whatever of it was fed before."""
        fresh = list(prompt)
        kept = 0
        while kept < len(self._ids) and kept < len(fresh) - 1 and self._ids[kept] == fresh[kept]:
            kept += 1
        self.reused = kept
        del self._ids[kept:]
        self._digests.rewind(kept)
        await self._ring.head.begin_text(self._request)
        # The last token of a prompt goes by itself, as in mlx-lm.
        waiting = fresh[kept:-1]
        while waiting:
            await self._feed(waiting[:chunk])
            del waiting[:chunk]
        token, answer, self.text = fresh[-1], list[int](), ""
        while len(answer) < tokens:
            frame = await self._feed([token])
            self.last = await self._ring.head.sample(frame, temperature=0, top_p=1)
            token = self.last.token_id
            self.text += self.last.text
            answer.append(token)
            if self.last.ended:
                break
        return answer

    async def _feed(self, ids: list[int]) -> ActivationFrame:
        position = len(self._ids)
        self._digests.extend(ids)
        self._ids += ids
        digests = self._digests.slice(position, len(ids))
        return await self._ring.turn(self._request, position, ids, digests, last_only=True)


@asynccontextmanager
async def open_ring(
    thread: MlxThread,
    folder: Path,
    cuts: Sequence[int],
    *,
    folders: Sequence[Path] | None = None,
    context: int = 512,
    concurrency: int = 2,
) -> AsyncGenerator[Ring]:
    """Stages between `cuts` of the model in `folder`, or each from its own of `folders`."""
    spec = read_model(folder)
    cuts = (0, *cuts, spec.blocks)
    stages: list[StageRuntime] = []
    resident: list[int] = []
    for number, (first, end) in enumerate(pairwise(cuts)):
        stage = StageRuntime(thread)
        stages.append(stage)
        resident.append(
            await stage.load(
                folders[number] if folders else folder,
                spec,
                first=first,
                end=end,
                head=number == 0,
                epoch=EPOCH,
                tiling=TILING,
                last=end == spec.blocks,
                context=context,
                concurrency=concurrency,
                progress=lambda _done, _total: None,
            )
        )
    try:
        yield Ring(stages, resident, spec)
    finally:
        for stage in stages:
            await stage.close()
