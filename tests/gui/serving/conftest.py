from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from gui.serving.scenes import serving, snapshot
from gui.serving.talk import Engine
from kafila.domain.commands import Command
from kafila.domain.snapshot import SessionView
from kafila.gui.serving.page import ServingPage
from kafila.gui.theme import Looks, Mode, Theme

Show = Callable[[QWidget, int, int], None]


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    """The look in the light, without movement, so that nothing is half way."""
    theme = Theme(Looks(mode=Mode.LIGHT, still=True))
    theme.apply(qapp)
    return theme


@pytest.fixture
def lively(theme: Theme) -> Theme:
    """The same with movement."""
    return Theme(Looks(mode=theme.looks.mode))


@pytest.fixture
def show(qtbot: QtBot) -> Show:
    """Put a widget on the screen at a size."""

    def shown(widget: QWidget, width: int, height: int) -> None:
        qtbot.addWidget(widget)
        widget.resize(width, height)
        widget.show()
        qtbot.waitExposed(widget)

    return shown


class Stage:
    """A serving page, what it sent, and the engine's side."""

    def __init__(self, theme: Theme, folder: Path) -> None:
        self.sent = list[Command]()
        self.folder = folder
        self.page = ServingPage(theme, self.sent.append, folder=folder)
        self.engine = Engine(self.page, self.sent)

    def play(self, session: SessionView, *, me: int = 0) -> None:
        self.page.show_snapshot(snapshot(session, me=me))


@pytest.fixture
def stage(theme: Theme, show: Show, tmp_path: Path) -> Stage:
    """A page on the screen, its session serving with five computers."""
    stage = Stage(theme, tmp_path / "conversations")
    show(stage.page, 1204, 800)
    stage.play(serving())
    return stage
