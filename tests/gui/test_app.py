"""The window as a program: shown, driven, closed, with nothing left behind."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gui.test_bridge import until
from helpers import snapshots
from helpers.fake_engine import DIE, heard, write_script
from kafila.gui.app import Signals, live
from kafila.gui.preferences import read_preferences
from kafila.gui.theme import Mode
from kafila.gui.window import Window

pytestmark = pytest.mark.loopback

LEFT = Qt.MouseButton.LeftButton
PROGRAM = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from kafila.gui.app import run_app
from kafila.gui.window import Window

def close_when_ready():
    windows = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, Window)]
    if windows and windows[0].page() is windows[0].start:
        windows[0].close()
    else:
        QTimer.singleShot(50, close_when_ready)

QTimer.singleShot(0, close_when_ready)
sys.exit(run_app(None, sys.argv[2:], Path(sys.argv[1])))
"""


def _window() -> Window | None:
    windows = [widget for widget in QApplication.topLevelWidgets() if isinstance(widget, Window)]
    return windows[-1] if windows else None


def _processes_of(folder: Path) -> list[int]:
    """Processes that were started with something in this folder."""
    found: list[int] = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in argument for argument in process.info["cmdline"] or ()):
            found.append(process.pid)
    return found


@pytest.mark.usefixtures("theme")
def test_from_the_start_to_a_serving_ring_and_a_clean_end(
    qapp: QApplication, qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    play = (snapshots.preparing(), snapshots.waiting_room(), snapshots.forming(), snapshots.serving())
    command = write_script(tmp_path, (snapshots.idle(),), {"demo": play})

    async def person() -> None:
        await until(lambda: (found := _window()) is not None and found.page() is found.start)
        window = _window()
        assert window is not None
        QTest.mouseClick(window.start.try_button, LEFT)
        await until(lambda: window.page() is window.session_pages.serving)
        window.settings.mode.chosen.emit(2)
        window.close()

    async def scene() -> int:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(person())
            running = tasks.create_task(live(qapp, command, tmp_path / "data"))
        return running.result()

    assert qt_runner.run(scene()) == 0
    assert heard(tmp_path) == ["demo"]
    kept = read_preferences(tmp_path / "data")
    assert kept.mode is Mode.DARK
    assert kept.geometry_bytes()


@pytest.mark.usefixtures("theme")
def test_a_dead_engine_is_shown_and_another_one_started(
    qapp: QApplication, qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    command = write_script(tmp_path, (snapshots.idle(),), {"demo": (DIE,)})

    async def person() -> None:
        await until(lambda: (found := _window()) is not None and found.page() is found.start)
        window = _window()
        assert window is not None
        QTest.mouseClick(window.start.try_button, LEFT)
        await until(lambda: window.page() is window.stopped)
        QTest.mouseClick(window.stopped.again, LEFT)
        await until(lambda: window.page() is window.start)
        window.close()

    async def scene() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(person())
            tasks.create_task(live(qapp, command, None))

    qt_runner.run(scene())


def test_the_program_ends_with_its_window_and_takes_its_engine_along(tmp_path: Path) -> None:
    command = write_script(tmp_path, (snapshots.idle(),))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        (sys.executable, str(program), str(tmp_path / "data"), *command),
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not _processes_of(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no polite kill")
def test_a_polite_kill_closes_the_window(tmp_path: Path) -> None:
    command = write_script(tmp_path, (snapshots.idle(),))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("windows[0].close()", "print('ready', flush=True)"))
    arguments = (sys.executable, str(program), str(tmp_path / "data"), *command)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=60) == 0
    assert not _processes_of(tmp_path)


@pytest.mark.parametrize("first", [0, 1])
def test_windows_of_one_process_may_end_in_any_order(qapp: QApplication, first: int) -> None:
    """Signals and what wakes Qt belong to the process: they are put back when the last window ends."""
    handler = signal.getsignal(signal.SIGTERM)
    wakes = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakes)
    closed: list[int] = []

    def close_one() -> None:
        closed.append(0)

    def close_other() -> None:
        closed.append(1)

    closers = (close_one, close_other)
    for close in closers:
        Signals.of(qapp).watch(close)
    signal.raise_signal(signal.SIGTERM)
    assert closed == [0, 1]
    Signals.of(qapp).unwatch(closers[first])
    signal.raise_signal(signal.SIGTERM)
    assert closed == [0, 1, 1 - first]
    Signals.of(qapp).unwatch(closers[1 - first])
    assert signal.getsignal(signal.SIGTERM) is handler
    assert signal.set_wakeup_fd(wakes) == wakes
