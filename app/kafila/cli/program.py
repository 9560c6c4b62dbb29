"""How this program starts itself again, as another process."""

import sys


def program() -> list[str]:
    """The command, to which its arguments are added."""
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "kafila"]
