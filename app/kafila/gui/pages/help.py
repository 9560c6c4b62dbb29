"""Short answers to what people ask when something is not as they expected."""

from collections.abc import Sequence
from dataclasses import dataclass
from platform import platform

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from kafila import __version__
from kafila.domain.snapshot import Snapshot
from kafila.gui.pages.frame import Send
from kafila.gui.pages.sided import SidedPage
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Card, Line, Size, Text, Tile, Tone, column, row
from kafila.gui.widgets.layouts import stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One topic: why it is so, and what can be done, one step after another."""

    title: str
    why: str
    steps: Sequence[tuple[str, str]]
    heading: str = ""
    """Instead of "What you can do"."""


class HelpPage(SidedPage):
    """Topics with their answers, and a report to copy."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme)
        self.set_title(self.tr("Help"))
        self.send = send
        self._snapshot: Snapshot | None = None
        for icon, name, answer in self._answers():
            self.add_topic(icon, name, self._shown(answer))
        self.copy = Button(theme, self.tr("Copy report"), size=Size.SMALL, icon=Icon.COPY)
        self.copy.clicked.connect(self._copy)
        self.add_topic(Icon.COPY, self.tr("Still stuck?"), self._report_topic())

    def _answers(self) -> tuple[tuple[Icon, str, Answer], ...]:
        return (
            (Icon.SPARKLES, self.tr("How it works"), self._how()),
            (Icon.LOG_IN, self.tr("I cannot join"), self._cannot_join()),
            (Icon.GLOBE, self.tr("People elsewhere"), self._elsewhere()),
            (Icon.ROUTE, self.tr("It says Relayed"), self._relayed()),
            (Icon.GAUGE, self.tr("Answers are slow"), self._slow()),
            (Icon.UNPLUG, self.tr("A computer is away"), self._away()),
            (Icon.EYE, self.tr("Who can read it?"), self._privacy()),
        )

    def _how(self) -> Answer:
        return Answer(
            title=self.tr("Your computers form a ring"),
            heading=self.tr("How it goes"),
            why=self.tr(
                "A large model does not fit into one computer. Kafila gives each computer some of its parts. "
                "Every word travels once around the ring, and each computer works on it for a moment."
            ),
            steps=(
                (self.tr("One person hosts"), self.tr("Chooses a model, gets a code and sends it to the others.")),
                (
                    self.tr("The others join"),
                    self.tr("They paste the code; the host compares three words and lets them in."),
                ),
                (self.tr("Start"), self.tr("Kafila measures the computers, divides the model, and the chat opens.")),
            ),
        )

    def _cannot_join(self) -> Answer:
        return Answer(
            title=self.tr("The code does not work"),
            why=self.tr(
                "A code works while its host has the session open, and until the host presses Start or New code."
            ),
            steps=(
                (
                    self.tr("Ask for the invitation"),
                    self.tr("The link carries the way to the host; the code alone works on the same network."),
                ),
                (
                    self.tr("Use the same network"),
                    self.tr("Guest Wi-Fi often keeps computers apart. Use the home Wi-Fi, or a cable."),
                ),
                (
                    self.tr("Allow the local network"),
                    self.tr("On a Mac: System Settings, Privacy, Local Network, then switch on Kafila."),
                ),
                (self.tr("Use the same version"), self.tr("Both computers need the same version of Kafila.")),
            ),
        )

    def _elsewhere(self) -> Answer:
        return Answer(
            title=self.tr("People on other networks cannot join"),
            why=self.tr(
                "Routers at home let nobody in who was not asked for. So the invitation leads to this computer only "
                "on the same network, until there is a way in."
            ),
            steps=(
                (
                    self.tr("Let Kafila ask the router"),
                    self.tr("When you host, choose “Let people elsewhere join, too” and send them the invitation."),
                ),
                (
                    self.tr("Switch on UPnP in the router"),
                    self.tr("Its settings have it, often under “Internet” or “Port sharing”. Then host again."),
                ),
                (
                    self.tr("Let somebody else host"),
                    self.tr("Another home may have a router that opens a way in."),
                ),
                (
                    self.tr("Or meet at a rendezvous"),
                    self.tr(
                        "Somebody starts “kafila rendezvous” on a small rented computer, and everyone puts its "
                        "address into Settings, under “Meeting”. It cannot read what is said."
                    ),
                ),
            ),
        )

    def _relayed(self) -> Answer:
        return Answer(
            title=self.tr("Two computers do not reach each other directly"),
            why=self.tr(
                "Many routers let nobody in from outside. Then the relay passes on what they say. "
                "It is encrypted, the relay cannot read it. It works, but each word takes a little longer."
            ),
            steps=(
                (self.tr("Wait a moment"), self.tr("Kafila tries on, and changes over by itself as soon as it can.")),
                (
                    self.tr("Use a cable or the home Wi-Fi"),
                    self.tr("Guest Wi-Fi and mobile data are usually stricter."),
                ),
                (self.tr("Or leave it"), self.tr("The plan already counts the relay. Private and correct either way.")),
            ),
        )

    def _slow(self) -> Answer:
        return Answer(
            title=self.tr("Each word waits for every computer"),
            why=self.tr("A word is as fast as the sum of all computers and of the ways between them."),
            steps=(
                (
                    self.tr("Look at the ring"),
                    self.tr("The milliseconds at each computer and each way show where the time goes."),
                ),
                (self.tr("Close heavy programs"), self.tr("On the computer that takes the longest.")),
                (
                    self.tr("Try with fewer computers"),
                    self.tr("Before Start the plan says what it would bring to go without one."),
                ),
            ),
        )

    def _away(self) -> Answer:
        return Answer(
            title=self.tr("A computer stopped answering"),
            why=self.tr("A closed lid, a lost Wi-Fi. The answer pauses where it was; nothing you wrote is lost."),
            steps=(
                (
                    self.tr("Open the lid"),
                    self.tr("If it comes back within a minute, the answer goes on where it was."),
                ),
                (
                    self.tr("If it does not"),
                    self.tr("The session ends with a sentence. Host it again with the others."),
                ),
            ),
        )

    def _privacy(self) -> Answer:
        return Answer(
            title=self.tr("Private to the group, not within it"),
            why=self.tr("Encrypted between your computers. Everyone in this group could read what is said here."),
            steps=(
                (
                    self.tr("The computer that leads reads the text"),
                    self.tr("It turns your words into numbers and back."),
                ),
                (
                    self.tr("The others work on numbers"),
                    self.tr("With effort, text could be reconstructed from them, or answers changed unnoticed."),
                ),
                (
                    self.tr("So share with people you trust"),
                    self.tr("Compare the three words before you let somebody in."),
                ),
            ),
        )

    def _shown(self, answer: Answer) -> QWidget:
        theme = self.theme
        card = Card(theme, margin=20, spacing=12)
        for place, (name, sentence) in enumerate(answer.steps):
            if place:
                card.body.addWidget(Line())
            number = Text(theme, str(place + 1), Role.STRONG, Tone.ACCENT)
            number.setMinimumWidth(theme.px(16))
            words = stack(
                Text(theme, name, Role.STRONG, wrap=True),
                Text(theme, sentence, Role.SMALL, Tone.MUTED, wrap=True),
                spacing=2,
            )
            line = row(column(number, 1), words, spacing=14)
            line.setStretch(1, 1)
            card.body.addLayout(line)
        return stack(
            Text(theme, answer.title, Role.TITLE, wrap=True),
            Text(theme, answer.why, Role.LEAD, Tone.MUTED, wrap=True),
            6, Text(theme, answer.heading or self.tr("What you can do"), Role.SUBHEADING), card, spacing=12,
        )  # fmt: skip

    def _report_topic(self) -> QWidget:
        theme = self.theme
        card = Card(theme)
        words = stack(
            Text(theme, self.tr("A report for somebody who helps you"), Role.STRONG, wrap=True),
            Text(
                theme, self.tr("It holds versions and how the session stands. No codes, keys or conversations."),
                Role.SMALL, Tone.MUTED, wrap=True,
            ),
            spacing=2,
        )  # fmt: skip
        line = row(Tile(theme, Icon.COPY), words, self.copy, spacing=14)
        line.setStretch(1, 1)
        card.body.addLayout(line)
        return stack(Text(theme, self.tr("Still stuck?"), Role.TITLE), card, spacing=12)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Remember it for the report."""
        self._snapshot = snapshot

    def report(self) -> str:
        """What can be told without telling anything private."""
        lines = [f"Kafila {__version__}", platform()]
        if self._snapshot is not None:
            me, session = self._snapshot.me, self._snapshot.session
            lines.append(f"System: {me.machine.system}; room: {me.room_bytes} bytes")
            lines += [f"Notice: {notice.title}" for notice in me.notices]
            lines.append(f"Session: {type(session).__name__}")
        return "\n".join(lines)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.report())
        self.copy.flash(self.tr("Copied"))
