"""One member's part of a model at work: its weights, its caches, and on the head the text.

This is the side of `kafila.compute.runtime` that lives on the MLX thread. Import it there only.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx
import numpy as np

from kafila.compute.advice import read_advice
from kafila.compute.backend import from_bytes, on_cpu, to_bytes, wire_dtype
from kafila.compute.caches import CacheShelf, Refusal, room_for
from kafila.compute.loading import Progress, load_stage
from kafila.compute.part import Part, Sampled
from kafila.compute.sampling import choose
from kafila.compute.text import TextSide
from kafila.domain.errors import PeerError, Reason, UserError
from kafila.domain.ids import RequestId
from kafila.domain.model import ModelSpec
from kafila.protocol.frames import ActivationFrame, RefusalFrame, Refused

_MAX_SPAN_US = (1 << 32) - 1


class Worker:
    """A loaded part. Every method computes until its result is there."""

    def __init__(self, folder: Path, spec: ModelSpec, part: Part, progress: Progress) -> None:
        self.part = part
        self._spec = spec
        self._stage, self.resident_bytes = load_stage(folder, part, progress, name=spec.name)
        self._text = TextSide(folder, name=spec.name) if part.head else None
        self._advised = read_advice(folder)
        self._random = np.random.default_rng()
        self._shelf = CacheShelf(
            self._stage.new_caches,
            max_tokens=room_for(context=part.context, concurrency=part.concurrency),
        )
        self._dtype = _activation_dtype(self._stage.block_arrays(part.first))

    @property
    def text(self) -> TextSide:
        """The head's text side."""
        if self._text is None:
            message = "only the head has a tokenizer"
            raise RuntimeError(message)
        return self._text

    def forward(self, frame: ActivationFrame) -> ActivationFrame | RefusalFrame:
        """The frame behind this member's blocks."""
        started = time.perf_counter()
        if frame.epoch != self.part.epoch or frame.tiling != self.part.tiling:
            return self._refused(frame.request, frame.position, Refusal(reason=Refused.OTHER_PLAN, held=0))
        if frame.hidden != self._spec.hidden_size:
            fault = "hidden states of another model"
            raise PeerError(fault)
        if len(frame.payload) != frame.rows * frame.hidden * frame.dtype.size:
            fault = "a frame that was cut before the last stage"
            raise PeerError(fault)
        if frame.position + frame.rows > self.part.context:
            fault = "a sequence longer than the session's"
            raise PeerError(fault)
        hidden = from_bytes(frame.payload, frame.dtype, frame.hidden).astype(self._dtype)
        return self._advance(frame, hidden, started)

    def begin(
        self,
        request: RequestId,
        position: int,
        ids: Sequence[int],
        digests: bytes,
        *,
        last_only: bool,
    ) -> ActivationFrame | RefusalFrame:
        """The first hop of a frame: embed token ids, and run the head's own blocks."""
        started = time.perf_counter()
        if position + len(ids) > self.part.context:
            raise UserError(
                title="This conversation has become too long",
                advice="Begin a new one, or ask again with less text.",
                reason=Reason.TOO_LONG,
            )
        hidden = self._stage.embed(mx.array([list(ids)], mx.int32), position)
        frame = ActivationFrame(
            epoch=self.part.epoch,
            tiling=self.part.tiling,
            request=request,
            position=position,
            rows=len(ids),
            hidden=hidden.shape[2],
            dtype=wire_dtype(hidden),
            last_only=last_only,
            digests=digests,
            spans_us=(),
            payload=b"",
        )
        return self._advance(frame, hidden, started)

    def sample(self, frame: ActivationFrame, *, temperature: float | None, top_p: float | None) -> Sampled:
        """The token that follows the last row of a frame that went through all blocks."""
        started = time.perf_counter()
        row = frame.hidden * frame.dtype.size
        hidden = from_bytes(frame.payload[-row:], frame.dtype, frame.hidden).astype(self._dtype)
        logits = self._stage.unembed(hidden, frame.position + frame.rows - 1)[0, -1]
        advised = self._advised
        token = choose(
            np.array(logits.astype(mx.float32)),
            temperature=advised.temperature if temperature is None else temperature,
            top_p=advised.top_p if top_p is None else top_p,
            chance=self._random.random(),
        )
        text, ended = self.text.add(frame.request, token)
        return Sampled(token_id=token, text=text, ended=ended, span_us=_span_us(started))

    def release(self, request: RequestId) -> None:
        """Free what is kept of a sequence."""
        self._shelf.release(request)
        if self._text is not None:
            self._text.end(request)

    def _advance(self, frame: ActivationFrame, hidden: mx.array, started: float) -> ActivationFrame | RefusalFrame:
        taken = self._shelf.take(frame.request, frame.position, frame.rows, frame.digests)
        if isinstance(taken, Refusal):
            return self._refused(frame.request, frame.position, taken)
        hidden = self._stage.run(hidden, taken.caches, frame.position)
        if self.part.last and frame.last_only:
            hidden = hidden[:, -1:, :]
        hidden = mx.contiguous(hidden)
        mx.eval(hidden, [cache.state for cache in taken.caches])
        if frame.rows > 1:
            # Buffers of a long prompt's size would be kept for ever.
            mx.clear_cache()
        taken.extend(frame.digests)
        self._shelf.put(frame.request, taken)
        return ActivationFrame(
            epoch=frame.epoch,
            tiling=frame.tiling,
            request=frame.request,
            position=frame.position,
            rows=frame.rows,
            hidden=hidden.shape[2],
            dtype=wire_dtype(hidden),
            last_only=frame.last_only,
            digests=frame.digests,
            spans_us=(*frame.spans_us, _span_us(started)),
            payload=to_bytes(hidden),
        )

    def _refused(self, request: RequestId, position: int, refusal: Refusal) -> RefusalFrame:
        return RefusalFrame(
            epoch=self.part.epoch,
            tiling=self.part.tiling,
            request=request,
            reason=refusal.reason,
            position=position,
            held=refusal.held,
        )


def _span_us(started: float) -> int:
    return min(_MAX_SPAN_US, round((time.perf_counter() - started) * 1e6))


def _activation_dtype(arrays: dict[str, mx.array]) -> mx.Dtype:
    """What a block computes in: the floating-point type of most of its own parameters.

    A hidden state may come from a computer that computes in another. On a CPU it is float32,
    whatever its weights are stored in.
    """
    if on_cpu():
        return mx.float32
    sizes: dict[mx.Dtype, int] = {}
    for array in arrays.values():
        if mx.issubdtype(array.dtype, mx.floating):
            sizes[array.dtype] = sizes.get(array.dtype, 0) + array.size
    return max(sizes, key=lambda dtype: sizes[dtype], default=mx.float32)
