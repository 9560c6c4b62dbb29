"""What holds for the whole project: its locks, its commands, and Qt's bindings."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from PySide6.QtCore import QObject, QPointF, QTimer
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "packaging" / "locks"
PIN = re.compile(r"^([a-z0-9-]+)==([^ ;\\]+)(?: ; [^\\]+)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def read_pins(lock: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for line in (LOCKS / f"{lock}.txt").read_text().splitlines():
        if match := PIN.match(line):
            pins.setdefault(match[1], set()).add(match[2])
    return pins


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-") for requirement in requirements}


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize("lock", ["cpu", "cuda", "metal", "dev", "demo-model"])
def test_locks_hold_versions_and_hashes_and_name_no_place_to_fetch_from(lock: str) -> None:
    lines = (LOCKS / f"{lock}.txt").read_text().splitlines()
    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if PIN.match(line):
            assert HASH.match(following), f"{line} has no hash"


@pytest.mark.parametrize("lock", ["cuda", "metal", "dev"])
def test_locks_agree_with_each_other(lock: str) -> None:
    ours, others = read_pins("cpu"), read_pins(lock)
    assert {name: others[name] for name in ours.keys() & others.keys()} == {
        name: ours[name] for name in ours.keys() & others.keys()
    }


def test_locks_hold_everything_that_the_project_asks_for(project: dict[str, object]) -> None:
    wanted = names(cast("dict[str, list[str]]", project["project"])["dependencies"])
    tools = names(cast("dict[str, list[str]]", project["dependency-groups"])["dev"])
    for lock in ("cpu", "cuda", "metal"):
        assert wanted <= read_pins(lock).keys()
    assert tools <= read_pins("dev").keys()


def test_each_back_end_has_its_own_mlx() -> None:
    builds = {"mlx-cpu", "mlx-cuda-12", "mlx-metal"}
    assert {lock: builds & read_pins(lock).keys() for lock in ("cpu", "cuda", "metal")} == {
        "cpu": {"mlx-cpu"},
        "cuda": {"mlx-cuda-12"},
        "metal": {"mlx-metal"},
    }


def test_packaging_is_no_package() -> None:
    # It would hide PyPI's "packaging" from whatever runs in the project's folder.
    assert not (ROOT / "packaging" / "__init__.py").exists()


def test_ci_runs_what_anyone_can_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "exec packaging/dev test" in (ROOT / ".ci" / "run").read_text()


def run_dev(root: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path, "HOME": str(root)}
    command = ["/bin/sh", str(root / "packaging" / "dev"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def bare_copy(tmp_path: Path) -> Path:
    (tmp_path / "packaging").mkdir()
    for name in ("dev", "dev.py"):
        shutil.copy(ROOT / "packaging" / name, tmp_path / "packaging" / name)
    return tmp_path


def test_dev_without_a_suitable_python_says_so_in_one_sentence(bare_copy: Path) -> None:
    (bare_copy / "bin").mkdir()
    old = bare_copy / "bin" / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = run_dev(bare_copy, "setup", path=str(old.parent))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Kafila needs Python 3.11, 3.12 or 3.13 on the PATH, and found none: install one and start this again.\n"
    )
    assert not (bare_copy / ".venv").exists()


@pytest.mark.parametrize("arguments", [(), ("tset",), ("setup", "now")])
def test_dev_refuses_what_it_does_not_know(bare_copy: Path, arguments: tuple[str, ...]) -> None:
    done = run_dev(bare_copy, *arguments, path=f"{Path(sys.executable).parent}:/usr/bin:/bin")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (bare_copy / ".venv").exists()


def test_qt_calls_keep_their_hands_off_none(qtbot: QtBot) -> None:
    # PySide6 6.12 drops a reference of None with every call that returns nothing, and Python 3.11 then aborts soon.
    qobject, label, timer = QObject(), QLabel(), QTimer()
    qtbot.addWidget(label)
    image = QImage(5, 5, QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    calls: dict[str, Callable[[], object]] = {
        "QObject.setObjectName": lambda: qobject.setObjectName("x"),
        "QLabel.setText": lambda: label.setText("x"),
        "QTimer.setInterval": lambda: timer.setInterval(5),
        "QPainter.drawEllipse": lambda: painter.drawEllipse(QPointF(0, 0), 1, 1),
        "QWidget.update": label.update,
    }
    lost: dict[str, int] = {}
    for name, call in calls.items():
        before = sys.getrefcount(None)
        for _ in range(200):
            call()
        lost[name] = before - sys.getrefcount(None)
    painter.end()
    assert {name: count for name, count in lost.items() if count > 20} == {}


def test_a_test_cannot_talk_to_another_machine() -> None:
    # An address that is kept for examples: nobody has it.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, pytest.raises(RuntimeError, match="this machine"):
        sender.sendto(b"", ("192.0.2.1", 9))
    with socket.socket() as caller, pytest.raises(RuntimeError, match="this machine"):
        caller.connect(("192.0.2.1", 9))
