"""Who is in the session: the host's signed list, and the keeper that believes no other.

A roster names each member with the SHA-256 of its public key (SPKI); links are pinned to these.
The host signs it with its device's Ed25519 key, whose own SHA-256 each joiner has learned while
joining. Epochs only grow: a roster that was true once cannot be played back.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError
from kafila.domain.ids import MemberId, SessionId
from kafila.protocol.names import clean_machine

MAX_MEMBERS = 64
MAX_ROSTER_BYTES = 48 << 10

_SIGNED_AS = b"kafila roster 1\0"
_MEMBER_ID_BYTES = 8
_MAX_EPOCH = (1 << 32) - 1

Fingerprint = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
"""The SHA-256 of a public key (SPKI)."""


class RosterEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One member, and the public key that it has to show."""

    member: MemberId
    spki_sha256: Fingerprint
    machine: Machine


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a session from one epoch on."""

    session: SessionId
    epoch: Annotated[int, msgspec.Meta(ge=0, le=_MAX_EPOCH)]
    entries: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=MAX_MEMBERS)]

    def entry(self, member: MemberId) -> RosterEntry | None:
        """The member's entry; None: it is not in the session."""
        return next((entry for entry in self.entries if entry.member == member), None)


class _Signed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    roster: Annotated[bytes, msgspec.Meta(max_length=MAX_ROSTER_BYTES)]
    spki: Annotated[bytes, msgspec.Meta(max_length=64)]
    """The signer's public key (DER). It is believed only for having the right SHA-256."""
    signature: Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadSignature:
    """Not signed by this session's host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSession:
    """Signed by this host, but for another session."""

    session: SessionId = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldEpoch:
    """Not newer than the roster that is held."""

    epoch: int
    held: int


RosterRefused = BadSignature | ForeignSession | OldEpoch

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
_signed = msgspec.msgpack.Decoder(_Signed)
_roster = msgspec.msgpack.Decoder(Roster)


def member_id_of(spki_sha256: bytes) -> MemberId:
    """The id of the member with this public key."""
    return MemberId(spki_sha256[:_MEMBER_ID_BYTES].hex())


def fingerprint_of(key: Ed25519PublicKey) -> bytes:
    """The SHA-256 of a public key (SPKI)."""
    return sha256(_spki(key)).digest()


def sign_roster(key: Ed25519PrivateKey, roster: Roster) -> bytes:
    """The roster with the host's signature, as it is sent. Raises ValueError for an invalid one."""
    encoded = _encoder.encode(roster)
    if len(encoded) > MAX_ROSTER_BYTES or len(roster.entries) > MAX_MEMBERS or _mistaken(roster):
        message = f"not a roster to sign: {len(roster.entries)} entries, {len(encoded)} bytes"
        raise ValueError(message)
    signed = _Signed(encoded, _spki(key.public_key()), key.sign(_SIGNED_AS + encoded))
    return _encoder.encode(signed)


class RosterKeeper:
    """Holds the newest roster of one session and takes in newer ones from its host alone."""

    def __init__(self, *, host_spki_sha256: bytes, session: SessionId) -> None:
        self._host = host_spki_sha256
        self._session = session
        self._current: Roster | None = None

    @property
    def current(self) -> Roster | None:
        """The newest roster; None: none was taken in."""
        return self._current

    def accept(self, data: bytes) -> Roster | RosterRefused:
        """Take in a newer roster, or say why not. Raises PeerError for what is no roster at all."""
        signed = _decode(_signed, data, MAX_ROSTER_BYTES + 256)
        if not self._signed_by_host(signed):
            return BadSignature()
        roster = _decode(_roster, signed.roster, MAX_ROSTER_BYTES)
        if roster.session != self._session:
            return ForeignSession(session=roster.session)
        if self._current and roster.epoch <= self._current.epoch:
            return OldEpoch(epoch=roster.epoch, held=self._current.epoch)
        if _mistaken(roster):
            fault = "a roster whose members and keys do not match"
            raise PeerError(fault)
        entries = tuple(
            msgspec.structs.replace(entry, machine=clean_machine(entry.machine)) for entry in roster.entries
        )
        self._current = msgspec.structs.replace(roster, entries=entries)
        return self._current

    def _signed_by_host(self, signed: _Signed) -> bool:
        if sha256(signed.spki).digest() != self._host:
            return False
        try:
            key = load_der_public_key(signed.spki)
            if not isinstance(key, Ed25519PublicKey):
                return False
            key.verify(signed.signature, _SIGNED_AS + signed.roster)
        except (ValueError, UnsupportedAlgorithm, InvalidSignature):
            return False
        return True


def _mistaken(roster: Roster) -> bool:
    """Whether a member has not the id of its key, or is there twice."""
    ids = {entry.member for entry in roster.entries}
    wrong = any(entry.member != member_id_of(entry.spki_sha256) for entry in roster.entries)
    return wrong or len(ids) != len(roster.entries)


def _spki(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes, limit: int) -> T:
    if len(data) > limit:
        fault = "a roster longer than any that is sent"
        raise PeerError(fault)
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        fault = "a roster that cannot be read"
        raise PeerError(fault) from error
