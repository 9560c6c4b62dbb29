"""A second implementation of joining, written from docs/protocol.md, whose sides can be made to cheat.

It pins the bytes on the wire: a change in the app that this does not follow is another version.
"""

from hashlib import sha256

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from spake2 import SPAKE2_A, SPAKE2_B

FIRST_NONCE = bytes(12)


def digest(*parts: bytes) -> bytes:
    return sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


def commitment(role: str, nonce: bytes, spki_sha256: bytes) -> bytes:
    return digest(b"kafila commitment", role.encode(), nonce, spki_sha256)


def derive(shared: bytes, transcript: bytes, use: str) -> bytes:
    return HKDF(SHA256(), 32, transcript, b"kafila key " + use.encode()).derive(shared)


def pack(kind: int, body: list[object]) -> bytes:
    return b"kafila\x01" + bytes((kind,)) + msgspec.msgpack.encode(body)


def unpack(data: bytes) -> list[bytes]:
    return msgspec.msgpack.decode(data[8:], type=list[bytes])


class ScriptedJoiner:
    """Says and proves what it is told to."""

    def __init__(self, nameplate: int, secret: str, *, commits_to: bytes, proves: list[object]) -> None:
        self._nameplate = str(nameplate).encode()
        names = b"kafila host " + self._nameplate, b"kafila joiner " + self._nameplate
        self._side = SPAKE2_B(secret.encode(), *names)
        self._proof = msgspec.msgpack.encode(proves)
        self.hello = pack(1, [self._side.start(), commits_to])

    def prove(self, host_hello: bytes) -> bytes:
        session, pake, _ = unpack(host_hello)
        self._shared = self._side.finish(pake)
        self._transcript = digest(b"kafila hellos", self._nameplate, session, self.hello, host_hello)
        key = derive(self._shared, self._transcript, "proof joiner to host")
        return b"kafila\x01\x03" + ChaCha20Poly1305(key).encrypt(FIRST_NONCE, self._proof, None)

    def read(self, host_proof: bytes) -> tuple[list[object], bytes, bytes]:
        """What the host proved, the first 33 bits of the phrase key as 5 bytes, and its sending key."""
        key = derive(self._shared, self._transcript, "proof host to joiner")
        proof = ChaCha20Poly1305(key).decrypt(FIRST_NONCE, host_proof[8:], None)
        paired = digest(b"kafila paired", self._transcript, self._proof, proof)
        phrase = int.from_bytes(derive(self._shared, paired, "phrase"), "big") >> 256 - 33
        talk = derive(self._shared, paired, "talk host to joiner")
        return msgspec.msgpack.decode(proof, type=list[object]), phrase.to_bytes(5, "big"), talk


class ScriptedHost:
    """Says and proves what it is told to, and lets everybody in."""

    def __init__(self, nameplate: int, secret: str, *, commits_to: bytes, proves: list[object]) -> None:
        self._nameplate = str(nameplate).encode()
        names = b"kafila host " + self._nameplate, b"kafila joiner " + self._nameplate
        self._side = SPAKE2_A(secret.encode(), *names)
        self._commitment = commits_to
        self._proof = msgspec.msgpack.encode(proves)

    def answer(self, joiner_hello: bytes) -> bytes:
        session = bytes(16)
        pake, _ = unpack(joiner_hello)
        hello = pack(2, [session, self._side.start(), self._commitment])
        shared = self._side.finish(pake)
        transcript = digest(b"kafila hellos", self._nameplate, session, joiner_hello, hello)
        self._key = derive(shared, transcript, "proof host to joiner")
        return hello

    def prove(self) -> bytes:
        return b"kafila\x01\x04" + ChaCha20Poly1305(self._key).encrypt(FIRST_NONCE, self._proof, None)
