"""What is said about a computer: its picture, whose it is, how it is reached, how fast it is."""

from PySide6.QtCore import QCoreApplication

from kafila.domain.capability import Capability, Machine, MachineKind, Mapping
from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import Member
from kafila.gui.theme import Icon
from kafila.gui.widgets.pill import PillKind

_ICONS = {
    MachineKind.LAPTOP: Icon.LAPTOP,
    MachineKind.DESKTOP: Icon.MONITOR,
    MachineKind.SERVER: Icon.SERVER,
}
_SPEEDS_BYTES_S = (25e9, 80e9, 250e9)
"""Memory bandwidths between which a computer is called steady, medium, fast, very fast."""


def _tr(text: str) -> str:
    return QCoreApplication.translate("machines", text)


def icon_of(machine: Machine) -> Icon:
    """The computer's picture."""
    return _ICONS[machine.kind]


def whose(machine: Machine, *, mine: bool) -> str:
    """Whose computer it is; empty where nobody said."""
    if mine:
        return _tr("This computer · you")
    return machine.owner


def speed_word(capability: Capability | None) -> str:
    """How fast it is, in a word; empty where that was not measured."""
    if capability is None or capability.bandwidth_bytes_s is None:
        return ""
    words = (_tr("Steady"), _tr("Medium"), _tr("Fast"), _tr("Very fast"))
    faster = sum(capability.bandwidth_bytes_s >= limit for limit in _SPEEDS_BYTES_S)
    return words[faster]


def network_word(capability: Capability | None, mine: Capability | None) -> str:
    """Where it stands, seen from here; empty where that was not learned."""
    if capability is None:
        return ""
    reach = capability.reachability
    if reach.lan is not None and mine is not None and reach.lan == mine.reachability.lan:
        return _tr("same network")
    if reach.mapping in {Mapping.ENDPOINT_DEPENDENT, Mapping.UDP_BLOCKED}:
        return _tr("strict network")
    return "" if reach.mapping is Mapping.UNKNOWN else _tr("far away")


def second_line(member: Member, mine: Capability | None, me: MemberId) -> str:
    """The second line of a member's row."""
    if member.member == me:
        return whose(member.machine, mine=True)
    parts = (member.machine.owner, network_word(member.capability, mine))
    return " · ".join(part for part in parts if part)


def path_pill(path: PathKind | None) -> tuple[str, PillKind, Icon | None]:
    """How a computer is reached: word, kind and icon of a pill."""
    match path:
        case PathKind.DIRECT:
            return _tr("Direct"), PillKind.OK, None
        case PathKind.RELAYED:
            return _tr("Relayed"), PillKind.RELAYED, Icon.ROUTE
        case None:
            return _tr("Connecting"), PillKind.PLAIN, None
