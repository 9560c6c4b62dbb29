"""How a person at a terminal, or the system, asks a command to stop."""

import asyncio
import contextlib
import signal


def when_interrupted() -> asyncio.Event:
    """An event that is set by Ctrl+C, by a polite kill, and when the terminal is closed."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number: signal.Signals | None = getattr(signal, name, None)  # Windows has no SIGHUP
        # What runs under nohup is to outlive its terminal.
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, interrupted.set)
    return interrupted
