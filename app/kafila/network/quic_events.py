"""What a QUIC core tells of its connection."""

import msgspec


class Shaken(msgspec.Struct, frozen=True, kw_only=True):
    """The TLS handshake is over, as far as this side can tell."""

    spki_sha256: bytes | None
    """The key that the peer proved to hold; None where it showed no certificate."""


class StreamBytes(msgspec.Struct, frozen=True, kw_only=True):
    """The peer's stream of this number (0, 1, 2, …) has more bytes."""

    stream: int
    data: bytes


class StreamMisused(msgspec.Struct, frozen=True):
    """The peer opened, ended or reset a stream in a way that no link does."""


class IdIssued(msgspec.Struct, frozen=True):
    """Datagrams to this connection id belong here."""

    connection_id: bytes


class IdRetired(msgspec.Struct, frozen=True):
    """The connection id is out of use."""

    connection_id: bytes


class ClosedByPeer(msgspec.Struct, frozen=True, kw_only=True):
    """The peer ended the connection, with a code of its own or of the library's."""

    code: int
    ours: bool
    """Whether `code` is one of a link's own codes."""


class Finished(msgspec.Struct, frozen=True):
    """Nothing more will come or go: it was closed a while ago, or silent for too long."""


CoreEvent = Shaken | StreamBytes | StreamMisused | IdIssued | IdRetired | ClosedByPeer | Finished
