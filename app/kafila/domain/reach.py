"""From where people can join, in words for whoever hosts: what holds, and what to do about it."""

from kafila.domain.errors import Problem
from kafila.domain.snapshot import NoPort, Reach

_WHY = {
    NoPort.NO_ROUTER: "This computer found no router that it could ask for a way in.",
    NoPort.REFUSED: "The router opens no way in; many do once “UPnP” is switched on in their settings.",
    NoPort.BEHIND_ANOTHER: (
        "The router is behind another one, often the provider’s own, so nobody reaches it from outside."
    ),
    NoPort.NOT_REACHED: "The router opened a way in, but nobody outside gets through; a firewall may be closed.",
}
_WORDS = {
    Reach.THIS_COMPUTER: ("Nobody else can join", "Connect this computer to a network, then host again."),
    Reach.SAME_NETWORK: (
        "People on this network can join",
        "For people elsewhere, host again and say that they may join, in a terminal with “--open-port”.",
    ),
    Reach.PROBABLY_ANYWHERE: (
        "People elsewhere can probably join, too",
        "Send them the invitation: it carries the way to this computer. Nobody has come in that way yet.",
    ),
    Reach.ANYWHERE: (
        "People can join from anywhere",
        "Send the invitation to people elsewhere: it carries the way to this computer.",
    ),
    Reach.NEEDS_RENDEZVOUS: (
        "Only people on this network can join",
        "For people elsewhere, let the group meet at a rendezvous of its own, “kafila rendezvous” on a small "
        "rented computer: Help has the steps.",
    ),
    Reach.RENDEZVOUS: (
        "People can join from anywhere",
        "They come in by way of the group’s rendezvous. Send the invitation: it carries the way there.",
    ),
}


def reach_in_words(reach: Reach, no_port: NoPort | None) -> Problem | None:
    """What a host reads; None where nobody else is expected, as in the demo."""
    if reach is Reach.THIS_COMPUTER and no_port is None:
        return None
    title, advice = _WORDS[reach]
    return Problem(title=title, advice=f"{_WHY[no_port]} {advice}" if no_port else advice)
