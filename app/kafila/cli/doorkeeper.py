"""The host at its door: asks the person at the terminal about newcomers, in the order they came."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable

from kafila.domain.commands import Admit, Command, Decline
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Newcomer, WaitingRoom

STDIN = 0

Knock = tuple[MemberId, tuple[str, ...]]
"""A computer and the words to compare, which are others each time that it knocks."""


class Doorkeeper:
    """Reads yes or no for each newcomer."""

    def __init__(self, do: Callable[[Command], None]) -> None:
        """`do` takes what was decided."""
        self._do = do
        self._asked: list[Knock] = []
        self._decided: set[Knock] = set()
        self._reads = False

    def look(self, room: WaitingRoom) -> None:
        """Ask about those who are new, and forget those who have gone."""
        waiting = {_knock(newcomer): newcomer for newcomer in room.newcomers}
        self._asked = [knock for knock in self._asked if knock in waiting]
        for knock, newcomer in waiting.items():
            if knock not in self._asked and knock not in self._decided:
                self._asked.append(knock)
                print(f"Let {newcomer.machine.name} in? Type yes or no:", file=sys.stderr, flush=True)
        if self._asked and not self._reads:
            self._reads = True
            loop = asyncio.get_running_loop()
            # Not the loop's own reader, which takes no files and, on some systems, no terminals; and not
            # `sys.stdin`, whose lock a thread that still waits would hold while the program ends.
            threading.Thread(target=_read_lines, args=(loop, self._answered), daemon=True).start()

    def _answered(self, line: str) -> None:
        if self._asked:
            knock = self._asked.pop(0)
            self._decided.add(knock)
            yes = line.strip().lower() in {"y", "yes"}
            self._do(Admit(member=knock[0]) if yes else Decline(member=knock[0]))


def _knock(newcomer: Newcomer) -> Knock:
    return newcomer.member, newcomer.phrase


def _read_lines(loop: asyncio.AbstractEventLoop, take: Callable[[str], None]) -> None:
    """Give every line that is typed to the loop, until there is nobody to type."""
    rest = b""
    with contextlib.suppress(OSError, RuntimeError):  # no input at all, or the loop has ended
        while data := os.read(STDIN, 4096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                loop.call_soon_threadsafe(take, line.decode(errors="replace"))
