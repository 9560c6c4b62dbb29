"""The library inside a process: its threads, forks, other threads of Python, the end, and its memory."""

import os
import platform
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafila.compute.cpu import library as cpu_library
from kafila.compute.cpu.library import Library, wanted_threads

pytestmark = pytest.mark.usefixtures("library")

ROOT = Path(__file__).parents[3]
EXERCISE = Path(__file__).with_name("exercise.py")


def run(*arguments: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, str(EXERCISE), *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT / "app")} | environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout


def test_a_setting_says_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cpu_library.THREADS, "3")
    assert wanted_threads() == 3
    monkeypatch.setenv(cpu_library.THREADS, "many")
    assert 1 <= wanted_threads() <= (os.cpu_count() or 1)


def test_a_setting_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cpu_library.OFF, "off")
    assert cpu_library.load() is None
    monkeypatch.setenv(cpu_library.OFF, "on")
    loaded = cpu_library.load()
    assert isinstance(loaded, Library)
    loaded.close()


def test_where_it_was_not_built_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_library, "FILE", tmp_path / "none.so")
    assert cpu_library.load() is None


def test_a_child_of_a_fork_computes_the_same() -> None:
    assert run("fork") == "the same\n"


def test_other_threads_run_while_it_computes() -> None:
    assert run("others") == "they run\n"


def test_it_ends_with_the_process_whatever_it_did() -> None:
    assert run("end") == "done\n"


def test_threads_can_be_had_again_after_the_end() -> None:
    assert run("again") == "the same\n"


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the compiler's checks are tried where they are known to work"
)
def test_it_reads_and_writes_nothing_but_its_arrays(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        builder: Any = import_module("cpu_library")
    finally:
        sys.path.pop(0)
    compiler = builder.find_compiler()
    assert compiler is not None
    checks = subprocess.run([*compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    runtime = checks.stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("this compiler comes without address checks")
    library = tmp_path / "libkafila_cpu.so"
    # What is checked of addresses twice takes long to compile.
    flags = ("-fsanitize=address,undefined", "-fno-sanitize=null,object-size", "-fno-sanitize-recover=all", "-O1")
    builder.build(library, compiler=compiler, extra=flags)
    found = run(
        "shapes",
        KAFILA_TESTED_LIBRARY=str(library),
        LD_PRELOAD=runtime,
        # Python itself does not give back all of its memory at the end.
        ASAN_OPTIONS="detect_leaks=0",
        PYTHONMALLOC="malloc",
    )
    assert found == "right\n"


@pytest.mark.slow
def test_kernels_for_arm_agree_with_plain_c(tmp_path: Path) -> None:
    """On another computer's processor, where its compiler and an emulator are installed."""
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("there is no compiler for ARM, or no emulator")
    source, program = ROOT / "app" / "kafila" / "compute" / "cpu" / "source", tmp_path / "arm_check"
    files = [EXERCISE.with_name("arm_check.c"), source / "kernels_neon.c", source / "kernels_plain.c"]
    flags = ["-std=gnu11", "-O2", "-fno-math-errno", "-static", f"-I{source}"]
    subprocess.run([compiler, *flags, *map(str, files), "-lm", "-o", str(program)], check=True)
    output = subprocess.run([emulator, str(program)], check=True, capture_output=True, text=True).stdout
    assert output.endswith(" 0 wrong\n")
