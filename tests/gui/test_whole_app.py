"""The whole app, driven as a person would: the real window, real engines, the real model, an answer."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTextEdit, QWidget

from kafila.gui.app import live
from kafila.gui.pages.waiting_room import NewcomerRow
from kafila.gui.serving.page import ServingPage
from kafila.gui.serving.ring_node import RingNode
from kafila.gui.window import Window

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(400)]

LEFT = Qt.MouseButton.LeftButton
PATIENCE_S = 120.0
FADE_S = 0.4
QUESTION = "What is the capital of France?"

Person = Callable[[], Coroutine[None, None, None]]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that the window starts find an empty home, and this checkout."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "app"))
    # No keyring of the system's is asked for anything.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")


def engine(profile: str) -> list[str]:
    return [sys.executable, "-m", "kafila", "engine", "--profile", profile]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that a person would see."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - a person looks again and again
            await asyncio.sleep(0.05)


def windows() -> list[Window]:
    return [w for w in QApplication.topLevelWidgets() if isinstance(w, Window) and w.isVisible()]


async def click(button: QWidget) -> None:
    """Press a button once it is there to be pressed, and the page has faded in."""
    await until(lambda: button.isVisible() and button.isEnabled())
    await asyncio.sleep(FADE_S)
    QTest.mouseClick(button, LEFT)


def serving_page(window: Window) -> ServingPage:
    page = window.session_pages.serving
    assert isinstance(page, ServingPage)
    return page


def serves(window: Window) -> bool:
    return window.page() is window.session_pages.serving


def newcomers(window: Window) -> list[NewcomerRow]:
    return [row for row in window.room.findChildren(NewcomerRow) if row.isVisible()]


async def ask(window: Window, question: str, answer: str) -> None:
    """Type a question, send it, and read the answer as it streams."""
    chat = serving_page(window).chat
    await until(chat.composer.draft.isEnabled)
    # A small model that may choose its words freely does not always come to the point.
    chat.composer.settings.choose_freedom(0)
    QTest.keyClicks(chat.composer.draft, question)
    await click(chat.composer.button)
    await until(lambda: any(answer in prose.toPlainText() for prose in chat.messages.findChildren(QTextEdit)))


def processes_of(home: Path) -> list[int]:
    """Processes that were started with this home."""
    mark = f"HOME={home}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment:
                found.append(int(folder.name))
    return found


def run(qapp: QApplication, runner: asyncio.Runner, profiles: list[str], folder: Path, person: Person) -> None:
    """Open a window for each profile, let the person act, and see that everything ends."""

    async def together() -> None:
        failures: list[Exception] = []
        async with asyncio.TaskGroup() as tasks:
            apps = [tasks.create_task(live(qapp, engine(name), folder / name)) for name in profiles]
            try:
                await person()
            except Exception as failure:  # noqa: BLE001 - first everything ends as it should, and then the test fails
                failures.append(failure)
            for window in windows():
                window.close_now()
            codes = [await app for app in apps]
        for failure in failures:
            raise failure
        assert codes == [0] * len(profiles)

    runner.run(together())


@pytest.mark.usefixtures("theme")
def test_try_it_on_this_computer_ends_in_a_streamed_answer(
    qapp: QApplication, qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    async def person() -> None:
        await until(lambda: bool(windows()) and windows()[0].page() is windows()[0].start)
        window = windows()[0]
        await click(window.start.try_button)
        await until(lambda: serves(window))
        assert len([node for node in window.findChildren(RingNode) if node.isVisible()]) == 3
        await ask(window, QUESTION, "Paris")
        assert len(processes_of(tmp_path)) == 3

    run(qapp, qt_runner, ["solo"], tmp_path, person)
    assert processes_of(tmp_path) == []


@pytest.mark.usefixtures("theme")
def test_one_hosts_another_joins_with_the_code_and_both_chat(
    qapp: QApplication, qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    async def person() -> None:
        await until(lambda: len(windows()) == 2 and all(w.page() is w.start for w in windows()))
        host, guest = windows()
        await click(host.start.host_button)
        await until(lambda: host.page() is host.model)
        await click(host.model.go_on)
        await until(lambda: host.page() is host.conversations)
        await click(host.conversations.get_code)
        await until(lambda: host.page() is host.room and host.room.code_card.invitation() != "")
        await click(host.room.code_card.copy_code)
        await click(guest.start.join_button)
        await until(lambda: guest.page() is guest.join)
        guest.join.field.setText(QApplication.clipboard().text())
        await click(guest.join.join)
        await until(lambda: bool(newcomers(host)))
        await click(newcomers(host)[0].let_in)
        await until(lambda: host.room.start.isEnabled() and not newcomers(host))
        await click(host.room.start)
        await until(lambda: serves(host) and serves(guest))
        await ask(guest, QUESTION, "Paris")
        await ask(host, QUESTION, "Paris")

    run(qapp, qt_runner, ["host", "guest"], tmp_path, person)
    assert processes_of(tmp_path) == []
