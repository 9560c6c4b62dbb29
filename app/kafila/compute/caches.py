"""The KV caches of all sequences on one stage, and the one rule by which a sequence goes on.

A frame says where in its sequence it stands and which text it believes before it. The stage
rewinds to that position, or refuses: so a retry, a stop, an edited message, a prefix kept from
the turn before and a recovery are all the same, and text that is not the frame's own can never
become part of an answer.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kafila.domain.ids import RequestId
from kafila.protocol.digests import DIGEST_BYTES
from kafila.protocol.frames import Refused

CACHE_STEP = 256
"""Tokens by which mlx-lm's caches grow."""


class Cache(Protocol):
    """What is used here of a block's cache in mlx-lm."""

    @property
    def state(self) -> Any:
        """The arrays that it holds, for evaluation."""
        ...

    def is_trimmable(self) -> bool:
        """Whether the newest tokens can be taken back."""
        ...

    def trim(self, n: int) -> int:
        """Take the newest `n` tokens back."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a sequence cannot go on from a position, and how many tokens of it are held."""

    reason: Refused
    held: int


@dataclass(slots=True, kw_only=True)
class Sequence:
    """The caches of one sequence, with a digest of the text before each position."""

    caches: list[Cache]
    digests: bytearray

    @property
    def held(self) -> int:
        """How many tokens are in the caches."""
        return len(self.digests) // DIGEST_BYTES - 1

    def digest(self, position: int) -> bytes:
        """The digest of the tokens before `position`."""
        start = DIGEST_BYTES * position
        return bytes(self.digests[start : start + DIGEST_BYTES])

    def rewind(self, position: int) -> bool:
        """Take back the tokens from `position` on; False where the caches cannot."""
        if position == self.held:
            return True
        if not all(cache.is_trimmable() for cache in self.caches):
            return False
        for cache in self.caches:
            cache.trim(self.held - position)
        del self.digests[DIGEST_BYTES * (position + 1) :]
        return True

    def extend(self, digests: bytes) -> None:
        """Record the digests of a frame whose rows are in the caches now."""
        self.digests += digests[DIGEST_BYTES:]


class CacheShelf:
    """All sequences of a stage, within room for `max_tokens` of them.

    The sequence that was used longest ago goes first when room is short; should it be asked
    for again it is refused as a gap, and the head starts it anew.
    """

    def __init__(self, new_caches: Callable[[], list[Cache]], *, max_tokens: int) -> None:
        self._new_caches = new_caches
        self._max_tokens = max_tokens
        self._sequences: OrderedDict[RequestId, Sequence] = OrderedDict()

    def take(self, request: RequestId, position: int, rows: int, digests: bytes) -> Sequence | Refusal:
        """A sequence rewound to `position`, off the shelf until it is put back.

        What fails while it is off the shelf has spoilt it, so that it is never put back.
        """
        if position == 0:
            self._sequences.pop(request, None)
            self._make_room(rows)
            caches = self._new_caches()
            return Sequence(caches=caches, digests=bytearray(digests[:DIGEST_BYTES]))
        sequence = self._sequences.get(request)
        if sequence is None:
            return Refusal(reason=Refused.GAP, held=0)
        if position > sequence.held:
            return Refusal(reason=Refused.GAP, held=sequence.held)
        if sequence.digest(position) != digests[:DIGEST_BYTES]:
            return Refusal(reason=Refused.OTHER_TEXT, held=sequence.held)
        if not sequence.rewind(position):
            return Refusal(reason=Refused.CANNOT_REWIND, held=sequence.held)
        del self._sequences[request]
        self._make_room(position + rows)
        return sequence

    def put(self, request: RequestId, sequence: Sequence) -> None:
        """Back on the shelf, as the one used last."""
        self._sequences[request] = sequence

    def release(self, request: RequestId) -> None:
        """Free a sequence, if it is held."""
        self._sequences.pop(request, None)

    def _make_room(self, tokens: int) -> None:
        others = sum(_room(sequence.held) for sequence in self._sequences.values())
        while self._sequences and others + _room(tokens) > self._max_tokens:
            _, oldest = self._sequences.popitem(last=False)
            others -= _room(oldest.held)


def room_for(*, context: int, concurrency: int) -> int:
    """How many tokens of cache `concurrency` full conversations take."""
    return concurrency * _room(context)


def _room(tokens: int) -> int:
    return -(-tokens // CACHE_STEP) * CACHE_STEP
