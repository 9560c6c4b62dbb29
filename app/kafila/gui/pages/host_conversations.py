"""Hosting, second step: how long conversations get and how many people write at once."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QSizePolicy, QWidget

from kafila.domain.commands import HostSession
from kafila.domain.errors import Problem
from kafila.domain.snapshot import Snapshot
from kafila.gui import numbers
from kafila.gui.pages.draft import LENGTHS, MOST_PEOPLE, Length, ModelChoice, conversation_bytes
from kafila.gui.pages.frame import Page, Send
from kafila.gui.pages.need_card import NeedCard
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import (
    Button,
    Card,
    Kind,
    Size,
    Text,
    Tile,
    Tone,
    fill,
)
from kafila.gui.widgets.choices import Check, ChoiceCard, Stepper
from kafila.gui.widgets.details import Details, Facts
from kafila.gui.widgets.focus import CORNER
from kafila.gui.widgets.layouts import CardGrid, Columns, flow, stack
from kafila.gui.widgets.notice import Notice, NoticeKind


class Sheets(QWidget):
    """So many sheets of paper, one behind the other."""

    def __init__(self, theme: Theme, count: int) -> None:
        super().__init__()
        self._theme = theme
        self._count = count
        self._lit = False
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def light(self, *, lit: bool) -> None:
        """Show it as part of what is chosen."""
        self._lit = lit
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Wide enough for the last sheet."""
        return QSize(self._theme.px(8 * (self._count - 1) + 17), self._theme.px(22))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the sheets."""
        px = self._theme.px
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.colour("accent" if self._lit else "text_muted"), 1.25))
        painter.setBrush(self._theme.colour("surface"))
        for place in range(self._count):
            painter.drawRoundedRect(QRectF(px(8) * place + 1, 1, px(14), px(19)), px(3), px(3))
        painter.end()


class ConversationsPage(Page):
    """Length, people, the group's name; sends `HostSession`."""

    cancelled = Signal()

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, steps=True)
        if self.steps is not None:
            self.steps.set_step(1)
        self._model: ModelChoice | None = None
        self._room: int | None = None
        self._cards: dict[str, ChoiceCard] = {}
        self._costs: dict[str, Text] = {}
        self._sheets: dict[str, Sheets] = {}
        self._group = QButtonGroup(self)
        self._group.buttonToggled.connect(self._update)
        self.cancel = Button(theme, self.tr("Cancel"), Kind.QUIET)
        self.cancel.clicked.connect(self.cancelled)
        self.head.add_end(self.cancel, spare=True)
        self.problem = Notice(theme, NoticeKind.LOST)
        self.problem.hide()
        self.lengths = CardGrid(theme, 210)
        self.lengths.show_cards([self._length_card(length) for length in LENGTHS])
        self.people = Stepper(theme, self.tr("People at the same moment"), 1, MOST_PEOPLE)
        self.people.changed.connect(self._update)
        self._tiles = [Tile(theme, Icon.USER, side=34, disc=True) for _ in range(MOST_PEOPLE)]
        people = Card(theme, margin=14)
        line = Columns(theme, 520, gap=12, upright=Qt.AlignmentFlag.AlignVCenter)
        line.add(flow(theme, *self._tiles), 1)
        line.add(self.people, 0)
        people.body.addWidget(line)
        self.group_name = QLineEdit()
        self.group_name.setProperty(CORNER, 11)
        self.group_name.setAccessibleName(self.tr("Name of the group"))
        self.group_name.setMaxLength(60)
        self.elsewhere = Check(theme, self.tr("Let people elsewhere join, too"))
        self.facts = Facts(theme)
        self.need = NeedCard(theme)
        heading = stack(
            Text(theme, self.tr("How will you talk to it?"), Role.TITLE, wrap=True),
            Text(
                theme,
                self.tr("Longer conversations and more people at once need more memory."),
                tone=Tone.MUTED,
                wrap=True,
            ),
            spacing=4,
        )
        left = stack(
            heading, self.problem, 8,
            Text(theme, self.tr("How long may one conversation get?"), Role.SUBHEADING, wrap=True), self.lengths, 12,
            stack(
                Text(theme, self.tr("How many people at the same moment?"), Role.SUBHEADING, wrap=True),
                Text(
                    theme,
                    self.tr("Others can still write; their question waits its turn and they see their place."),
                    Role.SMALL, Tone.MUTED, wrap=True,
                ),
                spacing=2,
            ),
            people, 12,
            Text(theme, self.tr("What is your group called?"), Role.SUBHEADING, wrap=True), self.group_name, 12,
            stack(
                Text(theme, self.tr("Is everyone on this network?"), Role.SUBHEADING, wrap=True),
                Text(
                    theme,
                    self.tr(
                        "For people elsewhere Kafila can ask the router here to open a way in. It is closed again "
                        "when the session ends, and you still decide who gets in."
                    ),
                    Role.SMALL, Tone.MUTED, wrap=True,
                ),
                spacing=2,
            ),
            self.elsewhere,
            Details(theme, self.tr("Details: exact length in tokens"), self.facts),
        )  # fmt: skip
        columns = Columns(theme, 820, gap=32)
        columns.add(left, 1)
        columns.add(self.need, 0, 336)
        self.set_content(columns)
        self.get_code = Button(theme, self.tr("Get the code"), Kind.PRIMARY, Size.LARGE)
        self.get_code.clicked.connect(self._host)
        self.foot.add_end(self.get_code)
        self._cards["long"].setChecked(True)

    def _words_of(self, length: Length) -> tuple[str, str]:
        return {
            "short": (self.tr("Short"), self.tr("A page or two: quick questions, short drafts")),
            "long": (self.tr("Long"), self.tr("A long article: working through a document together")),
            "very-long": (self.tr("Very long"), self.tr("A short book: big documents, code, long evenings")),
        }[length.key]

    def _length_card(self, length: Length) -> ChoiceCard:
        name, use = self._words_of(length)
        amount = self.tr("About {count} words").format(count=numbers.whole(length.words))
        card = ChoiceCard(self.theme, f"{name}. {amount}. {use}")
        sheets = Sheets(self.theme, length.pages)
        cost = Text(self.theme, "", Role.SMALL, wrap=True)
        last = Text(self.theme, use, Role.SMALL, Tone.MUTED, wrap=True)
        for part in (
            sheets,
            Text(self.theme, name, Role.SUBHEADING),
            Text(self.theme, amount, Role.SMALL, weight=500),
            last,
            cost,
        ):
            card.add(part)
            card.body.addSpacing(self.theme.px(6 if part is sheets or part is last else 0))
        card.body.addStretch(1)
        self._group.addButton(card)
        self._cards[length.key] = card
        self._costs[length.key] = cost
        self._sheets[length.key] = sheets
        return card

    def set_model(self, model: ModelChoice) -> None:
        """Show what conversations with this model cost."""
        self._model = model
        self.show_problem(None)
        for length in LENGTHS:
            fits = model.max_context is None or length is LENGTHS[0] or length.tokens <= model.max_context
            self._cards[length.key].setEnabled(fits)
            cost = conversation_bytes(model, length)
            if not fits:
                self._costs[length.key].set_text(self.tr("Longer than this model can take"))
            elif cost is not None:
                words = self.tr("<b>{size}</b> for each conversation")
                self._costs[length.key].set_html(fill(words, size=numbers.size(cost)))
            else:
                self._costs[length.key].set_text(self.tr("Counted when the code is made"))
        if not self._length_is_possible():
            self._cards[LENGTHS[0].key].setChecked(True)
        self._update()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Count with this computer's room; suggest a name for the group."""
        self._room = snapshot.me.room_bytes
        owner = snapshot.me.machine.owner or snapshot.me.machine.name
        self.group_name.setPlaceholderText(self.tr("{owner}’s group").format(owner=owner))
        self._update()

    def show_problem(self, problem: Problem | None) -> None:
        """Say why hosting did not work."""
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.say_problem(problem)

    def _length(self) -> Length:
        return next((length for length in LENGTHS if self._cards[length.key].isChecked()), LENGTHS[1])

    def _length_is_possible(self) -> bool:
        return self._cards[self._length().key].isEnabled()

    def _update(self) -> None:
        length, people = self._length(), self.people.value
        for key, sheets in self._sheets.items():
            sheets.light(lit=key == length.key)
        for place, tile in enumerate(self._tiles):
            taken = place < people
            tile.show_as(Icon.USER, "accent_text" if taken else "text_muted", "accent_soft" if taken else "sunken")
        if self._model is None:
            return
        name, _ = self._words_of(length)
        each = conversation_bytes(self._model, length)
        self.need.show_need(self._model, each, people, self._room)
        what = self.tr("{length} conversations, %n [person|people] at once", "", people).format(length=name)
        total = (self._model.size_bytes or 0) + (each or 0) * people
        words = self.tr("{model} · {size} together").format(model=self._model.name, size=numbers.size(total))
        self.summarise(what, words if self._model.size_bytes else self._model.name)
        tokens = self.tr("{count} tokens at most").format(count=numbers.whole(length.tokens))
        most = self._model.max_context
        facts = [(self.tr("One conversation"), tokens)]
        if most is not None:
            facts.append(
                (self.tr("The model itself takes"), self.tr("{count} tokens").format(count=numbers.whole(most)))
            )
        self.facts.show_facts(tuple(facts))

    def _host(self) -> None:
        if self._model is not None:
            self.send(
                HostSession(
                    model=self._model.id,
                    group=self.group_name.text().strip() or self.group_name.placeholderText(),
                    context=self._length().tokens,
                    concurrency=self.people.value,
                    open_port=self.elsewhere.isChecked(),
                )
            )
