"""How a joiner and a host prove to each other that they have the same code, and exchange names.

SPAKE2 turns the code's three secret words into one strong key on both sides, or into two different
keys where the words differ; nobody in between can try words alone. Four messages:

    joiner → host   hello: SPAKE2 message, commitment
    host → joiner   hello: session, SPAKE2 message, commitment
    joiner → host   proof: sealed fingerprint, nonce, machine
    host → joiner   proof: sealed fingerprint, nonce, machine, group, model

The joiner proves itself first: a host that was asked with a wrong code gives nothing away, and
counts a failed guess (`kafila.protocol.attempts`). A commitment is a hash of the nonce and the
fingerprint (SHA-256 of the device's public key) that the proof will open. Both sides are bound to
theirs before they see the other's, so whoever has the code and stands between the two cannot
search for keys that give the same verification phrase on both screens: it has one try in 2^33.

That a device has the private key to its fingerprint is not shown here but on the first link.
A hello costs some 25 ms of arithmetic, which a caller with a busy loop does elsewhere.
"""

from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from spake2 import SPAKE2_A, SPAKE2_B, SPAKEError
from spake2.ed25519_basic import NotOnCurve

from kafila.domain.errors import PeerError
from kafila.domain.ids import SessionId
from kafila.protocol.invitation import Code
from kafila.protocol.join_messages import (
    JOIN_VERSION,
    HostHello,
    HostProof,
    JoinerHello,
    JoinerProof,
    Kind,
    decode,
    encode,
    frame,
    unframe,
)
from kafila.protocol.names import MAX_TITLE, clean_machine, clean_name
from kafila.protocol.pairing import (
    GoOn,
    HostOutcome,
    Introduction,
    JoinerOutcome,
    Offer,
    OtherVersion,
    OwnKey,
    PairedHost,
    PairedJoiner,
    TurnedAway,
    TurnedAwayReason,
    WrongCode,
)
from kafila.protocol.roster import member_id_of
from kafila.protocol.sealed import SealedChannel, derive_key
from kafila.protocol.words import WORD_BITS, WordList

EXCHANGE_ENTROPY_BYTES = 96
PHRASE_WORDS = 3

_SCALAR_ENTROPY_BYTES = 64


class HostExchange:
    """The host's side of one exchange."""

    def __init__(self, *, code: Code, me: Introduction, offer: Offer, words: WordList, entropy: bytes) -> None:
        scalar, self._nonce = _split_entropy(entropy)
        host, joiner = _identities(code.nameplate)
        self._code = code
        self._me = me
        self._offer = offer
        self._words = words
        self._state: _Begun | _Spoken | None = _Begun(SPAKE2_A(code.secret(), host, joiner, entropy_f=lambda _: scalar))

    def receive(self, data: bytes) -> HostOutcome:
        """Take in a message. Whatever is not `GoOn`, or raises PeerError, ends the exchange."""
        state, self._state = self._state, None
        version, kind, body = unframe(data)
        match state:
            case _Begun() if version != JOIN_VERSION:
                return OtherVersion(theirs=version, reply=frame(Kind.HOST_HELLO, b""))
            case _Begun() if version == JOIN_VERSION and kind == Kind.JOINER_HELLO:
                return self._answer_hello(state, data, decode(JoinerHello, body))
            case _Spoken() if version == JOIN_VERSION and kind == Kind.JOINER_PROOF:
                return self._check_proof(state, body)
            case _:
                raise _out_of_order()

    def _answer_hello(self, state: "_Begun", data: bytes, hello: JoinerHello) -> GoOn:
        session = bytes.fromhex(self._offer.session)
        commitment = _commit(b"host", self._nonce, self._me.spki_sha256)
        reply = frame(Kind.HOST_HELLO, encode(HostHello(session, state.side.start(), commitment)))
        transcript = _sum_up_hellos(self._code.nameplate, session, joiner=data, host=reply)
        secrets = _Secrets(_finish(state.side, hello.pake), transcript)
        self._state = _Spoken(secrets, secrets.proofs(as_host=True), hello.commitment)
        return GoOn(reply=reply)

    def _check_proof(self, state: "_Spoken", body: bytes) -> PairedJoiner | WrongCode | OwnKey:
        theirs = _open(state.proofs, body)
        if theirs is None:
            return WrongCode(reply=turn_away(TurnedAwayReason.WRONG_CODE))
        proof = decode(JoinerProof, theirs)
        _check_opened(proof, b"joiner", state.commitment)
        if proof.spki_sha256 == self._me.spki_sha256:
            return OwnKey(reply=turn_away(TurnedAwayReason.OWN_KEY))
        mine = encode(
            HostProof(
                self._me.spki_sha256,
                self._nonce,
                clean_machine(self._me.machine),
                clean_name(self._offer.group, MAX_TITLE),
                clean_name(self._offer.model, MAX_TITLE),
            )
        )
        channel, phrase = state.secrets.agree(joiner=theirs, host=mine, as_host=True)
        return PairedJoiner(
            reply=frame(Kind.HOST_PROOF, state.proofs.seal(mine)),
            member=member_id_of(proof.spki_sha256),
            spki_sha256=proof.spki_sha256,
            machine=clean_machine(proof.machine),
            phrase=self._words.spell(phrase, PHRASE_WORDS),
            channel=channel,
        )


class JoinerExchange:
    """The joiner's side. `hello` is the first message to send."""

    def __init__(self, *, code: Code, me: Introduction, words: WordList, entropy: bytes) -> None:
        scalar, self._nonce = _split_entropy(entropy)
        host, joiner = _identities(code.nameplate)
        side = SPAKE2_B(code.secret(), host, joiner, entropy_f=lambda _: scalar)
        commitment = _commit(b"joiner", self._nonce, me.spki_sha256)
        self.hello = frame(Kind.JOINER_HELLO, encode(JoinerHello(side.start(), commitment)))
        self._code = code
        self._me = me
        self._words = words
        self._session = b""
        self._proof = b""
        self._state: _Begun | _Spoken | None = _Begun(side)

    def receive(self, data: bytes) -> JoinerOutcome:
        """Take in a message. Whatever is not `GoOn`, or raises PeerError, ends the exchange."""
        state, self._state = self._state, None
        version, kind, body = unframe(data)
        match state:
            case _Begun() if version != JOIN_VERSION:
                return OtherVersion(theirs=version)
            case _Begun() | _Spoken() if version == JOIN_VERSION and kind == Kind.TURNED_AWAY:
                return _turned_away(body)
            case _Begun() if kind == Kind.HOST_HELLO:
                return self._prove(state, data, decode(HostHello, body))
            case _Spoken() if version == JOIN_VERSION and kind == Kind.HOST_PROOF:
                return self._check_proof(state, body)
            case _:
                raise _out_of_order()

    def _prove(self, state: "_Begun", data: bytes, hello: HostHello) -> GoOn:
        transcript = _sum_up_hellos(self._code.nameplate, hello.session, joiner=self.hello, host=data)
        secrets = _Secrets(_finish(state.side, hello.pake), transcript)
        proofs = secrets.proofs(as_host=False)
        machine = clean_machine(self._me.machine)
        self._session = hello.session
        self._proof = encode(JoinerProof(self._me.spki_sha256, self._nonce, machine))
        self._state = _Spoken(secrets, proofs, hello.commitment)
        return GoOn(reply=frame(Kind.JOINER_PROOF, proofs.seal(self._proof)))

    def _check_proof(self, state: "_Spoken", body: bytes) -> PairedHost | WrongCode:
        theirs = _open(state.proofs, body)
        if theirs is None:
            # A host that has the code sends none that does not open: this one has another code.
            return WrongCode()
        proof = decode(HostProof, theirs)
        _check_opened(proof, b"host", state.commitment)
        if proof.spki_sha256 == self._me.spki_sha256:
            fault = "another computer that shows our own key"
            raise PeerError(fault)
        channel, phrase = state.secrets.agree(joiner=self._proof, host=theirs, as_host=False)
        return PairedHost(
            session=SessionId(self._session.hex()),
            member=member_id_of(proof.spki_sha256),
            spki_sha256=proof.spki_sha256,
            machine=clean_machine(proof.machine),
            group=clean_name(proof.group, MAX_TITLE),
            model=clean_name(proof.model, MAX_TITLE),
            phrase=self._words.spell(phrase, PHRASE_WORDS),
            channel=channel,
        )


def turn_away(reason: TurnedAwayReason) -> bytes:
    """The host's message to a joiner with whom it does not begin, or go on."""
    return frame(Kind.TURNED_AWAY, bytes((reason,)))


def _turned_away(body: bytes) -> WrongCode | TurnedAway:
    match list(body):
        case [TurnedAwayReason.WRONG_CODE]:
            return WrongCode()
        case [TurnedAwayReason.BUSY]:
            return TurnedAway(reason=TurnedAwayReason.BUSY)
        case [TurnedAwayReason.CODE_ENDED]:
            return TurnedAway(reason=TurnedAwayReason.CODE_ENDED)
        case [TurnedAwayReason.OWN_KEY]:
            return TurnedAway(reason=TurnedAwayReason.OWN_KEY)
        case _:
            fault = "a refusal of joining for no known reason"
            raise PeerError(fault)


# Secrets ---------------------------------------------------------------------------------------


class _Secrets:
    """The key that both have if their codes are the same, and what is made of it."""

    def __init__(self, shared: bytes, transcript: bytes) -> None:
        self._shared = shared
        self._transcript = transcript

    def proofs(self, *, as_host: bool) -> SealedChannel:
        """The channel for one proof each way."""
        return self._channel(self._transcript, "proof", as_host=as_host)

    def agree(self, *, joiner: bytes, host: bytes, as_host: bool) -> tuple[SealedChannel, int]:
        """The channel for all that follows and the phrase's number, bound to both opened proofs."""
        transcript = _sum_up(b"kafila paired", self._transcript, joiner, host)
        phrase = derive_key(self._shared, transcript=transcript, use="phrase")
        number = int.from_bytes(phrase, "big") >> 8 * len(phrase) - PHRASE_WORDS * WORD_BITS
        return self._channel(transcript, "talk", as_host=as_host), number

    def _channel(self, transcript: bytes, use: str, *, as_host: bool) -> SealedChannel:
        to_host = derive_key(self._shared, transcript=transcript, use=f"{use} joiner to host")
        to_joiner = derive_key(self._shared, transcript=transcript, use=f"{use} host to joiner")
        if as_host:
            return SealedChannel(send_key=to_joiner, receive_key=to_host)
        return SealedChannel(send_key=to_host, receive_key=to_joiner)


@dataclass(frozen=True, slots=True)
class _Begun:
    side: SPAKE2_A | SPAKE2_B


@dataclass(frozen=True, slots=True)
class _Spoken:
    """Both hellos are said."""

    secrets: _Secrets
    proofs: SealedChannel
    commitment: bytes
    """The other side's."""


def _split_entropy(entropy: bytes) -> tuple[bytes, bytes]:
    if len(entropy) != EXCHANGE_ENTROPY_BYTES:
        message = f"an exchange takes {EXCHANGE_ENTROPY_BYTES} random bytes"
        raise ValueError(message)
    return entropy[:_SCALAR_ENTROPY_BYTES], entropy[_SCALAR_ENTROPY_BYTES:]


def _identities(nameplate: int) -> tuple[bytes, bytes]:
    return f"kafila host {nameplate}".encode(), f"kafila joiner {nameplate}".encode()


def _finish(side: SPAKE2_A | SPAKE2_B, theirs: bytes) -> bytes:
    try:
        return side.finish(theirs)
    except (SPAKEError, NotOnCurve, ValueError):
        fault = "a key exchange message that is none"
        raise PeerError(fault) from None


def _sum_up(*parts: bytes) -> bytes:
    """One hash over several byte strings and where each ends."""
    return sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def _commit(role: bytes, nonce: bytes, spki_sha256: bytes) -> bytes:
    return _sum_up(b"kafila commitment", role, nonce, spki_sha256)


def _sum_up_hellos(nameplate: int, session: bytes, *, joiner: bytes, host: bytes) -> bytes:
    """Both hellos as they were sent, version included, and what they are about."""
    return _sum_up(b"kafila hellos", str(nameplate).encode(), session, joiner, host)


def _open(proofs: SealedChannel, body: bytes) -> bytes | None:
    """The proof, or None where the two sides have different keys."""
    try:
        return proofs.open(body)
    except PeerError:
        return None


def _check_opened(proof: JoinerProof | HostProof, role: bytes, commitment: bytes) -> None:
    if not compare_digest(_commit(role, proof.nonce, proof.spki_sha256), commitment):
        fault = "a commitment that was opened to something else"
        raise PeerError(fault)


def _out_of_order() -> PeerError:
    return PeerError("a message of joining out of its order")
