"""When it is over: a session that ended, or an engine that stopped."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from kafila.domain.commands import LeaveSession
from kafila.domain.snapshot import Ended, Snapshot
from kafila.gui.bridge import EngineStopped
from kafila.gui.pages.frame import TEXT_MOST, Page, Send
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Card, Kind, Pill, PillKind, Size, Text, Tile, Tone, row
from kafila.gui.widgets.details import Details
from kafila.gui.widgets.layouts import stack


def _left(widget: QWidget) -> QWidget:
    holder = QWidget()
    holder.setLayout(row(widget, 1))
    return holder


class EndedPage(Page):
    """Why the session is over, and what stays."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, back=False)
        self.heading.set_text(self.tr("Session"))
        self.pill = Pill(theme, "", PillKind.PLAIN)
        self.title = Text(theme, "", Role.TITLE, wrap=True)
        self.advice = Text(theme, "", Role.LEAD, Tone.MUTED, wrap=True)
        stays = Card(theme)
        words = stack(
            Text(theme, self.tr("What stays"), Role.STRONG),
            Text(
                theme, self.tr("Your conversations are on this computer. Nobody reaches it through Kafila any more."),
                Role.SMALL, Tone.MUTED, wrap=True,
            ),
            spacing=2,
        )  # fmt: skip
        line = row(Tile(theme, Icon.SHIELD_CHECK), words, spacing=14)
        line.setStretch(1, 1)
        stays.body.addLayout(line)
        self.set_content(stack(_left(self.pill), self.title, self.advice, 8, stays, spacing=10), TEXT_MOST, top=88)
        self.home = Button(theme, self.tr("Back to the start"), Kind.PRIMARY, Size.LARGE)
        self.home.clicked.connect(lambda: self.send(LeaveSession()))
        self.foot.add_end(self.home)
        self.summarise("", "")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show why it is over."""
        ended = snapshot.session
        if not isinstance(ended, Ended):
            return
        if ended.failed:
            self.pill.show_as(self.tr("Session lost"), PillKind.LOST, Icon.UNPLUG)
        else:
            self.pill.show_as(self.tr("Session over"), PillKind.PLAIN, Icon.CHECK)
        self.title.set_text(ended.reason.title)
        self.advice.set_text(ended.reason.advice)


class EngineStoppedPage(Page):
    """The engine is gone by accident: start it again, or copy a report."""

    restart = Signal()

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, back=False)
        self.heading.set_text(self.tr("Kafila"))
        self._report = ""
        pill = Pill(theme, self.tr("Engine stopped"), PillKind.LOST, Icon.CIRCLE_ALERT)
        self.title = Text(theme, self.tr("Kafila’s engine stopped"), Role.TITLE, wrap=True)
        self.advice = Text(
            theme,
            self.tr("That is the part that computes and talks to the other computers. Nothing you wrote is lost. "
                    "Start it again; a session that was running has to be joined anew."),
            Role.LEAD, Tone.MUTED, wrap=True,
        )  # fmt: skip
        self._shown = Text(theme, "", Role.CAPTION, Tone.MUTED, wrap=True)
        card = Card(theme, kind="sunken")
        card.body.addWidget(self._shown)
        details = Details(theme, self.tr("Details: what it said last"), card)
        self.set_content(stack(_left(pill), self.title, self.advice, 8, details, spacing=10), TEXT_MOST, top=88)
        self.copy = Button(theme, self.tr("Copy report"), Kind.PLAIN, Size.LARGE, Icon.COPY)
        self.copy.clicked.connect(self._copy)
        self.again = Button(theme, self.tr("Start again"), Kind.PRIMARY, Size.LARGE)
        self.again.clicked.connect(self.restart)
        self.foot.add_end(self.copy)
        self.foot.add_end(self.again)
        self.summarise(
            "", self.tr("The report holds versions and the engine’s last lines. No codes, keys or conversations.")
        )

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Nothing here depends on a snapshot."""

    def show_stopped(self, stopped: EngineStopped) -> None:
        """Show what is known about it."""
        self._report = stopped.report()
        self._shown.set_text(self._report)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._report)
        self.copy.flash(self.tr("Copied"))
