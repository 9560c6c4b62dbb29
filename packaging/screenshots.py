"""Take the pictures of docs/images from the real app: real engines, the demo's model, a real answer.

xvfb-run -s "-screen 0 1400x900x24" .venv/bin/python packaging/screenshots.py
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import qasync
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from kafila.gui.app import live
from kafila.gui.serving.page import ServingPage
from kafila.gui.window import Window

IMAGES = Path(__file__).parents[1] / "docs" / "images"
QUESTIONS = ("What is the capital of France?", "Which river flows through it?")
PATIENCE_S = 240.0
SETTLE_S = 1.5


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that can be seen."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - Qt has no event for it
            await asyncio.sleep(0.1)


async def person() -> None:
    """Start, try it, ask, and take pictures on the way."""
    await until(lambda: any(isinstance(w, Window) for w in QApplication.topLevelWidgets()))
    window = next(w for w in QApplication.topLevelWidgets() if isinstance(w, Window))
    try:
        await pictures(window)
    finally:
        window.close_now()


async def pictures(window: Window) -> None:
    """The pictures, in the order in which a new user sees the pages."""
    window.resize(1280, 800)
    await until(lambda: window.page() is window.start)
    await asyncio.sleep(SETTLE_S)
    window.grab().save(str(IMAGES / "start.png"))
    QTest.mouseClick(window.start.try_button, Qt.MouseButton.LeftButton)
    serving = window.session_pages.serving
    await until(lambda: window.page() is serving)
    if not isinstance(serving, ServingPage):
        raise TypeError(serving)
    chat = serving.chat
    for question in QUESTIONS:
        await until(chat.composer.draft.isEnabled)
        await asyncio.sleep(SETTLE_S)
        chat.composer.draft.setPlainText(question)
        QTest.mouseClick(chat.composer.button, Qt.MouseButton.LeftButton)
        await until(chat.stop.isVisible)
        await until(lambda: not chat.stop.isVisible())
        await asyncio.sleep(SETTLE_S)
    window.grab().save(str(IMAGES / "serving.png"))


async def main(app: QApplication, home: str) -> None:
    """The app and the person in front of it."""
    engine = [sys.executable, "-m", "kafila", "engine", "--ephemeral"]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(live(app, engine, Path(home)))
        tasks.create_task(person())


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    application = QApplication(["kafila"])
    application.setQuitOnLastWindowClosed(False)
    with TemporaryDirectory() as folder, asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(main(application, folder))
