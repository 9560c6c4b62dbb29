"""What tensors a model folder holds, and where: the headers of its safetensors files.

Headers are believed only as far as they were checked: lengths are bounded, every tensor lies
inside its file and is as long as its shape and type say. Of the tensors themselves only a few
bytes are read, to tell models of the same shape apart.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from kafila.domain.errors import Reason, UserError

MAX_HEADER_BYTES = 16 << 20
MAX_CONFIG_BYTES = 16 << 20
MAX_DIMENSIONS = 8
LENGTH_BYTES = 8
"""What a safetensors file begins with: the length of its header, little-endian."""

SAMPLE_BYTES = 32

DTYPE_BYTES: Mapping[str, int] = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
}

_PIECE = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of a model, and its bytes [start, end) in a file of the folder."""

    name: str
    file: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start

    @property
    def elements(self) -> int:
        """How many values it has as stored; several weights are packed into one if quantised."""
        return math.prod(self.shape)


class TensorIndex(msgspec.Struct, frozen=True, kw_only=True):
    """All tensors of a model by name, with its configuration."""

    config: bytes
    tensors: dict[str, Tensor]
    content: str
    """A digest over a few bytes of every tensor."""

    def settings(self) -> dict[str, Any]:
        """The configuration, decoded."""
        return msgspec.json.decode(self.config, type=dict[str, Any])

    def fingerprint(self) -> str:
        """64 hexadecimal digits that are the same for the same model on every computer."""
        digest = hashlib.sha256(b"kafila model 1\0")
        digest.update(len(self.config).to_bytes(8, "big") + self.config)
        for name, tensor in sorted(self.tensors.items()):
            digest.update(msgspec.json.encode((name, tensor.dtype, tensor.shape)) + b"\n")
        digest.update(self.content.encode())
        return digest.hexdigest()


class BrokenHeaderError(Exception):
    """A safetensors header that is not one, or does not fit its file."""


def read_index(folder: Path) -> TensorIndex:
    """Read the configuration and the headers of a model folder.

    Raises UserError for a folder that is missing, incomplete or damaged.
    """
    config = _read_config(folder)
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise UserError(
            title=f"There is no model in “{folder.name}”",
            advice="Pick a folder that holds a model in MLX's format (safetensors files).",
            reason=Reason.MODEL,
        )
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors |= read_header(file)
        except (OSError, BrokenHeaderError) as error:
            raise damaged(folder, file.name) from error
    _check_all_there(folder, files, tensors)
    return TensorIndex(config=config, tensors=tensors, content=_content(folder, tensors))


def read_header(path: Path) -> dict[str, Tensor]:
    """The tensors of one safetensors file. Raises BrokenHeaderError or OSError."""
    file_bytes = path.stat().st_size
    with path.open("rb") as file:
        length = header_length(file.read(LENGTH_BYTES), file_bytes=file_bytes)
        header = file.read(length)
    return parse_header(header, file=path.name, file_bytes=file_bytes)


def header_length(start: bytes, *, file_bytes: int) -> int:
    """How long a file's header is, by its first bytes. Raises BrokenHeaderError."""
    length = int.from_bytes(start, "little")
    longest = min(MAX_HEADER_BYTES, file_bytes - LENGTH_BYTES)
    if len(start) != LENGTH_BYTES or not 2 <= length <= longest:
        raise BrokenHeaderError
    return length


def parse_header(header: bytes, *, file: str, file_bytes: int) -> dict[str, Tensor]:
    """The tensors that a header lists. Raises BrokenHeaderError.

    `header` is without the length in front of it; `file_bytes` is how long the whole file is.
    """
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in raw.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenHeaderError from error
    data = LENGTH_BYTES + len(header)
    tensors = {
        name: Tensor(
            name=name,
            file=file,
            dtype=entry.dtype,
            shape=entry.shape,
            start=data + entry.data_offsets[0],
            end=data + entry.data_offsets[1],
        )
        for name, entry in entries.items()
    }
    _check_ranges(tensors.values(), data=data, file_bytes=file_bytes)
    return tensors


def damaged(folder: Path, file: str) -> UserError:
    """What is said of a file that cannot be what it should be."""
    return UserError(
        title=f"The model in “{folder.name}” is incomplete or damaged",
        advice=f"Its file “{file}” is not whole. Download the model again.",
        reason=Reason.MODEL,
    )


class _Entry(msgspec.Struct, frozen=True):
    """A tensor as a header describes it."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class _Listing(msgspec.Struct, frozen=True):
    """Which file holds which tensor, as a folder of several files says."""

    weight_map: dict[str, str]


def _read_config(folder: Path) -> bytes:
    file = folder / "config.json"
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise damaged(folder, file.name)
        config = file.read_bytes()
        msgspec.json.decode(config, type=dict[str, Any])
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(
            title=f"There is no model in “{folder.name}”",
            advice="Check where the model lies, and pick the folder that has its “config.json”.",
            reason=Reason.MODEL,
        ) from error
    except OSError as error:
        raise UserError(
            title=f"The folder “{folder.name}” cannot be read",
            advice="Check that you may open it, then pick it again.",
            reason=Reason.MODEL,
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(folder, file.name) from error
    return config


def _check_ranges(tensors: Iterable[Tensor], *, data: int, file_bytes: int) -> None:
    """Tensors neither overlap nor reach out of the file, and are as long as their shapes say."""
    behind = data
    for tensor in sorted(tensors, key=lambda tensor: (tensor.start, tensor.end)):
        well_formed = (
            len(tensor.shape) <= MAX_DIMENSIONS
            and all(side >= 0 for side in tensor.shape)
            and tensor.size == tensor.elements * DTYPE_BYTES.get(tensor.dtype, -1)
        )
        if not well_formed or not behind <= tensor.start <= tensor.end <= file_bytes:
            raise BrokenHeaderError
        behind = tensor.end


def _check_all_there(folder: Path, files: list[Path], tensors: Mapping[str, Tensor]) -> None:
    """A model of several files numbers and lists them; a download that stopped lacks some."""
    for file in files:
        numbered = _PIECE.search(file.name)
        if numbered and int(numbered[2]) != len(files):
            raise damaged(folder, file.name)
    listing = folder / "model.safetensors.index.json"
    if not listing.exists():
        return
    try:
        listed = msgspec.json.decode(listing.read_bytes(), type=_Listing)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(folder, listing.name) from error
    for name, file in listed.weight_map.items():
        if name not in tensors:
            raise damaged(folder, Path(file).name)


def _content(folder: Path, tensors: Mapping[str, Tensor]) -> str:
    samples: dict[str, bytes] = {}
    for name in sorted({tensor.file for tensor in tensors.values()}):
        try:
            with (folder / name).open("rb") as file:
                for tensor in tensors.values():
                    if tensor.file == name:
                        file.seek(tensor.start + max(0, tensor.size - SAMPLE_BYTES) // 2)
                        samples[tensor.name] = file.read(min(SAMPLE_BYTES, tensor.size))
        except OSError as error:
            raise damaged(folder, name) from error
    return hashlib.sha256(b"".join(samples[name] for name in sorted(samples))).hexdigest()
