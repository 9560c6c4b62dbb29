"""Real `kafila` processes, each in a home of its own: started, listened to, and ended by their ids.

A test waits for what a process says, and never for a length of time: `PATIENCE_S` is only there so
that what hangs fails.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import kafila

PATIENCE_S = 100.0
"""How long anything may take on a busy machine before it counts as hung."""

AT_ONCE_S = 30.0
"""Three times as long as people may be left without a word, for machines that are busy."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended, and all that it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both of its streams."""
        return self.out + self.err

    def events(self) -> list[Event]:
        """Its output, one JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Process:
    """One process; what it says is read as it comes."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._child = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.pid = self._child.pid
        self.command = " ".join(command[command.index("kafila") + 1 :])
        self._out: list[str] = []
        self._err: list[str] = []
        self._events: list[Event] = []
        self._came_at: list[float] = []
        self._news = threading.Condition()
        self._open_streams = 2
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self._child.stdout, self._out), (self._child.stderr, self._err))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        with stream:
            for line in stream:
                with self._news:
                    lines.append(line)
                    if lines is self._out and line.startswith("{"):
                        self._events.append(json.loads(line))
                        self._came_at.append(time.monotonic())
                    self._news.notify_all()
        with self._news:
            self._open_streams -= 1
            self._news.notify_all()

    # What it says

    def events(self) -> list[Event]:
        """The JSON objects on its output so far."""
        with self._news:
            return list(self._events)

    def lines(self, start: int = 0) -> list[str]:
        """The lines of its output so far, from one of them on."""
        with self._news:
            return self._out[start:]

    def errors(self) -> str:
        """Everything on its standard error so far."""
        with self._news:
            return "".join(self._err)

    def event(self, kind: str, *, within_s: float = PATIENCE_S, **fields: object) -> Event:
        """The first event of a kind with these fields, said or still to come."""
        found: list[Event] = []

        def look() -> bool:
            found[:] = [
                event
                for event in self.events()
                if event.get("event") == kind and all(event.get(name) == value for name, value in fields.items())
            ]
            return bool(found)

        self.wait_until(look, f"the event {kind} {fields or ''}", within_s=within_s)
        return found[0]

    def came_at(self, kind: str, **fields: object) -> list[float]:
        """When the events of a kind with these fields came, on this process's own clock, in seconds."""
        with self._news:
            return [
                at
                for event, at in zip(self._events, self._came_at, strict=True)
                if event.get("event") == kind and all(event.get(name) == value for name, value in fields.items())
            ]

    def sentence(self, part: str, *, within_s: float = PATIENCE_S) -> str:
        """The first line of either stream with these words, said or still to come."""
        found: list[str] = []

        def look() -> bool:
            found[:] = [line for line in (*self._out, *self._err) if part in line]
            return bool(found)

        self.wait_until(look, f"“{part}”", within_s=within_s)
        return found[0].strip()

    def wait_until(self, look: Callable[[], bool], what: str, *, within_s: float = PATIENCE_S) -> None:
        """Wait until `look` is true, which is asked whenever the process says something."""
        with self._news:
            self._news.wait_for(lambda: look() or not self._open_streams, timeout=within_s)
            came = look()
        assert came, f"{self} did not say {what}:\n{self._story()}"

    # What is done to it

    def say(self, line: str) -> None:
        """Type a line at it."""
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def close_input(self) -> None:
        """Go away, as a client does."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.close()

    def send(self, number: signal.Signals) -> None:
        """Send this one process a signal."""
        self._child.send_signal(number)

    def finish(self, *, within_s: float = PATIENCE_S) -> Finished:
        """Wait for its end."""
        try:
            code = self._child.wait(within_s)
        except subprocess.TimeoutExpired:
            message = f"{self} does not end:\n{self._story()}"
            raise AssertionError(message) from None
        for reader in self._readers:
            reader.join(PATIENCE_S)
        self.close_input()
        return Finished(code=code, out="".join(self._out), err="".join(self._err))

    def end(self) -> None:
        """End it, whatever it is doing."""
        if self._child.poll() is None:
            self._child.kill()
        self.finish()

    def _story(self) -> str:
        """The end of what it said, short enough to be read."""
        return "\n".join(line.rstrip()[:400] for line in (*self._err[-40:], *self._out[-40:]))

    def __str__(self) -> str:
        return f"“kafila {self.command}” ({self.pid})"


class Home:
    """A home folder, and what is started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True)
        self._processes: list[Process] = []

    def environment(self) -> dict[str, str]:
        """Where a process finds its home, this source, and no keyring but files."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        return {
            "LANG": "C.UTF-8",
            **kept,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "PYTHONPATH": str(Path(kafila.__file__).parents[1]),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }

    def start(self, *arguments: object, before: Sequence[str] = ()) -> Process:
        """Start `kafila` with these arguments; `before`, a command that runs commands."""
        command = [*before, sys.executable, "-m", "kafila", *map(str, arguments)]
        process = Process(command, self.environment())
        self._processes.append(process)
        return process

    def run_unread(self, *arguments: object) -> Finished:
        """Start it, and wait for its end with nobody at its input or its output."""
        nobody, out = os.pipe()
        os.close(nobody)
        command = [sys.executable, "-m", "kafila", *map(str, arguments)]
        ended = subprocess.run(
            command,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        os.close(out)
        return Finished(code=ended.returncode, out="", err=ended.stderr)

    def run(self, *arguments: object, before: Sequence[str] = (), within_s: float = PATIENCE_S) -> Finished:
        """Start it, and wait for its end with nobody at its input."""
        process = self.start(*arguments, before=before)
        process.close_input()
        return process.finish(within_s=within_s)

    def files(self) -> set[str]:
        """Everything that lies in it, by its path."""
        return {str(file.relative_to(self.folder)) for file in self.folder.rglob("*") if not file.is_dir()}

    def put_key(self, key: bytes) -> None:
        """Give this computer a key, before anything is started."""
        file = self._profile() / "device.key"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(key)

    def put_names(self, *, machine: str, owner: str) -> None:
        """Name this computer and its owner, before anything is started."""
        file = self._profile() / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"machine": machine, "owner": owner}))

    def _profile(self) -> Path:
        """Where what it remembers is kept."""
        environment = self.environment()
        if sys.platform == "darwin":
            config = self.folder / "Library" / "Application Support"
        else:
            config = Path(environment["XDG_CONFIG_HOME"])
        return config / "kafila" / "profiles" / "default"

    @property
    def models(self) -> Path:
        """Where Kafila keeps models."""
        found = [folder for folder in self.folder.rglob("models") if folder.parent.name == "kafila"]
        return found[0] if found else self.folder / "data" / "kafila" / "models"

    def end_all(self) -> None:
        """End whatever still runs of what was started here."""
        for process in self._processes:
            process.end()


class Homes:
    """Makes homes below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._homes: list[Home] = []

    def new(self, name: str = "home") -> Home:
        """Another one."""
        home = Home(self._folder / f"{name}-{len(self._homes)}")
        self._homes.append(home)
        return home

    def end_all(self) -> None:
        """End whatever still runs in any."""
        for home in self._homes:
            home.end_all()


@contextmanager
def homes_in(folder: Path) -> Generator[Homes]:
    """Homes whose processes end with them."""
    homes = Homes(folder)
    try:
        yield homes
    finally:
        homes.end_all()
