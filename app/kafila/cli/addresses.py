"""Addresses of a rendezvous as they are typed after an option."""

import argparse

from kafila.protocol.rendezvous_address import RendezvousAt

FORM = "HOST:PORT[#FINGERPRINT]"


def rendezvous(text: str) -> str:
    """What was typed, for `argparse`, which puts the sentence behind the option's name."""
    try:
        return str(RendezvousAt.parse(text))
    except ValueError:
        message = f"“{text}” is not an address. Write HOST:PORT, or all that “kafila rendezvous” prints, with the #"
        raise argparse.ArgumentTypeError(message) from None
