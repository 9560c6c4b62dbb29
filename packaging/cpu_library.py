"""Builds the library that makes MLX models quick on a processor, with whatever C compiler there is.

Standard library only: it runs while Kafila is being set up, and inside the build of its wheel.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "app" / "kafila" / "compute" / "cpu"
SOURCES = FOLDER / "source"
LIBRARY = FOLDER / "libkafila_cpu.so"

# The order of sums is the same wherever a row is computed, so nothing may be reordered (no -ffast-math).
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-ffp-contract=fast",
    "-Wall",
    "-Wextra",
)
# What only kernels for one kind of processor are compiled with; which of them run is found out at run time.
FLAGS_OF = {
    "kernels_avx2.c": ("-mavx2", "-mfma", "-mf16c"),
    "kernels_avx512.c": (
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mavx512vnni",
        "-mavx2",
        "-mfma",
        "-mf16c",
    ),
}
ADVICE = (
    "No C compiler was found, so on a processor (without a graphics chip) models run on plain MLX, "
    "ten times slower or more. Install one (on Debian and Ubuntu: sudo apt install gcc libc6-dev) and run this again."
)


class BuildError(Exception):
    """The compiler is there and failed; with what it said."""


def find_compiler() -> list[str] | None:
    """The command of a C compiler; none where there is none, or where the library is not for."""
    if not sys.platform.startswith("linux"):
        return None
    asked = shlex.split(os.environ.get("CC", ""))
    for command in (asked, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return None


def sources() -> list[Path]:
    """All files that the library is made of, in a fixed order."""
    return sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])


def build(library: Path = LIBRARY, *, compiler: list[str], extra: tuple[str, ...] = ()) -> None:
    """Compile and link; the library appears whole or not at all. Raises BuildError."""
    with tempfile.TemporaryDirectory(dir=library.parent, prefix=".building-") as folder:
        beside = Path(folder)
        commands = [
            [*compiler, *FLAGS, *flags, *extra, "-c", str(source), "-o", str(beside / f"{source.stem}.o")]
            for source, flags in _steps()
        ]
        with ThreadPoolExecutor(os.cpu_count()) as at_once:
            objects = list(at_once.map(_run, commands))
        made = beside / library.name
        _run([*compiler, "-shared", *extra, "-o", str(made), *objects, "-lm", "-lpthread"])
        made.replace(library)


def _steps() -> Iterator[tuple[Path, tuple[str, ...]]]:
    on_intel = platform.machine() in {"x86_64", "AMD64"}
    for source in sorted(SOURCES.glob("*.c")):
        flags = FLAGS_OF.get(source.name, ())
        # Kernels of other processors are empty files here.
        yield source, flags if on_intel else ()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{shlex.join(command)}\n{done.stderr}"
        raise BuildError(message)
    return command[command.index("-o") + 1]


def main() -> int:
    """Build it where it belongs, or say once why not."""
    if not sys.platform.startswith("linux"):
        return 0
    compiler = find_compiler()
    if compiler is None:
        print(ADVICE, file=sys.stderr)
        return 0
    try:
        build(compiler=compiler)
    except BuildError as error:
        print(f"{error}\nThe library for processors could not be built; models run on plain MLX.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
