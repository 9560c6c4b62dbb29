import asyncio
from collections.abc import Callable, Iterator

import pytest
import qasync
from PySide6.QtCore import QCoreApplication, QEvent, QLocale
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from kafila.domain.commands import Command
from kafila.gui.language import English
from kafila.gui.theme import Looks, Mode, Theme

Show = Callable[[QWidget], None]


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    """The look in the light, without movement, so that nothing is half way; English numbers and plurals."""
    # Widgets of the tests before, which Qt has not destroyed yet, would be styled anew as well.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
    english = English(qapp)
    qapp.installTranslator(english)
    qapp.clipboard().clear()
    theme = Theme(Looks(mode=Mode.LIGHT, still=True))
    theme.apply(qapp)
    yield theme
    qapp.removeTranslator(english)
    QLocale.setDefault(before)


@pytest.fixture
def sent() -> list[Command]:
    """What the pages of a test have sent."""
    return []


@pytest.fixture
def show(qtbot: QtBot) -> Show:
    """Put a page on the screen."""

    def shown(page: QWidget) -> None:
        qtbot.addWidget(page)
        page.resize(1204, 800)
        page.show()
        qtbot.waitExposed(page)

    return shown


@pytest.fixture
def qt_runner(qapp: QApplication) -> Iterator[asyncio.Runner]:
    """Qt's loop as asyncio's, for one test."""
    qapp.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(qapp)) as runner:
        yield runner
