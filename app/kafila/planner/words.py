"""The planner's figures in people's words."""

WORDS_PER_TOKEN = 0.75
"""Roughly, for English text in today's vocabularies."""


def say_bytes(amount: int, *, up: bool = False) -> str:
    """An amount of memory as people say it: 5.1 GB. With `up` never less than it is."""
    for size, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        tenths = -(-amount * 10 // size) if up else round(amount * 10 / size)
        if tenths >= 10:
            return f"{tenths // 10:,}.{tenths % 10} {unit}"
    return say_count(amount, "byte")


def say_count(count: int, noun: str) -> str:
    """A number of things: one part, 12 parts."""
    return f"one {noun}" if count == 1 else f"{count:,} {noun}s"


def say_words(tokens: int) -> str:
    """The length of a conversation in words: the first two figures, and never more than it is."""
    words = int(tokens * WORDS_PER_TOKEN)
    scale = 10 ** max(0, len(str(words)) - 2)
    return f"{words // scale * scale:,} words"


def say_ms_per_word(token_ms: float) -> str:
    """A time per token as a time per word."""
    word_ms = token_ms / WORDS_PER_TOKEN
    return f"{word_ms:.0f} ms" if word_ms >= 9.5 else f"{word_ms:.1f} ms"
