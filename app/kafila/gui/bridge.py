"""The engine as a child process: commands in, snapshots and chat events out, over its pipes.

The newest snapshot wins: what a busy window did not draw in time is never drawn. Chat events are
all passed on, in their order.
"""

import asyncio
import contextlib
import logging
import platform
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from kafila import __version__
from kafila.domain.commands import Command
from kafila.domain.snapshot import Snapshot
from kafila.domain.wire import MAX_LINE_BYTES, decode_output, encode_line

log = logging.getLogger(__name__)

DRAW_MS = 33
"""Snapshots that come faster than this are not drawn one by one."""
STOP_S = 5.0
KEPT_LINES = 60
LINE_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStopped:
    """The engine ended though nobody asked it to."""

    exit_code: int | None
    """None: it could not even be started."""
    last_lines: tuple[str, ...]

    def report(self) -> str:
        """What a person can send to somebody who can help."""
        code = "not started" if self.exit_code is None else str(self.exit_code)
        head = f"Kafila {__version__}, Python {platform.python_version()}, {platform.platform()}"
        return "\n".join((head, f"Engine exit code: {code}", *self.last_lines))


class EngineProcess(QObject):
    """One engine at a time. `run` lives as long as the window; `again` starts the next one."""

    snapshot = Signal(object)
    chat = Signal(object)
    stopped = Signal(object)

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__()
        self._command = tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._again = asyncio.Event()
        self._stopping = False
        self._newest: Snapshot | None = None
        self._last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._drawing = QTimer(self, singleShot=True, interval=DRAW_MS)
        self._drawing.timeout.connect(self._draw)

    @property
    def running(self) -> bool:
        """Whether an engine is there."""
        return self._process is not None and self._process.returncode is None

    def send(self, command: Command) -> None:
        """Ask the engine for something. Without an engine nothing happens."""
        if self._process is not None and self._process.stdin is not None and self.running:
            self._process.stdin.write(encode_line(command))

    def again(self) -> None:
        """Start another engine after one has stopped."""
        self._again.set()

    async def run(self) -> None:
        """Keep an engine until `stop`."""
        while not self._stopping:
            self._again.clear()
            exit_code = await self._live()
            self._newest = None
            if self._stopping:
                return
            log.warning("engine stopped, exit code %s", exit_code)
            self.stopped.emit(EngineStopped(exit_code=exit_code, last_lines=tuple(self._last_lines)))
            await self._again.wait()

    async def stop(self) -> None:
        """End the engine: it ends by itself when its input closes; else it is terminated."""
        self._stopping = True
        self._again.set()
        self._drawing.stop()
        process = self._process
        if process is not None and process.returncode is None:
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        for end in (process.terminate, process.kill):
            try:
                async with asyncio.timeout(STOP_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    end()
            else:
                return
        await process.wait()

    async def _live(self) -> int | None:
        """One engine's life; its exit code."""
        self._last_lines.clear()
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=pipe, limit=MAX_LINE_BYTES
            )
        except OSError as error:
            self._last_lines.append(str(error))
            return None
        self._process = process
        try:
            async with asyncio.TaskGroup() as tasks:
                if process.stdout is not None:
                    tasks.create_task(self._read_outputs(process, process.stdout))
                if process.stderr is not None:
                    tasks.create_task(self._read_errors(process.stderr))
                if self._stopping:
                    # `stop` came while the process was being made, and did not see it.
                    tasks.create_task(self._end(process))
                await process.wait()
        finally:
            if process.returncode is None:
                # The window broke off: nobody is left to speak with the engine.
                process.kill()
                await process.wait()
        return process.returncode

    async def _read_outputs(self, process: asyncio.subprocess.Process, lines: asyncio.StreamReader) -> None:
        try:
            while line := await lines.readline():
                self._take(line)
        except ValueError:
            self._last_lines.append(f"a line of more than {MAX_LINE_BYTES} bytes")
            process.kill()

    def _take(self, line: bytes) -> None:
        try:
            output = decode_output(line)
        except msgspec.DecodeError as error:
            log.warning("engine said something unknown: %s", error)
            self._last_lines.append(f"unknown output: {error}")
            return
        if not isinstance(output, Snapshot):
            self.chat.emit(output)
            return
        self._newest = output
        if not self._drawing.isActive():
            self._drawing.start()

    def _draw(self) -> None:
        newest, self._newest = self._newest, None
        if newest is not None:
            self.snapshot.emit(newest)

    async def _read_errors(self, lines: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await lines.readline()
            except ValueError:
                # Longer than any line we keep; but it must be read on, or the engine would block.
                continue
            if not line:
                return
            self._last_lines.append(line.decode(errors="replace").rstrip()[:LINE_MOST])
