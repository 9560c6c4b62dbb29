"""Builds the library that makes MLX models quick on a processor, with whatever C compiler there is.

Standard library only: it runs while Kafila is being set up, and inside the build of its wheel.
"""

import hashlib
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
WHAT_TO_INSTALL = "on Debian and Ubuntu: sudo apt install gcc libc6-dev"
NO_COMPILER = (
    "No C compiler was found, so on a processor (without a graphics chip) models run on plain MLX, "
    f"ten times slower or more. Install one ({WHAT_TO_INSTALL}) and run this again."
)
NOT_BUILT = (
    "The C compiler could not build the library for processors (see above), so without a graphics chip models run on "
    f"plain MLX, ten times slower or more. Mend or replace it ({WHAT_TO_INSTALL}) and run this again."
)
TRIAL = "#include <math.h>\n#include <pthread.h>\nint main(void) { return 0; }\n"


class BuildError(Exception):
    """The compiler is there and failed; with what it said."""


def find_compiler() -> list[str] | None:
    """The command of a C compiler that works; none where there is none, or where the library is not for."""
    if not sys.platform.startswith("linux"):
        return None
    asked = shlex.split(os.environ.get("CC", ""))
    return next((command for command in (asked, ["cc"], ["gcc"], ["clang"]) if command and works(command)), None)


def works(compiler: list[str]) -> bool:
    """Whether a compiler is there, with the headers and libraries that it needs."""
    if not shutil.which(compiler[0]):
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *compiler,
            "-shared",
            "-fPIC",
            "-x",
            "c",
            "-",
            "-o",
            str(Path(folder) / "trial.so"),
            "-lm",
            "-lpthread",
        ]
        return not subprocess.run(command, input=TRIAL, capture_output=True, text=True, check=False).returncode


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


def bring_up_to_date(note: Path | None = None) -> bool:
    """Build the library where it is missing or old; whether it is there now. What stands against it is said.

    With a file to note that in, it is said once.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [Path(__file__), *sources()])).hexdigest()
    noted = note.read_text(encoding="utf-8") if note is not None and note.exists() else ""
    built = f"built from {digest}"
    if noted == built and LIBRARY.exists():
        return True
    compiler = find_compiler()
    missing = f"not built from {digest} with {shlex.join(compiler or ['no compiler'])}"
    if noted == missing and not LIBRARY.exists():
        return False
    # What was made of other sources is worse than none.
    LIBRARY.unlink(missing_ok=True)
    against = _try_to_build(compiler)
    if against:
        print(against, file=sys.stderr)
    if note is not None:
        note.write_text(missing if against else built, encoding="utf-8")
    return not against


def _try_to_build(compiler: list[str] | None) -> str:
    """What stands against it; nothing where it was built."""
    if compiler is None:
        return NO_COMPILER
    try:
        build(LIBRARY, compiler=compiler)
    except BuildError as error:
        return f"{error}\n{NOT_BUILT}"
    return ""


if __name__ == "__main__":
    if sys.platform == "linux":
        bring_up_to_date(*map(Path, sys.argv[1:]))
