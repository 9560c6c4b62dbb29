"""One turn of a conversation on the screen: the question in its bubble, the answer below it."""

from PySide6.QtCore import QCoreApplication, QEvent, Signal
from PySide6.QtGui import QEnterEvent, QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.errors import Problem
from kafila.gui.serving import conversations as talk
from kafila.gui.serving import figures
from kafila.gui.serving.answer_view import AnswerView
from kafila.gui.serving.conversations import Answer, Turn
from kafila.gui.serving.message_parts import Bubble, QuietIcon, StatusLine
from kafila.gui.serving.wording import Unit, amount, rate
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, IconLabel, Kind, Size, Text, Tone, fill
from kafila.gui.widgets.notice import Notice, NoticeKind

BUBBLE_SHARE = 0.84


class Message(QWidget):
    """A turn. Its signals say what the person wants to do with it."""

    again = Signal()
    go_on = Signal()
    edit = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._turn: Turn | None = None
        self._paused: Problem | None = None
        self._can_ask = True
        self.bubble = Bubble(theme)
        self.answer = AnswerView(theme)
        self.status = StatusLine(theme)
        self.failed = Notice(theme, NoticeKind.LOST)
        self.waits = Notice(theme, NoticeKind.LOST, Icon.PAUSE)
        self.footer = Text(theme, "", Role.SMALL, Tone.MUTED)
        self.figures = Text(theme, "", Role.CAPTION, Tone.FAINT, wrap=True)
        self.details = QuietIcon(theme, Icon.INFO, self.tr("Details"))
        self.copy_question = QuietIcon(theme, Icon.COPY, self.tr("Copy the question"))
        self.edit_question = QuietIcon(theme, Icon.PENCIL, self.tr("Edit the question"))
        self.copy_answer = QuietIcon(theme, Icon.COPY, self.tr("Copy the answer"))
        self.ask_again = QuietIcon(theme, Icon.ROTATE_CCW, self.tr("Ask again"))
        self._quiet = (
            self.copy_question,
            self.edit_question,
            self.copy_answer,
            self.ask_again,
            self.details,
        )
        self._foot = QWidget()
        self.copy_question.clicked.connect(self._copied_question)
        self.copy_answer.clicked.connect(self._copied_answer)
        self.edit_question.clicked.connect(self.edit)
        self.ask_again.clicked.connect(self.again)
        self.status.go_on.clicked.connect(self.go_on)
        self.status.again.clicked.connect(self.again)
        self._retry = Button(theme, self.tr("Ask again"), Kind.PLAIN, Size.SMALL)
        self._retry.clicked.connect(self.again)
        self.failed.add(self._retry)
        self.details.setCheckable(True)
        self.details.toggled.connect(self._show_footer)
        self._build()

    def _build(self) -> None:
        px = self._theme.px
        asked = QHBoxLayout()
        asked.setContentsMargins(0, 0, 0, 0)
        asked.setSpacing(px(2))
        asked.addStretch(1)
        asked.addWidget(self.copy_question)
        asked.addWidget(self.edit_question)
        asked.addSpacing(px(4))
        asked.addWidget(self.bubble)
        foot = QHBoxLayout(self._foot)
        foot.setContentsMargins(0, 0, 0, 0)
        foot.setSpacing(px(8))
        self._gauge = IconLabel(self._theme, Icon.GAUGE, "text_faint", 14)
        foot.addWidget(self._gauge)
        foot.addWidget(self.footer)
        foot.addStretch(1)
        foot.addWidget(self.details)
        foot.addWidget(self.copy_answer)
        foot.addWidget(self.ask_again)
        layout = QVBoxLayout(self)
        side = px(8)
        layout.setContentsMargins(side, 0, px(4), 0)
        layout.setSpacing(px(8))
        layout.addLayout(asked)
        layout.addSpacing(px(6))
        layout.addWidget(self.answer)
        layout.addWidget(self.status)
        layout.addWidget(self.failed)
        layout.addWidget(self.waits)
        layout.addWidget(self._foot)
        layout.addWidget(self.figures)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @property
    def turn(self) -> Turn | None:
        """What it shows."""
        return self._turn

    def show_turn(self, turn: Turn, *, paused: Problem | None, can_ask: bool) -> None:
        """Show a turn as it is now; `paused` says why no more words come, if they do not."""
        if (turn, paused, can_ask) == (self._turn, self._paused, self._can_ask):
            return
        self._turn, self._paused, self._can_ask = turn, paused, can_ask
        answer = turn.answer
        self.bubble.set_text(turn.question)
        writing = isinstance(answer.state, talk.Writing) and paused is None
        self.answer.show_text(answer.text, writing=writing)
        self.status.show_state(answer, paused=paused is not None)
        for button in (self.edit_question, self.ask_again, self._retry):
            button.setEnabled(can_ask)
        self.status.go_on.setEnabled(can_ask)
        self.status.again.setEnabled(can_ask)
        self._show_notices(answer, paused)
        self._show_footer()

    def _show_notices(self, answer: Answer, paused: Problem | None) -> None:
        failed = answer.state.problem if isinstance(answer.state, talk.Failed) else None
        if failed is not None:
            self.failed.say_problem(failed)
        self.failed.setVisible(failed is not None)
        waits = paused is not None and answer.open
        if paused is not None and waits:
            self.waits.say(self._paused_words(answer, paused))
        self.waits.setVisible(waits)

    def _paused_words(self, answer: Answer, paused: Problem) -> str:
        words = answer.text.split()
        if not words:
            return fill("<b>{title}.</b> {advice}", title=paused.title, advice=paused.advice)
        after = self.tr("Paused after “{word}”.").format(word=words[-1].strip("*_`#>|"))
        rest = self.tr("The answer goes on from here when all computers are back. Nothing is lost.")
        return fill("<b>{after}</b> {rest}", after=after, rest=rest)

    def _show_footer(self) -> None:
        turn = self._turn
        if turn is None:
            return
        answer = turn.answer
        self._foot.setVisible(not answer.open)
        words, more = footer_words(answer), detail_words(answer)
        self.footer.set_text(words)
        self._gauge.setVisible(bool(words))
        self.details.setVisible(bool(more))
        self.figures.set_text(more)
        self.figures.setVisible(bool(more) and self.details.isChecked() and not answer.open)
        self.copy_answer.setVisible(bool(answer.text))

    def _copied_question(self) -> None:
        QGuiApplication.clipboard().setText(self.bubble.text)

    def _copied_answer(self) -> None:
        QGuiApplication.clipboard().setText(self.answer.text)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """Show what can be done."""
        super().enterEvent(event)
        for button in self._quiet:
            button.set_seen(seen=True)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Hide it again."""
        super().leaveEvent(event)
        for button in self._quiet:
            button.set_seen(seen=False)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """A bubble takes most of the width, never all of it."""
        super().resizeEvent(event)
        self.bubble.set_most(round(event.size().width() * BUBBLE_SHARE))


def footer_words(answer: Answer) -> str:
    """How fast an answer came, in people's words."""
    timed = talk.times(answer)
    parts: list[str] = []
    speed = rate(answer.text, timed.writing_s) if timed.writing_s is not None else None
    if speed is not None:
        words = (
            QCoreApplication.translate("Message", "{number} words/s")
            if amount(answer.text).unit is Unit.WORDS
            else QCoreApplication.translate("Message", "{number} characters/s")
        )
        parts.append(words.format(number=figures.rate(speed)))
    if timed.first_word_s is not None:
        first = QCoreApplication.translate("Message", "first word after {time}")
        parts.append(first.format(time=figures.seconds_short(timed.first_word_s)))
    return " · ".join(parts)


def detail_words(answer: Answer) -> str:
    """The figures that stay behind *Details*; empty where the engine gave none."""
    known = answer.figures
    if known.tokens_per_second is None or known.tokens is None:
        return ""
    speed = QCoreApplication.translate("Message", "{number} tokens/s")
    count = QCoreApplication.translate("Message", "{number} tokens")
    parts = [
        speed.format(number=figures.rate(known.tokens_per_second)),
        count.format(number=figures.number(known.tokens, 0)),
    ]
    if known.prompt_tokens is not None:
        prompt = QCoreApplication.translate("Message", "{number} read, {kept} still known")
        parts.append(
            prompt.format(
                number=figures.number(known.prompt_tokens, 0),
                kept=figures.number(known.reused_tokens or 0, 0),
            )
        )
    if known.circuit_ms is not None:
        circuit = QCoreApplication.translate("Message", "once round in {time}")
        parts.append(circuit.format(time=figures.milliseconds(known.circuit_ms)))
    return " · ".join(parts)
