"""Computers of a lab: network namespaces without a name, entered by threads.

A namespace lives as long as something refers to it: an open file of this process, a thread or a
child inside it. So none is left behind, however the tests end, and labs side by side cannot clash.
"""

import asyncio
import ctypes
import fcntl
import os
import queue
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SIOCGIFFLAGS, _IFF_RUNNING = 0x8913, 0x40
_COMMAND_WITHIN_S = 30.0
_STOP_WITHIN_S = 10.0
_GOODBYE_S = 0.1

_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def why_not_here() -> str | None:
    """Why namespaces cannot be made here; None where they can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "making networks of one's own takes root"
    missing = [name for name in ("ip", "nft", "conntrack") if not _find(name)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return None if Path("/dev/net/tun").exists() else "this kernel has no TUN devices"


def _find(program: str) -> bool:
    return any(Path(folder, program).exists() for folder in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"))


class Namespace:
    """One computer's network: its interfaces, routes and packet filter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._file = _in_thread(_unshare)
        self.ip("link set lo up")

    @property
    def path(self) -> str:
        """How other programs call it, while this process lives."""
        return f"/proc/{os.getpid()}/fd/{self._file}"

    def call(self, work: Callable[[], T]) -> T:
        """Do something inside, on a thread of its own, and wait for it."""

        def inside() -> T:
            self.enter()
            return work()

        return _in_thread(inside)

    def enter(self) -> None:
        """Move the calling thread inside, for good."""
        if _libc.setns(self._file, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def run(self, command: Sequence[str], text: str = "") -> str:
        """Run a short program inside; what it printed. It has to succeed."""

        def start() -> str:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, timeout=_COMMAND_WITHIN_S, check=False
            )
            if done.returncode:
                message = f"{command} in {self.name}: {done.stderr or done.stdout}\n{text}"
                raise RuntimeError(message)
            return done.stdout

        return self.call(start)

    def ip(self, *lines: str) -> None:
        """Do what `ip` is told, all at once."""
        self.run(["ip", "-batch", "-"], "\n".join(lines) + "\n")

    def nft(self, rules: str) -> None:
        """Add rules to the packet filter, all or none."""
        self.run(["nft", "-f", "-"], rules)

    def set_kernel(self, name: str, value: int | str) -> None:
        """Set a parameter of the network stack, by its path below `net`."""
        self.call(lambda: Path("/proc/sys/net", name).write_text(str(value)))

    def wait_until_up(self) -> None:
        """Wait until every interface carries packets; the kernel says so up to a second late."""

        def is_up(asking: socket.socket, name: str) -> bool:
            answer = fcntl.ioctl(asking, _SIOCGIFFLAGS, struct.pack("16sH22x", name.encode(), 0))
            return bool(struct.unpack("16sH22x", answer)[1] & _IFF_RUNNING)

        def wait() -> None:
            end = time.monotonic() + _COMMAND_WITHIN_S
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                while not all(is_up(asking, name) for _, name in socket.if_nameindex()):
                    if time.monotonic() > end:
                        message = f"an interface of {self.name} does not come up"
                        raise RuntimeError(message)
                    time.sleep(0.01)

        self.call(wait)

    def open_tun(self, name: str) -> int:
        """A network device whose packets are read from, and written to, the file returned."""

        def open_here() -> int:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
            return device

        return self.call(open_here)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)


class Computer(Namespace):
    """A namespace with an event loop inside, and programs."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._programs: list[subprocess.Popen[str]] = []

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that runs inside."""
        if self._loop is None:
            ready: queue.SimpleQueue[asyncio.AbstractEventLoop] = queue.SimpleQueue()
            self._thread = threading.Thread(target=self._serve, args=(ready,), name=self.name, daemon=True)
            self._thread.start()
            self._loop = ready.get()
        return self._loop

    def _serve(self, ready: "queue.SimpleQueue[asyncio.AbstractEventLoop]") -> None:
        self.enter()
        with asyncio.Runner() as runner:
            ready.put(runner.get_loop())
            runner.get_loop().run_forever()
            # What was closed by TLS says goodbye first. Where that is lost, it waits no longer.
            runner.run(asyncio.sleep(_GOODBYE_S))
            for transport in list(getattr(runner.get_loop(), "_transports", {}).values()):
                transport.abort()
            runner.run(asyncio.sleep(0.01))

    async def do(self, work: Coroutine[None, None, T]) -> T:
        """Run something on the loop inside, and wait for it from another loop."""
        return await asyncio.wrap_future(self.begin(work))

    def begin(self, work: Coroutine[None, None, T]) -> Future[T]:
        """Run something on the loop inside."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def ask(self, question: Callable[[], T]) -> T:
        """Call something on the loop inside."""

        async def answer() -> T:
            return question()

        return await self.do(answer())

    def start(self, command: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a program inside; it ends with the lab."""

        def begin() -> subprocess.Popen[str]:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        program = self.call(begin)
        self._programs.append(program)
        return program

    def stop(self) -> None:
        """Have the loop end soon."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def close(self) -> None:
        """End its programs and its loop."""
        for program in self._programs:
            program.kill()
        for program in self._programs:
            program.communicate()
        self.stop()
        if self._thread is not None:
            self._thread.join(_STOP_WITHIN_S)
        super().close()


def _unshare() -> int:
    if _libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _in_thread(work: Callable[[], T]) -> T:
    """Call something on a new thread: whoever changes namespaces must not take others along."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001  # raised again where it was asked for
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    return outcome.result()
