"""Names that came from another computer, made safe to show: printable, in one line, not too long."""

import msgspec

from kafila.domain.capability import Machine

MAX_NAME = 40
MAX_TITLE = 80

_JOINERS = "\u200c\u200d"
"""Not printable by themselves, but Persian names and many emoji are spelled with them."""


def clean_name(text: str, limit: int = MAX_NAME) -> str:
    """The text without what could disguise it: control characters, changes of direction."""
    kept = "".join(letter if letter.isprintable() or letter in _JOINERS else " " for letter in text[: 4 * limit])
    return " ".join(kept.split())[:limit].strip()


def clean_machine(machine: Machine) -> Machine:
    """Another computer's description of itself, fit to be shown."""
    return msgspec.structs.replace(
        machine,
        name=clean_name(machine.name) or "A computer",
        owner=clean_name(machine.owner),
        system=clean_name(machine.system, MAX_TITLE),
    )
