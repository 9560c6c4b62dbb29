"""Writing some tensors of a model as a safetensors file of their own, as they arrive.

Such a file carries a hash of each of its tensors, so that a disk that forgets is noticed. It is
written beside its place and moved there whole.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from kafila.domain.errors import Reason, UserError
from kafila.weights.index import (
    LENGTH_BYTES,
    BrokenHeaderError,
    Tensor,
    header_length,
    read_header,
)
from kafila.weights.ranges import ReadRange, in_file_order, merge_neighbours, pieces, read_piece

_HASH_PREFIX = "sha256:"
_NO_HASH = "0" * 64
_READ_BYTES = 1 << 20


class _Metadata(msgspec.Struct, frozen=True):
    """What a header says beside its tensors."""

    values: dict[str, str] = msgspec.field(name="__metadata__", default_factory=dict)


async def pack_tensors(
    tensors: Sequence[Tensor], *, into: Path, read: ReadRange, arrived: Callable[[int], None]
) -> None:
    """Fetch tensors of another index and write them as the file `into`.

    `arrived` is called with the size of each piece. Raises PeerError where a piece has another
    length than was asked for, and UserError where the disk does not take it; then nothing is
    left behind.
    """
    ordered = in_file_order(tensors)
    with WrittenBeside(into) as file:
        await asyncio.to_thread(file.write, _header(ordered, {}))
        hashes = _RunningHashes(ordered)
        for span in merge_neighbours(ordered):
            for piece in pieces(span):
                data = await read_piece(read, piece)
                hashes.update(data)
                await asyncio.to_thread(file.write, data)
                arrived(len(data))
        await asyncio.to_thread(file.write, _header(ordered, hashes.digests), at=0)


def intact_tensors(file: Path) -> dict[str, Tensor]:
    """The tensors of a packed file; none of them if the file is not what was written.

    Reads the whole file.
    """
    try:
        tensors = read_header(file)
        with file.open("rb") as opened:
            length = header_length(opened.read(LENGTH_BYTES), file_bytes=file.stat().st_size)
            metadata = msgspec.json.decode(opened.read(length), type=_Metadata).values
            hashes = _RunningHashes(in_file_order(tensors.values()))
            while data := opened.read(_READ_BYTES):
                hashes.update(data)
    except (OSError, BrokenHeaderError, msgspec.DecodeError):
        return {}
    said = {name: metadata.get(_HASH_PREFIX + name) for name in tensors}
    return tensors if said == hashes.digests else {}


class WrittenBeside:
    """A file that appears in its place when the `with` block ends, or not at all if it fails.

    Where the disk does not take it, UserError is raised.
    """

    def __init__(self, into: Path) -> None:
        self._into = into
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        with self._disk():
            self._into.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=self._into.parent)
            self._beside = Path(name)
            self._file = os.fdopen(handle, "w+b")
        return self

    def write(self, data: bytes, *, at: int | None = None) -> None:
        """More of the file; or, with `at`, other bytes in place of earlier ones."""
        if self._file is None:
            message = "written to outside its block"
            raise RuntimeError(message)
        with self._disk():
            if at is not None:
                self._file.seek(at)
            self._file.write(data)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            with self._disk():
                if kind is None:
                    file.flush()
                    os.fsync(file.fileno())
                file.close()
                if kind is None:
                    self._beside.replace(self._into)
        finally:
            with suppress(OSError):
                self._beside.unlink()

    @contextmanager
    def _disk(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise no_room(self._into) from error


def no_room(path: Path) -> UserError:
    """What is said where the disk does not take a file."""
    return UserError(
        title="The model cannot be written to the disk",
        advice=f"Make room on the disk that holds “{path.parent}”, then try again.",
        reason=Reason.DISK,
    )


class _RunningHashes:
    """Hashes of tensors whose bytes come one after another, in pieces that cross their ends."""

    def __init__(self, ordered: Sequence[Tensor]) -> None:
        self._left = [(tensor.name, tensor.size) for tensor in reversed(ordered)]
        self._hash = hashlib.sha256()
        self.digests: dict[str, str] = {}
        self._close_full()

    def update(self, data: bytes) -> None:
        """More bytes."""
        rest = memoryview(data)
        while rest and self._left:
            name, wanted = self._left.pop()
            self._hash.update(rest[:wanted])
            self._left.append((name, wanted - len(rest[:wanted])))
            rest = rest[wanted:]
            self._close_full()

    def _close_full(self) -> None:
        while self._left and self._left[-1][1] == 0:
            name, _ = self._left.pop()
            self.digests[name] = self._hash.hexdigest()
            self._hash = hashlib.sha256()


def _header(ordered: Sequence[Tensor], hashes: Mapping[str, str]) -> bytes:
    """The new file's header, which is as long without the hashes as with them."""
    metadata = {"format": "mlx"}
    entries: dict[str, object] = {}
    offset = 0
    for tensor in ordered:
        metadata[_HASH_PREFIX + tensor.name] = hashes.get(tensor.name, _NO_HASH)
        offsets = (offset, offset + tensor.size)
        entries[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": offsets,
        }
        offset += tensor.size
    encoded = msgspec.json.encode({"__metadata__": metadata, **entries})
    encoded += b" " * (-len(encoded) % LENGTH_BYTES)
    return len(encoded).to_bytes(LENGTH_BYTES, "little") + encoded
