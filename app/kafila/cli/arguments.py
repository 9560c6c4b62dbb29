"""What is typed behind an option, for `argparse`, which puts the option's name before the sentence."""

import argparse
from collections.abc import Callable

from kafila.protocol.rendezvous_address import RendezvousAt

RENDEZVOUS = "HOST:PORT[#FINGERPRINT]"


def at_least(least: int) -> Callable[[str], int]:
    """Reads a whole number that is not smaller."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            message = f"“{text}” is not a number from {least} on"
            raise argparse.ArgumentTypeError(message)
        return value

    return read


def rendezvous(text: str) -> str:
    """An address of a rendezvous, as it was typed."""
    try:
        return str(RendezvousAt.parse(text))
    except ValueError:
        message = f"“{text}” is not an address. Write HOST:PORT, or all that “kafila rendezvous” prints, with the #"
        raise argparse.ArgumentTypeError(message) from None
