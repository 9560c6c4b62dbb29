"""On the way in: finding the session, speaking to the host, waiting to be let in, being measured."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from kafila.domain.commands import LeaveSession
from kafila.domain.snapshot import Joining, JoinStep, Preparing, Snapshot
from kafila.gui.pages.frame import TEXT_MOST, Page, Send
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Button, Card, Kind, Pill, PillKind, Size, Text, Tone, row
from kafila.gui.widgets.checklist import Checklist
from kafila.gui.widgets.layouts import stack
from kafila.gui.widgets.lights import MovingLights

STEPS = (JoinStep.FINDING, JoinStep.SPEAKING, JoinStep.WAITING, JoinStep.MEASURING)


class PhraseCard(Card):
    """The words that both sides compare."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, margin=20, spacing=4)
        self._advice = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._phrase: tuple[str, ...] = ()
        self._words = QHBoxLayout()
        self._words.setSpacing(theme.px(10))
        self.body.addWidget(Text(theme, self.tr("Do you both see these words?"), Role.SUBHEADING, wrap=True))
        self.body.addWidget(self._advice)
        self.body.addSpacing(theme.px(8))
        self.body.addLayout(self._words)

    def show_phrase(self, phrase: tuple[str, ...], who: str) -> None:
        """Show the words, and whom to ask."""
        advice = self.tr("Call or write to {who}. If {who} sees other words, leave: someone may be in between.")
        self._advice.set_text(advice.format(who=who))
        if phrase == self._phrase:
            return
        self._phrase = phrase
        while (item := self._words.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for word in phrase:
            box = QFrame()
            box.setProperty("notice", "lantern")
            box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            shown = Text(self._theme, word, Role.HEADING, weight=600)
            shown.setAlignment(Qt.AlignmentFlag.AlignCenter)
            line = QHBoxLayout(box)
            line.setContentsMargins(12, self._theme.px(16), 12, self._theme.px(16))
            line.addWidget(shown)
            self._words.addWidget(box)
        self.setAccessibleName(", ".join(phrase))


class JoiningPage(Page):
    """The steps of a joiner, and the phrase to compare."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, back=False)
        self.heading.set_text(self.tr("Join a session"))
        self.pill = Pill(theme, "", PillKind.LEADS, dot=True)
        pill = QWidget()
        pill.setLayout(row(self.pill, 1))
        self.title = Text(theme, "", Role.TITLE, wrap=True)
        self._lead = Text(theme, "", tone=Tone.MUTED, wrap=True)
        self.phrase = PhraseCard(theme)
        self.steps_list = Checklist(
            theme,
            (
                self.tr("Find the session"),
                self.tr("Speak to the host"),
                self.tr("Wait for the host to let you in"),
                self.tr("Look at this computer"),
            ),
        )
        steps = Card(theme)
        steps.body.addWidget(self.steps_list)
        self.set_content(
            stack(pill, stack(self.title, self._lead, spacing=2), 4, self.phrase, steps, spacing=14), TEXT_MOST, top=60
        )
        self.leave = Button(theme, self.tr("Leave"), Kind.PLAIN, Size.LARGE)
        self.leave.clicked.connect(lambda: self.send(LeaveSession()))
        self.foot.add_end(self.leave)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show how far it has come."""
        session = snapshot.session
        if not isinstance(session, Joining):
            return
        host = session.host
        who = (host.owner or host.name) if host else self.tr("the host")
        self._show_titles(session, who)
        self.phrase.setVisible(bool(session.phrase) and session.step is JoinStep.WAITING)
        self.phrase.show_phrase(session.phrase, who)
        present = STEPS.index(session.step)
        seconds = (
            self.tr("Session found") if present > 0 else self.tr("By the number of the code"),
            self.tr("{name} answered").format(name=host.name) if host else self.tr("Encrypted from the first word"),
            self.tr("{who} was asked").format(who=who) if present == 2 else "",
            self.tr("Speed, room and network; less than a minute"),
        )
        self.steps_list.show_steps(present, seconds)

    def _show_titles(self, session: Joining, who: str) -> None:
        words, lead = {
            JoinStep.FINDING: (self.tr("Looking for the session"), ""),
            JoinStep.SPEAKING: (self.tr("Speaking to the host"), ""),
            JoinStep.WAITING: (
                self.tr("Waiting to be let in"),
                self.tr("{who} has not let you in yet. We ask for 10 minutes, then we stop and tell you."),
            ),
            JoinStep.MEASURING: (
                self.tr("You are in"),
                self.tr("Kafila looks at what this computer can do for the group."),
            ),
        }[session.step]
        self.pill.show_as(words, PillKind.LEADS, dot=True)
        self.pill.setVisible(session.host is not None)
        self.summarise("", lead.format(who=who))
        if session.host is not None and session.group:
            title = self.tr("{machine} is hosting {group}")
            self.title.set_text(title.format(machine=session.host.name, group=session.group))
        else:
            self.title.set_text(words)
        owner = self.tr("hosted by {who}").format(who=session.host.owner) if session.host and session.host.owner else ""
        self._lead.set_text(" · ".join(part for part in (session.model, owner) if part))
        self._lead.setVisible(bool(self._lead.words()))


class PreparingPage(Page):
    """A session is being opened."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, steps=True, back=False)
        if self.steps is not None:
            self.steps.set_step(2)
        self.doing = Text(theme, "", Role.LEAD, Tone.MUTED, wrap=True)
        lights = QWidget()
        lights.setLayout(row(MovingLights(theme), 1))
        title = Text(theme, self.tr("Opening the session"), Role.TITLE, wrap=True)
        self.set_content(stack(lights, title, self.doing, spacing=8), TEXT_MOST, top=120)
        self.leave = Button(theme, self.tr("Cancel"), Kind.PLAIN, Size.LARGE)
        self.leave.clicked.connect(lambda: self.send(LeaveSession()))
        self.foot.add_end(self.leave)
        self.summarise("", self.tr("The first time this takes a little longer."))

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Say what takes the time."""
        if isinstance(snapshot.session, Preparing):
            self.doing.set_text(snapshot.session.doing)
