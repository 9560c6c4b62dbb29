"""Settings are kept at once; help answers, and reports nothing private."""

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gui.conftest import Show
from helpers import snapshots
from kafila.domain.commands import Command, MeetAt, Rename
from kafila.domain.errors import Problem
from kafila.gui.pages.help import HelpPage
from kafila.gui.pages.settings import SettingsPage
from kafila.gui.preferences import FILE, Preferences, keep_preferences, read_preferences
from kafila.gui.theme import Looks, Mode, Theme

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def settings(theme: Theme, sent: list[Command], show: Show) -> SettingsPage:
    page = SettingsPage(theme, sent.append)
    page.looks_chosen.connect(theme.choose)
    show(page)
    page.show_snapshot(snapshots.idle())
    return page


def test_a_new_name_is_sent_once(settings: SettingsPage, sent: list[Command]) -> None:
    settings.machine.setFocus()
    settings.machine.selectAll()
    QTest.keyClicks(settings.machine, "Blue laptop")
    QTest.keyClick(settings.machine, Qt.Key.Key_Return)
    settings.owner.setFocus()
    assert sent == [Rename(machine="Blue laptop", owner="Maya")]


def test_an_empty_name_is_not_sent(settings: SettingsPage, sent: list[Command]) -> None:
    settings.machine.setFocus()
    settings.machine.clear()
    QTest.keyClick(settings.machine, Qt.Key.Key_Return)
    assert sent == []


def test_the_groups_rendezvous_is_sent_and_what_is_wrong_with_it_is_said(
    settings: SettingsPage, sent: list[Command]
) -> None:
    settings.choose(1)
    settings.rendezvous.setFocus()
    QTest.keyClicks(settings.rendezvous, "meet.example:47470")
    QTest.keyClick(settings.rendezvous, Qt.Key.Key_Return)
    assert sent == [MeetAt(rendezvous="meet.example:47470")]
    assert not settings.rendezvous_problem.isVisible()
    idle = snapshots.idle()
    wrong = Problem(title="“meet” is not an address of a rendezvous", advice="Write it as HOST:PORT.")
    settings.show_snapshot(msgspec.structs.replace(idle, me=msgspec.structs.replace(idle.me, rendezvous_problem=wrong)))
    assert settings.rendezvous_problem.isVisible()
    settings.rendezvous.clear()
    QTest.keyClick(settings.rendezvous, Qt.Key.Key_Return)
    assert sent[1:] == [MeetAt(rendezvous="")]
    settings.show_snapshot(msgspec.structs.replace(idle, me=msgspec.structs.replace(idle.me, rendezvous="a.example:1")))
    assert not settings.rendezvous_problem.isVisible()
    settings.machine.setFocus()
    settings.show_snapshot(msgspec.structs.replace(idle, me=msgspec.structs.replace(idle.me, rendezvous="b.example:1")))
    assert settings.rendezvous.text() == "b.example:1"


def test_a_snapshot_does_not_disturb_who_is_typing(settings: SettingsPage) -> None:
    settings.machine.setFocus()
    QTest.keyClicks(settings.machine, "!")
    settings.show_snapshot(snapshots.idle())
    assert settings.machine.text() == "Studio laptop!"


def test_the_look_changes_at_once(settings: SettingsPage, theme: Theme) -> None:
    settings.mode.chosen.emit(2)
    settings.text_size.chosen.emit(2)
    settings.choose(1)
    QTest.mouseClick(settings.movement, LEFT)
    assert theme.looks == Looks(mode=Mode.DARK, text_percent=150, still=False)


def test_every_topic_of_help_can_be_opened(theme: Theme, sent: list[Command], show: Show) -> None:
    page = HelpPage(theme, sent.append)
    show(page)
    for topic in page.topics:
        QTest.mouseClick(topic, LEFT)
        assert topic.isChecked()
    assert sent == []


def test_the_report_holds_no_code(theme: Theme, sent: list[Command], show: Show) -> None:
    page = HelpPage(theme, sent.append)
    show(page)
    page.show_snapshot(snapshots.waiting_room())
    page.copy.click()
    report = QGuiApplication.clipboard().text()
    assert "Session: WaitingRoom" in report
    for secret in (*snapshots.CODE.split("-")[1:], "Sunday", "Maya", "192.168"):
        assert secret not in report


def test_preferences_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert read_preferences(folder) == Preferences()
    kept = Preferences().with_looks(Looks(mode=Mode.DARK, text_percent=150)).with_geometry(b"\x01\x02")
    keep_preferences(folder, kept)
    assert read_preferences(folder) == kept
    assert read_preferences(folder).geometry_bytes() == b"\x01\x02"
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_unreadable_preferences_are_no_reason_not_to_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_text("{")
    assert read_preferences(tmp_path) == Preferences()
    assert "cannot be read" in caplog.text
    assert Preferences(geometry="not base64!").geometry_bytes() == b""
    assert read_preferences(None) == Preferences()


def test_preferences_that_cannot_be_kept_stop_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    keep_preferences(in_the_way, Preferences())
    assert "cannot be kept" in caplog.text
