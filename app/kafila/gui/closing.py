"""Before the window closes: who would lose something, and whether that is meant."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from kafila.domain.snapshot import Forming, Serving, Snapshot, WaitingRoom
from kafila.gui.theme import Theme
from kafila.gui.widgets.notice import Asking


def who_would_lose(snapshot: Snapshot | None, *, demo: bool) -> tuple[str, ...]:
    """The others who would lose the session, were this window closed now; a demo has no others."""
    if snapshot is None or demo:
        return ()
    me = snapshot.me.member
    match snapshot.session:
        case WaitingRoom(is_host=True, members=seats):
            machines = {seat.member: seat.machine for seat in seats}
        case Forming(is_host=True, rows=rows):
            machines = {row.member: row.machine for row in rows}
        case Serving(ring=ring, is_host=is_host) if is_host or any(seat.head and seat.member == me for seat in ring):
            machines = {seat.member: seat.machine for seat in ring}
        case _:
            return ()
    return tuple(machine.owner or machine.name for member, machine in machines.items() if member != me)


def ask_before_closing(theme: Theme, window: QWidget, others: Sequence[str]) -> Asking:
    """The question, to be opened; accepted, it is meant."""
    tr = QCoreApplication.translate
    words = tr("Closing", "The session ends for {names}; their conversations stay on their own computers.")
    return Asking(
        theme, window, tr("Closing", "Leave while the group is working?"), words.format(names=", ".join(others)),
        stay=tr("Closing", "Stay"), go=tr("Closing", "End for everyone"),
    )  # fmt: skip
