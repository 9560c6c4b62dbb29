"""A keyed digest of the tokens before each position, so that a cache of other text is noticed.

d_0 = BLAKE2b(key, "start"), d_(i+1) = BLAKE2b(key, d_i ‖ token_i), each cut to 8 bytes. Only the
head has the key: stages compare what the head sends, and learn nothing of the text from it.
"""

import hashlib
from collections.abc import Sequence

DIGEST_BYTES = 8


class TokenDigests:
    """The digests of one growing or rewound sequence of token ids."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._chain = [self._link(b"start")]

    def _link(self, data: bytes) -> bytes:
        return hashlib.blake2b(data, key=self._key, digest_size=DIGEST_BYTES).digest()

    def __len__(self) -> int:
        """How many tokens the chain covers."""
        return len(self._chain) - 1

    def rewind(self, position: int) -> None:
        """Forget every token from `position` on."""
        del self._chain[position + 1 :]

    def extend(self, token_ids: Sequence[int]) -> None:
        """Take in more tokens."""
        for token in token_ids:
            self._chain.append(self._link(self._chain[-1] + token.to_bytes(8, "big")))

    def slice(self, position: int, rows: int) -> bytes:
        """`rows` + 1 digests, joined: before `position`, and after each of its rows."""
        return b"".join(self._chain[position : position + rows + 1])
