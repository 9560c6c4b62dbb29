"""The engine as a child process: commands come in as lines, snapshots and chat events go out.

End of input means that the client has gone: the engine leaves its session and ends.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from kafila.domain.snapshot import Snapshot
from kafila.domain.wire import MAX_LINE_BYTES, Output, decode_command, encode_line

if TYPE_CHECKING:
    from kafila.domain.commands import Command

log = logging.getLogger(__name__)

SNAPSHOT_EVERY_S = 0.05

RunEngine = Callable[[Callable[[Output], None], "asyncio.Queue[Command | None]"], Awaitable[None]]
"""Runs an engine that says outputs and takes commands; None in the queue ends it."""


def claim_stdout() -> int:
    """Keep standard output for the wire: whatever else prints goes to standard error."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return wire


async def serve_over_pipes(run_engine: RunEngine) -> None:
    """Run an engine whose client is at the other end of standard input and output."""
    wire = claim_stdout()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    commands: asyncio.Queue[Command | None] = asyncio.Queue()
    writer = _Writer(wire)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(writer.run())
        tasks.create_task(_read_commands(reader, commands))
        await run_engine(writer.say, commands)
        await writer.finish()
        writing.cancel()


async def _read_commands(reader: asyncio.StreamReader, commands: "asyncio.Queue[Command | None]") -> None:
    while line := await _line(reader):
        try:
            commands.put_nowait(decode_command(line))
        except msgspec.DecodeError:
            log.warning("a command that is not understood was ignored")
    commands.put_nowait(None)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except (ValueError, ConnectionError):  # a line beyond all bounds, or a broken pipe
        return b""


class _Writer:
    """Writes outputs in order; of snapshots that come in quick succession, the newest."""

    def __init__(self, wire: int) -> None:
        self._wire = wire
        self._waiting: list[Output] = []
        self._woken = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def say(self, output: Output) -> None:
        if isinstance(output, Snapshot) and self._waiting and isinstance(self._waiting[-1], Snapshot):
            self._waiting.pop()
        self._waiting.append(output)
        self._idle.clear()
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            batch, self._waiting = self._waiting, []
            lines = b"".join(encode_line(output) for output in batch)
            try:
                # A client that does not read must not stop the ring: write from a thread.
                await asyncio.to_thread(self._write_all, lines)
            except OSError:
                self._idle.set()
                return
            if not self._waiting:
                self._idle.set()
            await asyncio.sleep(SNAPSHOT_EVERY_S)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._wire, view) :]

    async def finish(self) -> None:
        try:
            await asyncio.wait_for(self._idle.wait(), 2.0)
        except TimeoutError:
            log.info("the client no longer reads")
