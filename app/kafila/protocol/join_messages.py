"""The messages of joining as bytes: a fixed word, the version, the kind, and a msgpack body.

The fixed word and the version stay where they are in every version, so that any two can tell
that they differ.
"""

from enum import IntEnum
from typing import Annotated, TypeVar

import msgspec

from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError
from kafila.protocol.roster import Fingerprint

JOIN_VERSION = 1
MAX_JOIN_BYTES = 4096

_MAGIC = b"kafila"
_HEADER_BYTES = len(_MAGIC) + 2

Pake = Annotated[bytes, msgspec.Meta(min_length=33, max_length=33)]
Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
SessionBytes = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


class Kind(IntEnum):
    """What a message is."""

    JOINER_HELLO = 1
    HOST_HELLO = 2
    JOINER_PROOF = 3
    HOST_PROOF = 4
    TURNED_AWAY = 5


class Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Never shows its fields: some must not be known before their time."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class JoinerHello(Body, frozen=True):
    """Joiner to host, open: the first message."""

    pake: Pake
    commitment: Hash


class HostHello(Body, frozen=True):
    """Host to joiner, open."""

    session: SessionBytes
    pake: Pake
    commitment: Hash


class JoinerProof(Body, frozen=True):
    """Joiner to host, sealed."""

    spki_sha256: Fingerprint
    nonce: Hash
    machine: Machine


class HostProof(Body, frozen=True):
    """Host to joiner, sealed."""

    spki_sha256: Fingerprint
    nonce: Hash
    machine: Machine
    group: str
    model: str


B = TypeVar("B", bound=Body)


def frame(kind: Kind, body: bytes) -> bytes:
    """A message of this version."""
    return _MAGIC + bytes((JOIN_VERSION, kind)) + body


def unframe(data: bytes) -> tuple[int, int, bytes]:
    """Version, kind and body. Raises PeerError for what is no message of any version."""
    if not (_HEADER_BYTES <= len(data) <= MAX_JOIN_BYTES and data.startswith(_MAGIC)):
        fault = "a message that does not belong to joining"
        raise PeerError(fault)
    return data[len(_MAGIC)], data[len(_MAGIC) + 1], data[_HEADER_BYTES:]


def encode(body: Body) -> bytes:
    """A body as bytes."""
    return msgspec.msgpack.encode(body)


def decode(kind: type[B], data: bytes) -> B:
    """Read a body. Raises PeerError for anything else than one of this kind."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError):
        fault = "a message of joining that cannot be read"
        raise PeerError(fault) from None
