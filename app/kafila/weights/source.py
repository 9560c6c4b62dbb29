"""A model as one computer hands it to another: what there is, and any range of it.

The first thing asked for is the *listing*, under a name that no file has. With it, the headers
are read as from a disk and checked in the same way; nothing of what the source says of its
tensors is taken on trust, and at the end the fingerprint must be the plan's.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kafila.domain.errors import PeerError
from kafila.weights.index import (
    LENGTH_BYTES,
    MAX_CONFIG_BYTES,
    BrokenHeaderError,
    Tensor,
    TensorIndex,
    header_length,
    parse_header,
    read_index,
)
from kafila.weights.ranges import MAX_READ_BYTES, ReadRange, Span, read_exactly

LISTING = "listing"
"""What the listing is asked for as; its length stands in front of it, as in a safetensors file."""

CONFIG = "config.json"
TOKENIZER_FILES = frozenset(
    {
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "generation_config.json",
        "merges.txt",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "vocab.json",
    }
)
"""What a head needs beside the weights. No file among them holds code."""

MAX_LISTING_BYTES = 1 << 20
MAX_TOKENIZER_BYTES = 64 << 20
MAX_WEIGHT_FILES = 1000
MAX_HEADERS_BYTES = 64 << 20
_WEIGHT_FILE = re.compile(r"model[\w.-]{0,80}\.safetensors")


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a model with their sizes, and the digest over its content."""

    weights: dict[str, int]
    texts: dict[str, int]
    content: str


class ModelSource:
    """The side that hands out: ranges of the files of one model folder, and of nothing else."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError where `folder` holds no whole model."""
        self._folder = folder
        index = read_index(folder)
        weights = {tensor.file for tensor in index.tensors.values()}
        texts = (name for name in (CONFIG, *sorted(TOKENIZER_FILES)) if (folder / name).is_file())
        listing = Listing(
            weights={name: (folder / name).stat().st_size for name in sorted(weights)},
            texts={name: (folder / name).stat().st_size for name in texts},
            content=index.content,
        )
        encoded = msgspec.json.encode(listing)
        self._listing = len(encoded).to_bytes(LENGTH_BYTES, "little") + encoded
        self._sizes = {**listing.weights, **listing.texts, LISTING: len(self._listing)}

    def read(self, file: str, start: int, end: int) -> bytes:
        """Bytes [start, end) of a file. Raises PeerError for what may not be asked for."""
        size = self._sizes.get(file)
        if size is None or not 0 <= start < end <= size or end - start > MAX_READ_BYTES:
            fault = "asked for bytes that are no part of the model"
            raise PeerError(fault)
        if file == LISTING:
            return self._listing[start:end]
        with (self._folder / file).open("rb") as opened:
            opened.seek(start)
            return opened.read(end - start)


async def fetch_listing(read: ReadRange) -> Listing:
    """Ask a source what there is. Raises PeerError for a listing that cannot be one."""
    length = int.from_bytes(await read_exactly(read, Span(file=LISTING, start=0, end=LENGTH_BYTES)), "little")
    if length > MAX_LISTING_BYTES:
        fault = "a listing of a model that is too long"
        raise PeerError(fault)
    span = Span(file=LISTING, start=LENGTH_BYTES, end=LENGTH_BYTES + length)
    try:
        listing = msgspec.json.decode(await read_exactly(read, span), type=Listing)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fault = "a listing of a model that cannot be read"
        raise PeerError(fault) from error
    _check_listing(listing)
    return listing


async def fetch_index(read: ReadRange, listing: Listing) -> TensorIndex:
    """Ask a source for its configuration and headers. Raises PeerError for broken ones."""
    config = await fetch_text(read, listing, CONFIG)
    tensors: dict[str, Tensor] = {}
    room = MAX_HEADERS_BYTES
    for file, size in sorted(listing.weights.items()):
        try:
            start = await read_exactly(read, Span(file=file, start=0, end=LENGTH_BYTES))
            length = header_length(start, file_bytes=min(size, room))
            room -= length
            span = Span(file=file, start=LENGTH_BYTES, end=LENGTH_BYTES + length)
            header = await read_exactly(read, span)
            tensors |= parse_header(header, file=file, file_bytes=size)
        except BrokenHeaderError as error:
            fault = "tensor headers that cannot be right"
            raise PeerError(fault) from error
    index = TensorIndex(config=config, tensors=tensors, content=listing.content)
    try:
        index.settings()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fault = "a model's configuration that cannot be read"
        raise PeerError(fault) from error
    return index


async def fetch_text(read: ReadRange, listing: Listing, name: str) -> bytes:
    """The configuration, or a file of the tokenizer."""
    return await read_exactly(read, Span(file=name, start=0, end=listing.texts[name]))


def _check_listing(listing: Listing) -> None:
    names_fit = all(_WEIGHT_FILE.fullmatch(name) for name in listing.weights)
    texts_fit = CONFIG in listing.texts and TOKENIZER_FILES | {CONFIG} >= listing.texts.keys()
    sizes_fit = (
        _within(listing.texts, MAX_TOKENIZER_BYTES)
        and listing.texts[CONFIG] <= MAX_CONFIG_BYTES
        and _within(listing.weights, 1 << 50)
        if texts_fit
        else False
    )
    if not (names_fit and sizes_fit and 0 < len(listing.weights) <= MAX_WEIGHT_FILES):
        fault = "a listing of something that is no model"
        raise PeerError(fault)


def _within(sizes: Mapping[str, int], most: int) -> bool:
    return all(0 <= size <= most for size in sizes.values())
