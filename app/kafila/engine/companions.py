"""More engines on this same computer, for the session that one tries alone.

Each is a child process that is told what to do over its input, as the window tells its engine;
closing that input ends it, also when this process dies without a word.
"""

import asyncio
import contextlib
import logging
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Sequence

from kafila.domain.commands import JoinSession, LeaveSession, Rename
from kafila.domain.wire import encode_line

log = logging.getLogger(__name__)

PATIENCE_S = 5.0


class Companions:
    """The demo's other engines."""

    def __init__(self, engine_command: Sequence[str], ended: Callable[[str], None]) -> None:
        """`ended` is called with the name of an engine that stopped before it was asked to."""
        self._command = engine_command
        self._ended = ended
        self._closing = False

    async def run(self, *, link: str, names: Sequence[str]) -> None:
        """Keep one engine for each name in the session of `link`, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._keep(link, name))

    async def _keep(self, link: str, name: str) -> None:
        process = await asyncio.create_subprocess_exec(*self._command, "--ephemeral", stdin=PIPE, stdout=DEVNULL)
        try:
            if process.stdin is not None:
                process.stdin.write(encode_line(Rename(machine=name, owner="")))
                process.stdin.write(encode_line(JoinSession(code=link)))
                await process.stdin.drain()
            await process.wait()
            self._ended(name)
        except ConnectionError:
            self._ended(name)
        finally:
            await asyncio.shield(stop_engine(process))


async def stop_engine(process: Process) -> None:
    """End an engine: politely by closing its input, then firmly."""
    if process.stdin is not None and not process.stdin.is_closing():
        with contextlib.suppress(ConnectionError):
            process.stdin.write(encode_line(LeaveSession()))
        process.stdin.close()
    for insist in (process.terminate, process.kill):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE_S)
            return
        log.warning("engine %d does not stop by itself", process.pid)
        with contextlib.suppress(ProcessLookupError):
            insist()
    await process.wait()
