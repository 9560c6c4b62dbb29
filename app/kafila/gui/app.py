"""The window as a program: Qt, its loop, the engine, and a clean end."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType

import qasync
from PySide6.QtCore import QByteArray, QObject, QSocketNotifier
from PySide6.QtWidgets import QApplication

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Snapshot
from kafila.gui.bridge import EngineProcess
from kafila.gui.garbage import QtThreadCollector
from kafila.gui.language import install_language
from kafila.gui.pages.frame import Send
from kafila.gui.preferences import keep_preferences, read_preferences
from kafila.gui.serving.graphs_page import GraphsPage
from kafila.gui.serving.page import ServingPage
from kafila.gui.serving.series import SeriesBook
from kafila.gui.theme import Theme
from kafila.gui.window import SessionPages, Window


class Signals(QObject):
    """Lets Ctrl+C and a polite kill close the windows of this process.

    Python runs its handlers only between its own instructions; while Qt waits, there are none. So
    the signal also writes to a socket, and Qt wakes Python to read it. Signals belong to the whole
    process, so all its windows share one of these: the first makes it, the last puts back what was.
    """

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._closers: list[Callable[[], None]] = []
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.settimeout(0)
        self._before = signal.set_wakeup_fd(self._writer.fileno())
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            for close in tuple(self._closers):
                close()

        self._handlers = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}

    @classmethod
    def of(cls, app: QApplication) -> "Signals":
        """The one of this process."""
        return app.findChild(cls) or cls(app)

    def watch(self, close: Callable[[], None]) -> None:
        """Have `close` called on a signal."""
        self._closers.append(close)

    def unwatch(self, close: Callable[[], None]) -> None:
        """No more; when nobody watches, signals are as they were."""
        self._closers.remove(close)
        if not self._closers:
            self._restore()

    def _drain(self) -> None:
        self._reader.recv(64)

    def _restore(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()
        # The next window must not find this one while Qt has not destroyed it yet.
        self.setParent(None)
        self.deleteLater()


class GroupBook(SeriesBook):
    """The colours that the waiting room gave out are those of the ring and the graphs too."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def meet(self, members: Iterable[MemberId]) -> None:
        """Give a place to each computer that has none."""
        for member in members:
            self._theme.place_of(member)

    def place(self, member: MemberId) -> int:
        """The computer's place."""
        return self._theme.place_of(member)

    def clear(self) -> None:
        """The window says when another group begins, which is before its ring does."""


def make_session_pages(theme: Theme, send: Send, data_folder: Path | None) -> SessionPages:
    """The pages of a serving session."""
    book = GroupBook(theme)
    folder = data_folder / "conversations" if data_folder is not None else None
    serving, graphs = ServingPage(theme, send, folder=folder, book=book), GraphsPage(theme, book)

    def show_snapshot(snapshot: Snapshot) -> None:
        serving.show_snapshot(snapshot)
        graphs.show_snapshot(snapshot)

    return SessionPages(serving=serving, graphs=graphs, show_snapshot=show_snapshot, chat_event=serving.chat_event)


def run_app(profile: str | None, engine_command: Sequence[str], data_folder: Path | None = None) -> int:
    """Show the window until it is closed; every process of ours has ended when this returns.

    Conversations and the window's look are kept in `data_folder`; without one, nothing is kept.
    """
    app = QApplication(["kafila"])
    app.setApplicationName("Kafila")
    app.setApplicationDisplayName(f"Kafila ({profile})" if profile else "Kafila")
    app.setDesktopFileName("org.kafila.Kafila")
    app.setQuitOnLastWindowClosed(False)
    install_language(app)
    collector = QtThreadCollector(app)
    try:
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
            return runner.run(live(app, engine_command, data_folder))
    finally:
        collector.stop()


async def live(app: QApplication, engine_command: Sequence[str], data_folder: Path | None) -> int:
    """The window's life, inside Qt's loop."""
    preferences = read_preferences(data_folder)
    theme = Theme(preferences.looks())
    theme.apply(app)
    engine = EngineProcess(engine_command)
    window = Window(theme, engine.send, lambda theme, send: make_session_pages(theme, send, data_folder))
    closed = asyncio.Event()
    engine.snapshot.connect(window.show_snapshot)
    engine.chat.connect(window.chat_event)
    engine.stopped.connect(window.show_stopped)
    window.restart_wanted.connect(engine.again)
    window.closed.connect(closed.set)
    window.settings.looks_chosen.connect(theme.choose)
    app.commitDataRequest.connect(window.close_now)
    signals = Signals.of(app)
    signals.watch(window.close_now)
    window.restoreGeometry(QByteArray(preferences.geometry_bytes()))
    window.show()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await closed.wait()
            await engine.stop()
    finally:
        signals.unwatch(window.close_now)
        kept = preferences.with_looks(theme.looks).with_geometry(bytes(window.saveGeometry().data()))
        keep_preferences(data_folder, kept)
        window.deleteLater()
    return 0
