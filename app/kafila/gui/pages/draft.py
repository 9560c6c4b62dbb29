"""What a host has decided so far, before there is a session. No Qt."""

from dataclasses import dataclass
from math import ceil

from kafila.domain.snapshot import ModelCard

MOST_PEOPLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model that was picked."""

    id: str
    name: str
    size_bytes: int | None = None
    kv_bytes_per_token: int | None = None
    max_context: int | None = None

    @classmethod
    def of(cls, card: ModelCard) -> "ModelChoice":
        """From a card."""
        return cls(
            id=card.id,
            name=card.name,
            size_bytes=card.size_bytes,
            kv_bytes_per_token=card.kv_bytes_per_token,
            max_context=card.max_context,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """One answer to "how long may a conversation get"."""

    key: str
    tokens: int
    words: int
    pages: int
    """How many sheets the picture shows."""


LENGTHS = (
    Length(key="short", tokens=2048, words=1500, pages=1),
    Length(key="long", tokens=8192, words=6000, pages=3),
    Length(key="very-long", tokens=32768, words=24000, pages=8),
)


def conversation_bytes(model: ModelChoice, length: Length) -> int | None:
    """What one conversation of this length takes."""
    if model.kv_bytes_per_token is None:
        return None
    return model.kv_bytes_per_token * length.tokens


def length_of(context: int) -> Length:
    """The length whose words describe a context of so many tokens."""
    return next((length for length in LENGTHS if context <= length.tokens), LENGTHS[-1])


def computers_needed(size_bytes: int, room_bytes: int | None) -> int | None:
    """About how many computers like this one a model needs; None where the room is not known."""
    if not room_bytes:
        return None
    return max(2, ceil(size_bytes * 1.1 / room_bytes))
