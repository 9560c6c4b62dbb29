"""Names of things, as distinct types so that they cannot be exchanged by mistake."""

from typing import NewType

MemberId = NewType("MemberId", str)
"""16 hexadecimal digits: the first 8 bytes of the SHA-256 of the device's public key (SPKI)."""

SessionId = NewType("SessionId", str)
"""32 hexadecimal digits, drawn by the host when a session opens."""

ConversationId = NewType("ConversationId", str)
"""Chosen by whoever chats; the same conversation keeps its KV caches between turns."""

RequestId = NewType("RequestId", int)
"""One sequence of tokens in the ring: the key of the KV caches on every stage."""
