"""`python -m kafila`, and the console script."""

import sys

from kafila.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
