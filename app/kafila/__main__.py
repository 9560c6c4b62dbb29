"""`python -m kafila`, and the console script."""

import sys


def main() -> int:
    """Run what the command line asks for; Ctrl+C is an answer even while Kafila is still being imported."""
    try:
        from kafila.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
