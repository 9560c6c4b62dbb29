"""What a host, a joiner and the rendezvous say to one another over signalling, as messages.

A *line* is one client's conversation with the rendezvous. It outlives the connections that carry
it: after a dropped one the client shows its token, both sides say how many *numbered* messages
they have taken in, and what is missing is sent again (`rendezvous_line`). An *exchange* is one
joiner's conversation with one host, which the rendezvous passes on without reading it.

Hello, Welcome, Refused, Ping, Pong, Ack and Bye belong to a connection and carry no number.
"""

from enum import IntEnum
from typing import Annotated, TypeVar

import msgspec

from kafila.domain.errors import PeerError

RENDEZVOUS_VERSION = 1

MAX_BODY_BYTES = 64 << 10
"""The largest body that an exchange passes on."""

MAX_SIGNAL_BYTES = MAX_BODY_BYTES + 1024
"""The largest message on a connection, whatever it says."""

MAX_NAMEPLATE = 999_999_999

WELL_KNOWN_PORTS = range(47470, 47480)
"""Where a rendezvous inside an app listens if it can, so that others on the computer find it."""

PING_EVERY_S = 10.0
"""How often a client shows that it is there."""

SILENCE_S = 25.0
"""Silence after which either side gives a connection up (never the line)."""

CONNECT_BACK_WITHIN_S = 1.5
"""How long a rendezvous tries to connect to who asks for it."""

FIRST_TRIED_PORT = 1024
"""Below are the services that computers have for everybody."""

MAX_CONNECTED_BACK_BYTES = 256

Nameplate = Annotated[int, msgspec.Meta(ge=1, le=MAX_NAMEPLATE)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Request = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
ExchangeId = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
Body = Annotated[bytes, msgspec.Meta(max_length=MAX_BODY_BYTES)]
Token = Annotated[bytes, msgspec.Meta(max_length=64)]
Slot = Annotated[int, msgspec.Meta(ge=0)]
SeatKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Remote = Annotated[str, msgspec.Meta(max_length=64)]


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message on every connection. Its shape stays the same in every version."""

    version: int
    token: Token = b""
    """Shown by a client that was here before."""
    received: Count = 0
    nameplate: Nameplate | None = None
    """The nameplate that a returning host still shows to people."""


class Open(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Open a session, or give the one that is open another nameplate."""

    request: Request
    nameplate: Nameplate | None = None
    """One that would be welcome; the answer says which it is."""


class CloseCode(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Nobody can call the session any more. It goes on."""


class Call(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Reach the host whose session has this nameplate."""

    request: Request
    nameplate: Nameplate


class Say(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A body for the other side of an exchange, passed on as it is. Goes both ways."""

    exchange: ExchangeId
    body: Body


class HangUp(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The exchange is over. Goes both ways."""

    exchange: ExchangeId


class Ping(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The client is there, and has taken in so many numbered messages."""

    received: Count


class Pong(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to a ping."""

    received: Count


class Ack(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """So many numbered messages were taken in: the sender may forget them. Goes both ways."""

    received: Count


class Bye(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The client leaves for good: nothing is kept for it."""


class Continuity(IntEnum):
    """What the rendezvous still knows of a client that shows a token."""

    NEW = 0
    """Nothing. Whoever had a session opens it anew."""
    RESUMED = 1
    """Everything; the line goes on where it was."""
    RESEATED = 2
    """The rendezvous was restarted: session and seat stand, exchanges and the line do not."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to a hello."""

    continuity: Continuity
    received: Count
    udp_port: Annotated[int, msgspec.Meta(ge=1, lt=1 << 16)]
    """Where, on the same host, the relay and STUN answer."""
    nameplate: Nameplate | None = None
    """The nameplate that a returning host has now."""


class Refusal(IntEnum):
    """Why a client or its request is turned away."""

    OTHER_VERSION = 1
    TOO_MANY = 2
    """Too many connections or tries from one address."""
    FULL = 3
    """The rendezvous, or the session called, takes no more."""
    NO_SUCH_CODE = 4

    @property
    def label(self) -> str:
        """How it is counted."""
        return self.name.lower().replace("_", " ")


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The connection is turned away; the rendezvous closes it."""

    reason: Refusal
    version: int = RENDEZVOUS_VERSION


class SeatGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A seat at the relay, and the token by which its line is taken up again."""

    slot: Slot
    key: SeatKey
    token: Token


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The session is open, under this nameplate."""

    request: Request
    nameplate: Nameplate
    seat: SeatGrant


class Called(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The host hears of the call in these moments."""

    request: Request
    exchange: ExchangeId
    seat: SeatGrant


class Denied(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An `Open` or a `Call` came to nothing."""

    request: Request
    reason: Refusal


class Incoming(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Somebody calls this host's session."""

    exchange: ExchangeId
    remote: Remote
    """The same for calls from the same address, and says nothing else of it."""


class NameplateHere(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON answer to GET /nameplate/N where that session is."""

    kafila_rendezvous: int
    """The version that is spoken here."""


class ConnectedBack(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON answer to POST /reach/PORT: what came of connecting to the port, from where that was asked."""

    host: Annotated[str, msgspec.Meta(max_length=64)]
    reached: bool


FromClient = Hello | Open | CloseCode | Call | Say | HangUp | Ping | Ack | Bye
FromServer = Welcome | Refused | Opened | Called | Denied | Incoming | Say | HangUp | Pong | Ack

_encoder = msgspec.msgpack.Encoder()
_from_client: msgspec.msgpack.Decoder[FromClient] = msgspec.msgpack.Decoder(FromClient)
_here = msgspec.json.Decoder(NameplateHere)
_connected_back = msgspec.json.Decoder(ConnectedBack)
_from_server: msgspec.msgpack.Decoder[FromServer] = msgspec.msgpack.Decoder(FromServer)

M = TypeVar("M")


def encode_signal(message: FromClient | FromServer) -> bytes:
    """The message as one binary WebSocket message."""
    return _encoder.encode(message)


def decode_from_client(data: bytes) -> FromClient:
    """Read what a client said. Raises PeerError for anything else."""
    return _decode(data, _from_client)


def decode_from_server(data: bytes) -> FromServer:
    """Read what the rendezvous said. Raises PeerError for anything else."""
    return _decode(data, _from_server)


def decode_nameplate_here(data: bytes) -> NameplateHere:
    """Read an answer over HTTP. Raises PeerError for anything else."""
    return _decode(data, _here)


def decode_connected_back(data: bytes) -> ConnectedBack:
    """Read an answer over HTTP. Raises PeerError for anything else."""
    return _decode(data, _connected_back)


def _decode(data: bytes, decoder: msgspec.msgpack.Decoder[M] | msgspec.json.Decoder[M]) -> M:
    if len(data) > MAX_SIGNAL_BYTES:
        fault = "a signalling message longer than any that is sent"
        raise PeerError(fault)
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        # Deeply nested junk in an unknown field ends in a RecursionError.
        fault = "a signalling message that cannot be read"
        raise PeerError(fault) from error
