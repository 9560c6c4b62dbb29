"""What is set on this computer whatever it is doing: its names, and where its sessions meet."""

from msgspec.structs import replace

from kafila.domain.commands import MeetAt, Rename
from kafila.domain.snapshot import ThisComputer
from kafila.engine.events import Effect, KeepMeetingPlace, KeepName, KeepRendezvous, RendezvousMet
from kafila.engine.known_rendezvous import not_an_address, not_verified
from kafila.protocol.rendezvous_address import RendezvousAt

Changed = tuple[ThisComputer, list[Effect]]


def set_up(me: ThisComputer, command: Rename | MeetAt) -> Changed:
    """Take what a person has set; what is no address is told, and changes nothing."""
    if isinstance(command, MeetAt):
        return _meet_at(me, command.rendezvous.strip())
    machine = replace(me.machine, name=command.machine.strip() or me.machine.name, owner=command.owner.strip())
    return replace(me, machine=machine), [KeepName(machine=machine.name, owner=machine.owner)]


def _meet_at(me: ThisComputer, rendezvous: str) -> Changed:
    try:
        if rendezvous:
            RendezvousAt.parse(rendezvous)
    except ValueError:
        return replace(me, rendezvous_problem=not_an_address(rendezvous)), []
    me = replace(me, rendezvous=rendezvous, rendezvous_problem=None)
    return me, [KeepMeetingPlace(rendezvous=rendezvous or None)]


def met(me: ThisComputer, event: RendezvousMet) -> Changed:
    """A rendezvous was reached: its certificate is remembered, and told of if nobody vouched for it."""
    kept: list[Effect] = [KeepRendezvous(address=event.address, certificate=event.certificate)]
    if not event.unverified:
        return me, kept
    return replace(me, notices=(not_verified(event.address), *me.notices)), kept
