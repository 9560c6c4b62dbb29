"""The models that this computer keeps: whole ones, and shares of ones that others have.

    <root>/<name>/           a whole model's folder
    <root>/<fingerprint>/    a share: index.json (of the whole model), config.json, and a
                             safetensors file for each block, and for the head, that was fetched

Every file is whole or not there, so that whatever stopped goes on where it was, and a new plan
fetches only what is missing.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from kafila.domain.errors import PeerError, UserError
from kafila.domain.model import ModelSpec
from kafila.weights.index import Tensor, TensorIndex, read_index
from kafila.weights.model_folder import divide
from kafila.weights.packing import WrittenBeside, intact_tensors, no_room, pack_tensors
from kafila.weights.ranges import ReadRange
from kafila.weights.source import (
    CONFIG,
    TOKENIZER_FILES,
    Listing,
    fetch_index,
    fetch_listing,
    fetch_text,
)

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""

_INDEX = "index.json"
_SPARE_BYTES = 64 << 20
"""Left free on the disk, for everything else that a computer does."""
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One safetensors file of a share, and what belongs into it."""

    file: Path
    tensors: tuple[Tensor, ...]


class ModelStore:
    """Models in the folder `root`. Several processes may use one root at once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, name: str) -> Path:
        """Where a whole model of that name is kept, or is to be."""
        return self._root / name

    def find_whole(self, fingerprint: str) -> Path | None:
        """The folder of the whole model, if it is kept here."""
        if not self._root.is_dir():
            return None
        for folder in sorted(self._root.iterdir()):
            if folder.name.startswith(".") or _FINGERPRINT.fullmatch(folder.name):
                continue
            try:
                if read_index(folder).fingerprint() == fingerprint:
                    return folder
            except UserError:
                continue
        return None

    async def folder_for(
        self,
        spec: ModelSpec,
        *,
        first: int,
        end: int,
        head: bool,
        read: ReadRange,
        progress: Progress,
    ) -> Path:
        """A folder with blocks [first, end) of a model, and the head's files if asked for.

        What is not kept here is fetched with `read`, and then kept. `progress` counts the bytes
        that have to be fetched. Raises PeerError where what arrives is not the model that
        `spec` describes, and UserError where the disk is full.
        """
        if not _FINGERPRINT.fullmatch(spec.fingerprint):
            fault = "a fingerprint that is none"
            raise PeerError(fault)
        whole = await asyncio.to_thread(self.find_whole, spec.fingerprint)
        if whole is not None:
            return whole
        share = self._root / spec.fingerprint
        kept = await asyncio.to_thread(_kept, share, spec.fingerprint)
        if kept is None:
            kept = await _fetch_index(share, spec, read)
        if head:
            await _fetch_tokenizer(share, kept.listing, read)
        pieces = _pieces(share, kept.index, first, end, head=head)
        await _fetch_pieces(await asyncio.to_thread(_missing, pieces), read, progress)
        return share


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the whole model that a share belongs to."""

    listing: Listing
    index: TensorIndex


def _kept(share: Path, fingerprint: str) -> _Kept | None:
    """What was written when the first piece of the share was fetched, if it is still intact."""
    try:
        kept = msgspec.json.decode((share / _INDEX).read_bytes(), type=_Kept)
        intact = (share / CONFIG).read_bytes() == kept.index.config
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return kept if intact and kept.index.fingerprint() == fingerprint else None


async def _fetch_index(share: Path, spec: ModelSpec, read: ReadRange) -> _Kept:
    listing = await fetch_listing(read)
    index = await fetch_index(read, listing)
    if index.fingerprint() != spec.fingerprint:
        fault = "another model than the plan's"
        raise PeerError(fault)
    kept = _Kept(listing=listing, index=index)
    await asyncio.to_thread(_write, share / CONFIG, index.config)
    await asyncio.to_thread(_write, share / _INDEX, msgspec.json.encode(kept))
    return kept


async def _fetch_tokenizer(share: Path, listing: Listing, read: ReadRange) -> None:
    for name in sorted(TOKENIZER_FILES & listing.texts.keys()):
        file = share / name
        if not await asyncio.to_thread(file.exists):
            await asyncio.to_thread(_write, file, await fetch_text(read, listing, name))


def _pieces(share: Path, index: TensorIndex, first: int, end: int, *, head: bool) -> list[_Piece]:
    parts = divide(index, share)
    pieces = [
        _Piece(file=share / f"model-block-{block:05}.safetensors", tensors=parts.blocks[block])
        for block in range(first, end)
    ]
    if head:
        pieces.append(_Piece(file=share / "model-head.safetensors", tensors=parts.head))
    return pieces


def _missing(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces that are not here, or not any more what was written."""
    return [piece for piece in pieces if not _is_whole(piece)]


def _is_whole(piece: _Piece) -> bool:
    if not piece.file.exists():
        return False
    held = intact_tensors(piece.file)
    return {(tensor.name, tensor.dtype, tensor.shape) for tensor in held.values()} == {
        (tensor.name, tensor.dtype, tensor.shape) for tensor in piece.tensors
    }


async def _fetch_pieces(missing: list[_Piece], read: ReadRange, progress: Progress) -> None:
    total = sum(tensor.size for piece in missing for tensor in piece.tensors)
    if not total:
        return
    room = await asyncio.to_thread(shutil.disk_usage, missing[0].file.parent)
    if room.free < total + _SPARE_BYTES:
        raise no_room(missing[0].file)
    done = 0

    def arrived(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    progress(0, total)
    for piece in missing:
        await pack_tensors(piece.tensors, into=piece.file, read=read, arrived=arrived)


def _write(file: Path, data: bytes) -> None:
    with WrittenBeside(file) as opened:
        opened.write(data)
