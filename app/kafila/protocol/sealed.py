"""What two computers say to each other once they share keys, while others carry it.

Each direction has its own key, and each message its own nonce, which is its place in the order.
A message that was changed, repeated, left out, reordered or sent back does not open, and with it
the channel is over: whoever carries the messages can only stop them.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kafila.domain.errors import PeerError

KEY_BYTES = 32
TAG_BYTES = 16
MAX_SEALED_BYTES = 64 << 10
"""The largest sealed message, which is what the rendezvous passes on in one piece."""
MAX_PLAIN_BYTES = MAX_SEALED_BYTES - TAG_BYTES

_NONCE_BYTES = 12


def derive_key(secret: bytes, *, transcript: bytes, use: str) -> bytes:
    """A key for one use (HKDF-SHA256), bound to everything that was said before it was made."""
    info = b"kafila key " + use.encode()
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=transcript, info=info).derive(secret)


class SealedChannel:
    """One side of a channel. The other side has the same keys the other way round."""

    def __init__(self, *, send_key: bytes, receive_key: bytes) -> None:
        self._sealer = ChaCha20Poly1305(send_key)
        self._opener = ChaCha20Poly1305(receive_key)
        self._sent = 0
        self._received = 0
        self._broken = False

    def seal(self, plain: bytes) -> bytes:
        """The next message to send. Messages must arrive in the order in which they were sealed."""
        if len(plain) > MAX_PLAIN_BYTES:
            message = f"a sealed message has at most {MAX_PLAIN_BYTES} bytes, not {len(plain)}"
            raise ValueError(message)
        sealed = self._sealer.encrypt(_nonce(self._sent), plain, None)
        self._sent += 1
        return sealed

    def open(self, sealed: bytes) -> bytes:
        """Read the next message that came. Raises PeerError, then and ever after, if it is not it."""
        if self._broken or not TAG_BYTES <= len(sealed) <= MAX_SEALED_BYTES:
            self._broken = True
            fault = "a sealed message that cannot be one"
            raise PeerError(fault)
        try:
            plain = self._opener.decrypt(_nonce(self._received), sealed, None)
        except InvalidTag:
            self._broken = True
            fault = "a sealed message that does not open"
            raise PeerError(fault) from None
        self._received += 1
        return plain


def _nonce(count: int) -> bytes:
    return count.to_bytes(_NONCE_BYTES, "big")
