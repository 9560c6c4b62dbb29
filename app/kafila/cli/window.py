"""`kafila` without a command: the window."""

import argparse
import os
import sys

from kafila.cli.compose import engine_command
from kafila.domain.errors import UserError
from kafila.engine.settings import Folders


def has_screen() -> bool:
    """Whether a window can be opened; Qt would abort the process where it cannot."""
    if sys.platform == "darwin" or os.environ.get("QT_QPA_PLATFORM") == "offscreen":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def run(arguments: argparse.Namespace) -> int:
    """Open the window and stay until it is closed."""
    if not has_screen():
        raise UserError(
            title="There is no screen to open a window on",
            advice="Use “kafila demo --headless”, “kafila host” or “kafila join CODE” instead.",
        )
    from kafila.gui.app import run_app  # Qt only where there is a screen

    folders = Folders.of(arguments.profile)
    return run_app(arguments.profile, engine_command(arguments.profile), folders.data)
