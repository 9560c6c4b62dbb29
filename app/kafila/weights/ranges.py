"""Which bytes of which files a share of a model needs, in pieces that can be asked for."""

from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec

from kafila.domain.errors import PeerError
from kafila.weights.index import Tensor

MAX_READ_BYTES = 1 << 20
"""The longest range that is asked for, or given, at once."""

ReadRange = Callable[[str, int, int], Awaitable[bytes]]
"""File of a model, first byte, end: those bytes, wherever they lie."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes [start, end) of a file."""

    file: str
    start: int
    end: int


def merge_neighbours(tensors: Iterable[Tensor]) -> list[Span]:
    """The spans that the tensors lie in; those that touch are one."""
    spans: list[Span] = []
    for tensor in in_file_order(tensors):
        last = spans[-1] if spans else None
        if last is not None and (last.file, last.end) == (tensor.file, tensor.start):
            spans[-1] = Span(file=last.file, start=last.start, end=tensor.end)
        else:
            spans.append(Span(file=tensor.file, start=tensor.start, end=tensor.end))
    return spans


def in_file_order(tensors: Iterable[Tensor]) -> list[Tensor]:
    """As they lie on the disk, file after file."""
    return sorted(tensors, key=lambda tensor: (tensor.file, tensor.start, tensor.end))


def pieces(span: Span) -> Iterator[Span]:
    """The span in ranges that may be asked for."""
    for start in range(span.start, span.end, MAX_READ_BYTES):
        yield Span(file=span.file, start=start, end=min(span.end, start + MAX_READ_BYTES))


async def read_exactly(read: ReadRange, span: Span) -> bytes:
    """A whole span in memory, asked for piece by piece. Raises PeerError for other lengths."""
    parts = [await read_piece(read, piece) for piece in pieces(span)]
    return b"".join(parts)


async def read_piece(read: ReadRange, piece: Span) -> bytes:
    """One range, with its length checked."""
    data = await read(piece.file, piece.start, piece.end)
    if len(data) != piece.end - piece.start:
        fault = "a range of a model that is not as long as was asked for"
        raise PeerError(fault)
    return data
