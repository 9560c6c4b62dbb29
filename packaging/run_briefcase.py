"""Runs Briefcase with its settings read from ./briefcase.toml instead of pyproject.toml.

Briefcase is no dependency of the project: install the version below for the system's own Python, which it must run
under to make a Debian package. How it reads its settings is its own affair, hence the exact version.
"""

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import cpu_library

BRIEFCASE = "0.4.7"


def main(arguments: list[str]) -> int:
    """Do what `briefcase ARGUMENTS…` does."""
    try:
        found = version("briefcase")
    except PackageNotFoundError:
        found = "none"
    if found != BRIEFCASE:
        print(
            f"This needs Briefcase {BRIEFCASE} and found {found}: pip install briefcase=={BRIEFCASE}", file=sys.stderr
        )
        return 1

    # The installed app brings the library for processors, so that people need no compiler.
    if sys.platform == "linux" and not cpu_library.bring_up_to_date():
        return 1
    console = import_module("briefcase.console").Console()
    command_class, rest = import_module("briefcase.cmdline").parse_cmdline(arguments, console=console)
    command = command_class(console=console)
    options, overrides = command.parse_options(extra=rest)
    command.parse_config(Path.cwd() / "briefcase.toml", overrides=overrides)
    command(**options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
