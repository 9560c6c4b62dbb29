"""Joining, first step: the code or the link that somebody was sent."""

from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QWidget

from kafila.domain.commands import JoinSession
from kafila.domain.errors import Problem
from kafila.domain.snapshot import Snapshot
from kafila.gui.codes import Nothing, Right, Typing, Wrong, code_words, read_code, repaired, words_like
from kafila.gui.pages.frame import TEXT_MOST, Page, Send
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, IconLabel, Kind, Line, Size, Text, Tile, Tone, fill, row
from kafila.gui.widgets.code_field import CodeField
from kafila.gui.widgets.layouts import flow, stack
from kafila.protocol.misread import NotACode, UnknownWord

PATIENCE_MS = 700
"""So long after the last key what was typed is judged as a whole."""


class JoinPage(Page):
    """A field that says at once what is wrong with a code; sends `JoinSession`."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, title="")
        self.heading.set_text(self.tr("Join a session"))
        self._refused = ""
        self._words = code_words()
        self.field = CodeField(theme, self._words)
        self.field.read.connect(self._read)
        self.field.returnPressed.connect(self._join)
        self._sign = IconLabel(theme, Icon.CIRCLE_ALERT, "lost")
        self.verdict = Text(theme, "", wrap=True)
        self._verdict = QWidget()
        line = row(self._sign, self.verdict, spacing=10)
        line.setStretch(1, 1)
        self._verdict.setLayout(line)
        self.use_guess = Button(theme, "", Kind.PRIMARY, icon=Icon.CHECK)
        self.use_guess.clicked.connect(self._use_guess)
        self.like = Button(theme, "", Kind.LINK)
        self.like.clicked.connect(self._show_like)
        self._like = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._help = flow(theme, self.use_guess, self.like, gap=12)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._judge)
        self._promise = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        promise = QWidget()
        words = stack(Text(theme, self.tr("Before anything starts"), Role.STRONG), self._promise, spacing=2)
        line = row(Tile(theme, Icon.SHIELD_CHECK), words, spacing=14)
        line.setStretch(1, 1)
        promise.setLayout(line)
        title = stack(
            Text(theme, self.tr("Paste the code you were sent"), Role.TITLE, wrap=True),
            Text(
                theme, self.tr("A code, or the whole invitation. Capitals, spaces and hyphens do not matter."),
                tone=Tone.MUTED, wrap=True,
            ),
            spacing=4,
        )  # fmt: skip
        content = stack(
            title, 12, self.field, self._verdict, self._help, self._like, 12, Line(), 4, promise, spacing=12
        )
        self.set_content(content, TEXT_MOST, top=88)
        self.join = Button(theme, self.tr("Join"), Kind.PRIMARY, Size.LARGE)
        self.join.clicked.connect(self._join)
        self.foot.add_end(self.join)
        self.summary.hide()
        self.summary_second.set_html(self.tr("No code yet? Ask the person hosting to press <b>Copy invitation</b>."))
        self._read()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Name this computer as the host will see it."""
        words = self.tr(
            "The host sees the name “{machine}” and lets you in. "
            "You then see the model, how much room it takes here, and can still leave."
        )
        self._promise.set_text(words.format(machine=snapshot.me.machine.name))

    def show_problem(self, problem: Problem | None) -> None:
        """Say at the field why joining did not work. It goes away with the next change."""
        if problem is None:
            self._refused = ""
        else:
            self._refused = self.field.text()
            self._say(fill("<lost>{title}.</lost> {advice}", title=problem.title, advice=problem.advice))
            self.field.selectAll()
        self.join.setEnabled(isinstance(self.field.reading, Right))

    def clear(self) -> None:
        """Begin anew."""
        self.field.clear()
        self.show_problem(None)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """The field is ready for typing; a copied code is already in it."""
        super().showEvent(event)
        copied = read_code(QGuiApplication.clipboard().text()[:4096], self._words)
        if not self.field.text() and isinstance(copied, Right):
            self.field.setText(copied.text())
            self.field.selectAll()
        self.field.setFocus()

    def _read(self) -> None:
        reading = self.field.reading
        self.join.setEnabled(isinstance(reading, Right))
        self._refused = ""
        self._like.hide()
        self._patience.stop()
        match reading:
            case Wrong(misread=NotACode()) | Nothing() | Typing():
                self._say("")
                self._patience.start()
            case Wrong():
                self._judge()
            case Right(is_link=True):
                self._say(self.tr("This is a whole invitation."), good=True)
            case Right():
                self._say(self.tr("The code checks out."), good=True)

    def _judge(self) -> None:
        reading = self.field.reading
        if not isinstance(reading, Wrong):
            return
        problem = reading.misread.problem()
        word = reading.misread
        if not isinstance(word, UnknownWord):
            self._say(fill("<lost>{title}.</lost> {advice}", title=problem.title, advice=problem.advice))
            return
        guess = word.guess
        if guess:
            words = self.tr("<lost>{title}.</lost> Did you mean <b>{guess}</b>?")
            if word.fits:
                words = self.tr("<lost>{title}.</lost> Did you mean <b>{guess}</b>? With it the code checks out.")
        else:
            words = "<lost>{title}.</lost> {advice}"
        self._say(fill(words, title=problem.title, guess=guess or "", advice=problem.advice))
        typed = self.field.text()[word.start : word.end].lower()
        self._help.show()
        self.use_guess.setVisible(bool(guess))
        self.use_guess.set_words(self.tr("Use “{word}”").format(word=guess))
        self.like.set_words(self.tr("See words that start with “{letters}”").format(letters=typed[:3]))
        self.like.setVisible(bool(words_like(typed[:3], self._words)))

    def _say(self, html: str, *, good: bool = False) -> None:
        self._verdict.setVisible(bool(html))
        self._help.hide()
        self._sign.show_as(Icon.CIRCLE_CHECK if good else Icon.CIRCLE_ALERT, "direct" if good else "lost")
        colour = self.theme.colours.lost_text
        marked = html.replace("<lost>", f'<span style="font-weight:600; color:{colour}">')
        self.verdict.set_html(marked.replace("</lost>", "</span>"))

    def _use_guess(self) -> None:
        reading = self.field.reading
        if isinstance(reading, Wrong) and isinstance(reading.misread, UnknownWord):
            self.field.setText(repaired(self.field.text(), reading.misread))
            self.field.setFocus()

    def _show_like(self) -> None:
        reading = self.field.reading
        if isinstance(reading, Wrong) and isinstance(reading.misread, UnknownWord):
            typed = self.field.text()[reading.misread.start : reading.misread.end].lower()
            self._like.set_text(", ".join(words_like(typed[:3], self._words)))
            self._like.show()

    def _join(self) -> None:
        reading = self.field.reading
        if isinstance(reading, Right):
            self.send(JoinSession(code=reading.text()))
        else:
            self._judge()
