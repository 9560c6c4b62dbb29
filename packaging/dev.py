"""Sets Kafila up in .venv, runs it, and checks it: what the README's commands do, with the standard library only.

A step that was done is noted in .venv with a digest of what it depends on, so nothing is done twice.
"""

import argparse
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "packaging" / "locks"
# The Python that .venv is made from, also when this runs in .venv.
BASE_PYTHON = cast("str", getattr(sys, "_base_executable", sys.executable))
VENV_PACKAGE = f"python3.{sys.version_info.minor}-venv"
NOTES = VENV / "kafila-setup.json"
# The oldest NVIDIA driver and compute capability that MLX's CUDA 12 build runs on.
CUDA_DRIVER, CUDA_CAPABILITY = 550, 7.5

CPU_NOTE = VENV / "kafila-cpu-library.txt"

# What Qt needs on Linux: a Debian package for each library.
LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libstdc++.so.6": "libstdc++6",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libzstd.so.1": "libzstd1",
}
# What the tests start besides.
TEST_PROGRAMS = {
    "Xvfb": "xvfb",
    "ip": "iproute2",
    "nft": "nftables",
    "conntrack": "conntrack",
    "turnserver": "coturn",
}

# Each of these runs beside the others and all that is not named here: they mostly wait for processes and networks.
TEST_GROUPS = (("tests/nat",), ("tests/cli", "tests/compute", "tests/end_to_end"))

# All run, even after one has failed. pytest comes after them, so that its own summary ends the output.
CHECKS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("basedpyright",),
    ("lint-imports", "--no-logo"),
    ("deptry", "--no-ansi", "app"),
    ("vulture",),
)


class StopError(Exception):
    """What a person is told when it cannot go on: one sentence, with what to do."""


def main(arguments: Sequence[str]) -> int:
    """Do one command, and answer with its exit code."""
    parser = argparse.ArgumentParser(prog="packaging/dev", description="Set Kafila up, run it, test it.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="setup | run | test")
    commands.add_parser("setup", help="only install what running and testing need")
    for name, about in (("run", "open the app; arguments go to kafila"), ("test", "check all; arguments go to pytest")):
        commands.add_parser(name, help=about, add_help=False).add_argument("rest", nargs="*")
    known, rest = parser.parse_known_args(arguments)
    if known.command == "setup" and rest:
        parser.error(f"setup takes no arguments: {shlex.join(rest)}")
    try:
        advice = set_up(with_tools=known.command != "run")
        # The rest as it came: argparse would drop a "--" in it.
        return go_on(known.command, list(arguments[1:]), advice)
    except StopError as stop:
        print(stop, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def go_on(command: str, arguments: list[str], advice: str | None) -> int:
    """Do what was asked for, now that the installed part is there."""
    if command == "run":
        return run(arguments, advice)
    if advice:
        raise StopError(advice)
    return test(arguments) if command == "test" else 0


# Running and testing


def run(arguments: list[str], advice: str | None) -> int:
    """Open the app; where there is no screen, run the demo in the terminal."""
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    )
    if not arguments and not has_screen:
        say("There is no screen here, so this is the demo in the terminal: three members on this machine.")
        arguments = ["demo", "--headless"]
    elif not arguments and advice:
        raise StopError(advice)
    sys.stdout.flush()
    os.execv(VENV / "bin" / "kafila", ["kafila", *arguments])  # noqa: S606 - our own program, no shell


def test(arguments: list[str]) -> int:
    """Run every check, then the tests."""
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kafila-") as private:
        environment = os.environ | {
            "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "QT_QPA_PLATFORM": "offscreen",
            "HF_HUB_OFFLINE": "1",
            # MLX builds its kernels in a predictable place of the temporary folder and loads them from there.
            "TMPDIR": private,
        }
        for check in CHECKS:
            say(f"--- {shlex.join(check)}")
            if start([str(VENV / "bin" / check[0]), *check[1:]], environment):
                failed.append(shlex.join(check))
        say(f"--- Failed: {', '.join(failed)}" if failed else "--- All checks passed; now the tests.")
        if arguments:
            status = start([str(PYTHON), "-m", "pytest", *arguments], environment)
        else:
            status = test_all(environment, Path(private))
    return status or (1 if failed else 0)


def test_all(environment: Mapping[str, str], private: Path) -> int:
    """Run all tests, in groups beside each other; what each prints is shown as if they ran one after another."""
    others = [f"--ignore={folder}" for group in TEST_GROUPS for folder in group]
    with ExitStack() as ending:
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        for number, group in enumerate((*TEST_GROUPS, others)):
            output = private / f"tests-{number}.txt"
            process = subprocess.Popen(
                [str(PYTHON), "-m", "pytest", *group],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=ending.enter_context(output.open("wb")),
                stderr=subprocess.STDOUT,
            )
            ending.callback(process.wait)
            ending.callback(process.terminate)
            running.append((process, output))
        statuses = [show_until_end(process, output) for process, output in running]
    return next(filter(None, statuses), 0)


def show_until_end(process: subprocess.Popen[bytes], output: Path) -> int:
    """Show what a program writes to its file until it has ended, and answer with its exit code."""
    with output.open("rb") as written:
        while True:
            status = process.poll()
            sys.stdout.buffer.write(written.read())
            sys.stdout.flush()
            if status is not None:
                return status
            time.sleep(0.5)


def start(command: list[str], environment: Mapping[str, str] | None = None, stdout: int | None = None) -> int:
    """Run a program in the project's folder and answer with its exit code; what it prints is shown."""
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, check=False
    ).returncode


def ask(command: list[str], seconds: float = 60) -> str | None:
    """Run a program and answer with what it printed; nothing, where it failed."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


# Setting up


def set_up(*, with_tools: bool) -> str | None:
    """Install what is missing; answer with what only the machine's owner can install, as a sentence."""
    check_platform()
    with only_one_at_a_time():
        # Asking the driver takes long, so it is asked once for a machine that has its program.
        place = f"{ROOT} {sys.version_info[:2]} nvidia={shutil.which('nvidia-smi') is not None}"
        is_made = is_own_python() and read_notes().get("place", place) == place and bool(find_spec("pip"))
        packages = missing_packages(with_tools=with_tools)
        if not is_made and not can_fill_environment():
            packages.append(VENV_PACKAGE)
        advice = install_system_packages(packages)
        if not is_made:
            if advice and VENV_PACKAGE in packages:
                raise StopError(advice)
            make_bare_environment()
        note(place=place)
        backend = install_dependencies()
        once("model", [LOCKS / "demo-model.txt"], lambda: install(LOCKS / "demo-model.txt", "--no-deps"))
        if with_tools:
            once("tools", [LOCKS / "dev.txt"], lambda: install(LOCKS / "dev.txt"))
        once("project", [ROOT / "pyproject.toml", LOCKS / f"{backend}.txt"], install_project)
        if backend == "cpu":
            build_cpu_library()
    return advice


def check_platform() -> None:
    """Refuse a machine that MLX or Qt has no build for."""
    machine = platform.machine()
    if sys.platform == "darwin":
        if machine != "arm64":
            raise StopError("Kafila needs a Mac with Apple silicon and a Python built for it (this one is for Intel).")
        if int(platform.mac_ver()[0].split(".")[0]) < 14:
            raise StopError("Kafila needs macOS 14 or newer: update macOS and start this again.")
    elif sys.platform == "linux":
        library, version = platform.libc_ver()
        if machine not in {"x86_64", "aarch64"}:
            raise StopError(f"Kafila needs a 64-bit Intel, AMD or ARM processor, and this one is {machine}.")
        # What MLX's builds ask for, and on ARM Qt's.
        needed, examples = (
            (35, "Debian 12 or Ubuntu 22.04") if machine == "x86_64" else (39, "Debian 13 or Ubuntu 24.04")
        )
        if library != "glibc" or tuple(map(int, version.split("."))) < (2, needed):
            raise StopError(f"Kafila needs a Linux with glibc 2.{needed} or newer, like {examples}.")
    else:
        raise StopError("Kafila runs on Linux and macOS.")


def missing_packages(*, with_tools: bool) -> list[str]:
    """Name the Debian packages whose library or program is not there."""
    if sys.platform != "linux":
        return []
    missing = [package for library, package in LIBRARIES.items() if not loads(library)]
    if with_tools:
        # Debian keeps some where only root's PATH leads.
        path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        missing += [package for program, package in TEST_PROGRAMS.items() if not shutil.which(program, path=path)]
    return missing


def loads(library: str) -> bool:
    """Tell whether the system has a shared library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def install_system_packages(packages: list[str]) -> str | None:
    """Install Debian packages where that needs no password; otherwise answer with the line to run."""
    if not packages:
        return None
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if not shutil.which("apt-get"):
        return f"Install what this system calls these Debian packages, and start this again: {' '.join(packages)}"
    if os.geteuid() != 0:
        return f"Run this line once, and start this again: sudo {shlex.join(command)}"
    say(f"Installing system packages: {' '.join(packages)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    start(["apt-get", "-qq", "update"], environment, stdout=subprocess.DEVNULL)
    if start([*command, "-qq"], environment, stdout=subprocess.DEVNULL):
        return f"The system packages could not be installed (see above): {shlex.join(command)}"
    return None


def install_dependencies() -> str:
    """Install the lock for this machine's MLX back end, and name that."""
    noted = read_notes().get("backend")
    backend = noted or choose_backend()
    once("dependencies", [LOCKS / f"{backend}.txt"], lambda: install(LOCKS / f"{backend}.txt"))
    if not noted and backend == "cuda" and not mlx_works():
        say("MLX does not start on this NVIDIA card, so it will use the processor.")
        place = read_notes()["place"]
        make_bare_environment()
        note(place=place)
        backend = "cpu"
        once("dependencies", [LOCKS / "cpu.txt"], lambda: install(LOCKS / "cpu.txt"))
    note(backend=backend)
    return backend


def choose_backend() -> str:
    """Name the lock for this machine's MLX back end."""
    if sys.platform == "darwin":
        return "metal"
    answer = ask(["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"])
    # One line a card, as in: 570.124.06, 9.0
    card = re.match(r"(\d+)[.\d]*, (\d+\.\d+)", answer or "")
    suits = card is not None and int(card[1]) >= CUDA_DRIVER and float(card[2]) >= CUDA_CAPABILITY
    return "cuda" if suits else "cpu"


def mlx_works() -> bool:
    """Try MLX for real."""
    return ask([str(PYTHON), "-c", "import mlx.core as mx; mx.eval(mx.ones(4) + 1)"], seconds=120) is not None


def is_own_python() -> bool:
    """Tell whether this runs in .venv."""
    return Path(sys.prefix).resolve() == VENV.resolve()


def can_fill_environment() -> bool:
    """Tell whether the Python that .venv is made from can bring a pip there; Debian's cannot by itself."""
    return has_ensurepip() or ask([BASE_PYTHON, "-c", "import pip, venv"]) is not None


def has_ensurepip() -> bool:
    """Tell whether the Python that .venv is made from carries a pip to put there."""
    return ask([BASE_PYTHON, "-c", "import ensurepip; ensurepip.version()"]) is not None


def make_bare_environment() -> None:
    """Make an empty .venv. Without ensurepip it has no pip: the base's own fills it, and the lock then brings one."""
    if not can_fill_environment():
        raise StopError(f"{BASE_PYTHON} has neither ensurepip nor pip: install one of them, and start this again.")
    say(f"Making .venv with Python {platform.python_version()}.")
    options = () if has_ensurepip() else ("--without-pip",)
    if start([BASE_PYTHON, "-m", "venv", "--clear", *options, str(VENV)]):
        raise StopError(f"{BASE_PYTHON} could not make .venv (see above): mend or replace it, and start this again.")


def install(lock: Path, *options: str) -> None:
    """Install a lock file's packages, each checked against its hash."""
    say(f"Installing {lock.relative_to(ROOT)}.")
    run_pip("--require-hashes", "--only-binary=:all:", *options, "-r", str(lock))


def install_project() -> None:
    """Make the command kafila, which runs the code in app/ as it is."""
    run_pip("--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT))


def build_cpu_library() -> None:
    """Build what makes models quick on a processor, unless it is there; the builder says what is missing, once."""
    start([str(PYTHON), str(ROOT / "packaging" / "cpu_library.py"), str(CPU_NOTE)])


def run_pip(*arguments: str) -> None:
    """Install into .venv."""
    pip = [str(PYTHON), "-m", "pip"]
    if ask([*pip, "--version"]) is None:
        pip = [BASE_PYTHON, "-m", "pip", "--python", str(PYTHON)]
    quiet = () if sys.stdout.isatty() else ("--quiet",)
    if start([*pip, "--disable-pip-version-check", "--no-input", "install", *quiet, *arguments]):
        raise StopError("pip could not install (see above): check the network and start this again; it goes on there.")


# What was done already


def once(step: str, inputs: list[Path], action: Callable[[], None]) -> None:
    """Do a step unless it was done with the same inputs."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()
    if read_notes().get(step) != digest:
        action()
        note(**{step: digest})


def read_notes() -> dict[str, str]:
    """Read what was done; nothing, where the notes are missing or spoiled."""
    try:
        return cast("dict[str, str]", json.loads(NOTES.read_text()))
    except (OSError, ValueError):
        return {}


def note(**done: str) -> None:
    """Add to the notes, whole or not at all."""
    beside = NOTES.with_suffix(".new")
    beside.write_text(json.dumps(read_notes() | done, indent=1))
    beside.replace(NOTES)


@contextmanager
def only_one_at_a_time() -> Generator[None]:
    """Wait for another setup of the same folder."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another packaging/dev to finish its setup.")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def say(sentence: str) -> None:
    """Tell a person, in step with what the programs started here print; stdout belongs to those."""
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
