"""A stage without a model, at the engine's port: its next token follows from all tokens before it.

It keeps what it was fed as a real stage keeps its caches, and refuses by the same rules, so that a
head that loses its place is noticed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kafila.domain.commands import ChatMessage
from kafila.domain.ids import RequestId
from kafila.domain.model import ModelSpec
from kafila.protocol.digests import DIGEST_BYTES
from kafila.protocol.frames import ActivationFrame, Dtype, RefusalFrame, Refused

EPOCH, TILING = 1, b"tiling!!"
END = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class ToySampled:
    token_id: int
    text: str
    ended: bool
    span_us: int = 10


def next_token(ids: Sequence[int]) -> int:
    """The toy model: any change of any token before changes what follows."""
    return int.from_bytes(hashlib.sha256(repr(list(ids)).encode()).digest()[:2], "big") % 90


def expected(prompt: Sequence[int], count: int) -> list[int]:
    """What a fresh process would say."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(next_token(ids))
    return ids[len(prompt) :]


@dataclass
class ToyStage:
    """Caches by request: the digests of what was fed, and on the head the tokens as well."""

    held: dict[RequestId, list[bytes]] = field(default_factory=dict[RequestId, list[bytes]])
    tokens: dict[RequestId, list[int]] = field(default_factory=dict[RequestId, list[int]])
    refuse_next: list[Refused] = field(default_factory=list[Refused])
    fed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Position and rows of every frame that was begun."""

    async def load(self, folder: Path, spec: ModelSpec, **share: object) -> int:
        raise AssertionError((folder, spec, share))

    async def unload(self) -> None:
        self.held.clear()

    async def release(self, request: RequestId) -> None:
        self.held.pop(request, None)

    async def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        return tuple(ord(c) % 90 for c in "|".join(message.text for message in messages))

    async def begin_text(self, request: RequestId) -> None:
        del request

    async def end_text(self, request: RequestId) -> str:
        del request
        return ""

    async def begin(
        self, request: RequestId, position: int, ids: Sequence[int], *, digests: bytes, last_only: bool
    ) -> ActivationFrame | RefusalFrame:
        self.fed.append((position, len(ids)))
        tokens = self.tokens.setdefault(request, [])
        tokens[position:] = ids
        frame = ActivationFrame(
            epoch=EPOCH,
            tiling=TILING,
            request=request,
            position=position,
            rows=len(ids),
            hidden=1,
            dtype=Dtype.FLOAT32,
            last_only=last_only,
            digests=digests,
            spans_us=(),
            payload=bytes(4 * len(ids)),
        )
        return await self.forward(frame)

    async def forward(self, frame: ActivationFrame) -> ActivationFrame | RefusalFrame:
        held = self.held.setdefault(frame.request, [])
        cut = [frame.digests[at : at + DIGEST_BYTES] for at in range(0, len(frame.digests), DIGEST_BYTES)]
        reason = self.refuse_next.pop(0) if self.refuse_next else None
        if reason is None and frame.position and frame.position >= len(held):
            reason = Refused.GAP
        elif reason is None and frame.position and held[frame.position] != cut[0]:
            reason = Refused.OTHER_TEXT
        if reason is not None:
            return RefusalFrame(
                epoch=EPOCH,
                tiling=TILING,
                request=frame.request,
                reason=reason,
                position=frame.position,
                held=len(held),
            )
        held[frame.position :] = cut
        return msgspec.structs.replace(frame, spans_us=(*frame.spans_us, 5))

    async def sample(self, frame: ActivationFrame, *, temperature: float | None, top_p: float | None) -> ToySampled:
        del temperature, top_p
        ids = self.tokens[frame.request][: frame.position + frame.rows]
        token = next_token(ids)
        return ToySampled(token_id=token, text=f"{token} ", ended=token == END)
