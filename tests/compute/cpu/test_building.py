"""Building the library: with compilers that work, that do not, and with none; what is said, and how often."""

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kafila.compute.cpu import library as cpu_library

ROOT = Path(__file__).parents[3]
PATH = os.environ["PATH"]
COMPILER = shutil.which("gcc") or shutil.which("clang")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is built on Linux only")


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The builder, with few sources in a folder of its own."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "packaging"), *sys.path])
    module = import_module("cpu_library")
    sources = tmp_path / "source"
    sources.mkdir()
    (sources / "calls.c").write_text("int answer(void) { return 42; }\n")
    monkeypatch.setattr(module, "SOURCES", sources)
    monkeypatch.setattr(module, "LIBRARY", tmp_path / "libkafila_cpu.so")
    monkeypatch.delenv("CC", raising=False)
    return module


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only folder in which programs are looked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def compiler() -> str:
    """A program that compiles, wherever programs are looked for."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    return f'PATH="{PATH}" exec {COMPILER} "$@"'


def test_without_a_compiler_it_says_once_what_to_install(
    builder: Any, programs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert list(programs.iterdir()) == []
    note = tmp_path / "note.txt"
    builder.LIBRARY.write_bytes(b"made of other sources")
    assert not builder.bring_up_to_date(note)
    assert capfd.readouterr().err == (
        "No C compiler was found, so on a processor (without a graphics chip) models run on plain MLX, ten times "
        "slower or more. Install one (on Debian and Ubuntu: sudo apt install gcc libc6-dev) and run this again.\n"
    )
    assert not builder.LIBRARY.exists()
    assert not builder.bring_up_to_date(note)
    assert capfd.readouterr().err == ""


def test_a_compiler_without_its_headers_is_none(
    builder: Any, programs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_program(programs, "cc", "echo 'fatal error: math.h: No such file or directory' >&2; exit 1")
    assert not builder.bring_up_to_date(tmp_path / "note.txt")
    assert "sudo apt install gcc libc6-dev" in capfd.readouterr().err


def test_one_that_fails_is_told_with_what_it_said(
    builder: Any, programs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note.txt"
    write_program(programs, "gcc", 'case "$*" in *trial.so*) exit 0;; esac; echo "out of registers" >&2; exit 1')
    assert not builder.bring_up_to_date(note)
    said = capfd.readouterr().err
    assert "out of registers" in said
    assert "models run on plain MLX" in said
    assert "sudo apt install gcc libc6-dev" in said
    assert [path.name for path in tmp_path.iterdir() if "kafila" in path.name or "building" in path.name] == []
    assert not builder.bring_up_to_date(note)
    assert capfd.readouterr().err == ""


def test_it_is_built_once_and_when_sources_change(
    builder: Any, compiler: str, programs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_program(programs, "clang", compiler)
    note = tmp_path / "note.txt"
    assert builder.bring_up_to_date(note)
    first = builder.LIBRARY.stat().st_mtime_ns
    assert builder.bring_up_to_date(note)
    assert builder.LIBRARY.stat().st_mtime_ns == first
    (builder.SOURCES / "calls.c").write_text("int answer(void) { return 43; }\n")
    assert builder.bring_up_to_date(note)
    assert builder.LIBRARY.stat().st_mtime_ns > first
    builder.LIBRARY.unlink()
    assert builder.bring_up_to_date(note)
    assert builder.LIBRARY.exists()
    assert capfd.readouterr().err == ""


def test_a_compiler_that_comes_later_is_used(builder: Any, compiler: str, programs: Path, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    assert not builder.bring_up_to_date(note)
    write_program(programs, "cc", compiler)
    assert builder.bring_up_to_date(note)
    assert builder.LIBRARY.exists()


def test_a_wheel_without_a_compiler_is_for_all_platforms(builder: Any, programs: Path, tmp_path: Path) -> None:
    hook = import_module("hatch_build").CpuLibraryHook(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    built: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", built)
    assert built == {"artifacts": []}
    write_program(programs, "cc", 'case "$*" in *trial.so*) exit 0;; esac; exit 1')
    hook.initialize("standard", built)
    assert built == {"artifacts": []}
    assert not builder.LIBRARY.exists()


def test_one_that_was_made_of_other_sources_is_as_none(
    builder: Any, compiler: str, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(programs, "cc", compiler)
    assert builder.bring_up_to_date()
    monkeypatch.setattr(cpu_library, "FILE", builder.LIBRARY)
    assert cpu_library.load() is None
