"""Numbers as people read them, in their own locale."""

from math import ceil

from PySide6.QtCore import QCoreApplication, QLocale

WORDS_PER_TOKEN = 0.75
"""What a token of a common language amounts to; only for what is predicted."""

GIGA = 1_000_000_000
MEGA = 1_000_000


def whole(value: float) -> str:
    """A whole number with its groups."""
    return QLocale().toString(round(value))


def decimal(value: float, digits: int = 1) -> str:
    """A number with some digits after the point."""
    return QLocale().toString(float(value), "f", digits)


def size(count: float, *, up: bool = False) -> str:
    """Bytes as "10.4 GB" or "270 MB"; with `up` never less than they are, for what is missing."""
    if count >= GIGA:
        tenths = count / GIGA * 10
        return QCoreApplication.translate("numbers", "{number} GB").format(
            number=decimal((ceil(round(tenths, 6)) if up else tenths) / 10)
        )
    megabytes = ceil(count / MEGA) if count > 0 else 0
    return QCoreApplication.translate("numbers", "{number} MB").format(number=whole(megabytes))


def size_of(part: float, total: float) -> str:
    """Two sizes in one unit: "8.7 of 10.4 GB"."""
    big = total >= GIGA
    unit = GIGA if big else MEGA
    numbers = [decimal(value / unit) if big else whole(value / unit) for value in (part, total)]
    words = QCoreApplication.translate("numbers", "{part} of {total} {unit}")
    return words.format(part=numbers[0], total=numbers[1], unit="GB" if big else "MB")


def words_a_second(tokens_per_second: float) -> str:
    """A predicted rate in words."""
    rate = tokens_per_second * WORDS_PER_TOKEN
    return decimal(rate, 1 if rate < 100 else 0)


def words_at_most(tokens: float) -> str:
    """The length of a conversation in words: its first two figures, and never more than it is."""
    words = int(tokens * WORDS_PER_TOKEN)
    scale = 10 ** max(0, len(str(words)) - 2)
    return whole(words // scale * scale)


def milliseconds(value: float) -> str:
    """A duration below or about a second."""
    return QCoreApplication.translate("numbers", "{number} ms").format(number=whole(value))


def duration(seconds: float) -> str:
    """About how long: "9 s" or "4 min"."""
    if seconds < 100:
        return QCoreApplication.translate("numbers", "{number} s").format(number=whole(max(seconds, 1)))
    return QCoreApplication.translate("numbers", "{number} min").format(number=whole(seconds / 60))
