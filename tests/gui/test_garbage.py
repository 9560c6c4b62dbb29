"""Cycles with Qt objects in them are collected in Qt's thread."""

import gc
import subprocess
import sys
import weakref

import pytest
from PySide6.QtCore import QThread, QTimer
from pytestqt.qtbot import QtBot

from kafila.gui.garbage import QtThreadCollector

PROGRAM = """
import threading
from PySide6.QtCore import QCoreApplication, QTimer
from kafila.gui.garbage import QtThreadCollector

class Cycle(QTimer):
    def __init__(self):
        super().__init__(interval=1)
        self.itself = self
        self.start()

def make_garbage():
    # Enough of it to pass every threshold of Python's own collector many times.
    for _ in range(200_000):
        cycle = []
        cycle.append(cycle)

app = QCoreApplication([])
collector = QtThreadCollector(app)
for _ in range(20):
    Cycle()
    thread = threading.Thread(target=make_garbage)
    thread.start()
    thread.join()
    app.processEvents()
collector.stop()
print("ended well")
"""


class Cycle(QTimer):
    """Only the collector of cycles can end it."""

    def __init__(self) -> None:
        super().__init__()
        self.itself = self


@pytest.mark.usefixtures("qapp")
def test_a_cycle_is_collected_by_the_timer_and_in_this_thread(qtbot: QtBot) -> None:
    collector = QtThreadCollector()
    try:
        assert not gc.isenabled()
        gc.collect()
        cycle = Cycle()
        assert cycle.itself is cycle
        ended_in: list[QThread] = []
        gone = weakref.finalize(cycle, lambda: ended_in.append(QThread.currentThread()))
        del cycle
        garbage = [[number] for number in range(10 * gc.get_threshold()[0])]
        qtbot.waitUntil(lambda: not gone.alive)
        assert garbage
        assert ended_in == [collector.thread()]
    finally:
        collector.stop()
        # As the tests have it.
        gc.disable()


@pytest.mark.usefixtures("qapp")
def test_python_collects_by_itself_again_in_the_end() -> None:
    collector = QtThreadCollector()
    collector.stop()
    try:
        assert gc.isenabled()
    finally:
        gc.disable()


def test_another_thread_may_make_garbage() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "ended well", "")
