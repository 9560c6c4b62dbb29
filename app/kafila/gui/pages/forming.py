"""The ring is being made: a line of lights for every computer."""

from time import monotonic

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.commands import LeaveSession
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Forming, FormingMember, FormStep, Snapshot
from kafila.gui import numbers
from kafila.gui.machines import icon_of, whose
from kafila.gui.pages.frame import Page, Send
from kafila.gui.rates import Rate
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, IconLabel, Kind, Pill, PillKind, Text, Tone, row
from kafila.gui.widgets.layouts import Columns, stack
from kafila.gui.widgets.lights import StageLights
from kafila.gui.widgets.meters import Progress
from kafila.gui.widgets.notice import Asking
from kafila.gui.widgets.rows import Row, RowList

STEPS = (FormStep.MEASURE, FormStep.FETCH, FormStep.LOAD, FormStep.CONNECT, FormStep.FIRST_TOKEN)
NAME_WIDTH = 200
STATUS_WIDTH = 300
TURN_BELOW = 780


def reached(step: FormStep) -> int:
    """How many steps are done."""
    return len(STEPS) if step is FormStep.READY else STEPS.index(step)


class FormingRow(Row):
    """One computer: who, how far, what it is doing now."""

    def __init__(self, theme: Theme, row_: FormingMember) -> None:
        self._status: QWidget | None = None
        super().__init__(theme, icon_of(row_.machine))
        self.turn_below = TURN_BELOW
        self._rate = Rate()
        self._lights = StageLights(theme, len(STEPS))
        self.status = Text(theme, "", Role.STRONG)
        self._second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._bar = Progress(row_.machine.name)
        status = QWidget()
        lines = QVBoxLayout(status)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(theme.px(2))
        for part in (self.status, self._second, self._bar):
            lines.addWidget(part)
        status.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.end.addWidget(self._lights, 1)
        self.end.addSpacing(theme.px(16))
        self.end.addWidget(status)
        self._status = status
        self._restyle()

    def _restyle(self) -> None:
        super()._restyle()
        px, kinds = self._theme.px, QBoxLayout.Direction
        upright = self.upright
        self.end.setDirection(kinds.TopToBottom if upright else kinds.LeftToRight)
        self.across.setStretch(0, 0)
        self.across.setStretch(1, 1)
        self.names.setMinimumWidth(0 if upright else px(NAME_WIDTH))
        self.names.setMaximumWidth(px(600 if upright else NAME_WIDTH))
        if self._status is not None:
            self._status.setMinimumWidth(px(160 if upright else STATUS_WIDTH))
            self._status.setMaximumWidth(px(STATUS_WIDTH))

    def show_row(self, row_: FormingMember, parts: int, *, mine: bool, now_s: float) -> None:
        """Change what it shows."""
        self.title.set_text(row_.machine.name)
        owner = self.tr("This computer") if mine else whose(row_.machine, mine=False)
        count = self.tr("%n part(s)", "", parts)
        self.second.set_text(" · ".join(part for part in (owner, count) if part))
        self.status.set_text(self._word(row_.step))
        self._rate.add(now_s, row_.done_bytes)
        second = self._second_line(row_)
        self._second.set_text(second)
        self._second.setVisible(bool(second))
        known = row_.total_bytes > 0 and row_.step in {FormStep.FETCH, FormStep.LOAD}
        self._bar.setVisible(known)
        if known:
            self._bar.set_part(row_.done_bytes / row_.total_bytes)
        self._lights.set_reached(reached(row_.step), self.status.text())
        self.setAccessibleName(f"{row_.machine.name}: {self.status.text()}. {second}")

    def _word(self, step: FormStep) -> str:
        return {
            FormStep.MEASURE: self.tr("Measuring"),
            FormStep.FETCH: self.tr("Fetching its parts"),
            FormStep.LOAD: self.tr("Loading"),
            FormStep.CONNECT: self.tr("Connecting"),
            FormStep.FIRST_TOKEN: self.tr("Waiting for the first word"),
            FormStep.READY: self.tr("Ready"),
        }[step]

    def _second_line(self, row_: FormingMember) -> str:
        match row_.step:
            case FormStep.MEASURE:
                return self.tr("How fast, how much room")
            case FormStep.FETCH | FormStep.LOAD if row_.total_bytes > 0:
                parts = [numbers.size_of(row_.done_bytes, row_.total_bytes)]
                rate = self._rate.per_second()
                if rate is not None:
                    left_s = (row_.total_bytes - row_.done_bytes) / rate
                    parts.append(self.tr("{size}/s").format(size=numbers.size(rate)))
                    parts.append(self.tr("{time} left").format(time=numbers.duration(left_s)))
                return " · ".join(parts)
            case FormStep.CONNECT:
                return self.tr("To its two neighbours in the ring")
            case FormStep.READY:
                return self.tr("Waiting for the others")
            case _:
                return ""


class FormingPage(Page):
    """One row for every computer, and how much of the model is in place."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, steps=True, back=False)
        if self.steps is not None:
            self.steps.set_step(3)
        self._forming: Forming | None = None
        self.head.add_end(Pill(theme, self.tr("All connections encrypted"), PillKind.OUTLINE, Icon.LOCK), spare=True)
        self._lead = Text(theme, "", tone=Tone.MUTED, wrap=True)
        self.placed = Text(theme, "", Role.TITLE)
        self._placed_of = Text(theme, "", tone=Tone.MUTED)
        # Wide enough for what it will say: the figure changes many times a second.
        self.placed.setMinimumWidth(theme.px(120))
        self.placed.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        self._placed_of.setMinimumWidth(theme.px(150))
        self._placed = QWidget()
        self._placed.setLayout(row(1, self.placed, self._placed_of, spacing=6))
        title = stack(Text(theme, self.tr("The ring is forming"), Role.TITLE, wrap=True), self._lead, spacing=4)
        top = Columns(theme, 620)
        top.add(title, 1)
        top.add(stack(16, self._placed, spacing=0), 0)
        self.bar = Progress(self.tr("The whole model"), large=True)
        self._names = self._step_names()
        self.list: RowList[FormingRow] = RowList()
        note = QWidget()
        words = Text(
            theme, self.tr("You can use your computers meanwhile. The chat opens when the first word arrives."),
            Role.SMALL, Tone.MUTED, wrap=True,
        )  # fmt: skip
        line = row(IconLabel(theme, Icon.COFFEE, size=16), words, spacing=8)
        line.setStretch(1, 1)
        note.setLayout(line)
        self._content = stack(top, self.bar, 8, self._names, self.list, note, spacing=12)
        self.set_content(self._content)
        self.stop = Button(theme, self.tr("Stop"), Kind.DANGER)
        self.stop.clicked.connect(self._stop)
        self.foot.add_end(self.stop)

    def _step_names(self) -> QWidget:
        px = self.theme.px
        holder = QWidget()
        line = QHBoxLayout(holder)
        line.setContentsMargins(px(16 + 36 + 14 + NAME_WIDTH + 14), 0, px(16 + STATUS_WIDTH + 16 + 24), 0)
        line.setSpacing(0)
        for name in (self.tr("Measure"), self.tr("Fetch"), self.tr("Load"), self.tr("Connect"), self.tr("First word")):
            word = Text(self.theme, name, Role.CAPTION, Tone.MUTED, weight=500)
            word.setAlignment(Qt.AlignmentFlag.AlignCenter)
            line.addWidget(word, 1)
        return holder

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show how far everybody is."""
        forming = snapshot.session
        if not isinstance(forming, Forming):
            return
        self._forming = forming
        self.head_for(steps=forming.is_host, heading=forming.group)
        rows = {row_.member: row_ for row_ in forming.rows}
        parts = {share.member: share.blocks for share in forming.plan.shares}
        now_s = monotonic()

        def make(key: str) -> FormingRow:
            return FormingRow(self.theme, rows[MemberId(key)])

        self.list.show_keys(tuple(rows), make)
        for member, row_ in rows.items():
            mine = member == snapshot.me.member
            self.list.row(member).show_row(row_, parts.get(member, 0), mine=mine, now_s=now_s)
        self._show_sum(forming)
        self.stop.set_words(self.tr("Stop") if forming.is_host else self.tr("Leave"))
        words = self.tr("{model} in {group}").format(model=forming.model, group=forming.group)
        self.summarise(words, self.tr("Anyone can leave at any time; the host can then start again with the others."))

    def _show_sum(self, forming: Forming) -> None:
        total = sum(row_.total_bytes for row_ in forming.rows)
        done = sum(
            row_.total_bytes if reached(row_.step) > STEPS.index(FormStep.LOAD) else row_.done_bytes
            for row_ in forming.rows
        )
        self._placed.setVisible(total > 0)
        if total > 0:
            self.bar.set_part(done / total)
            self.placed.set_text(numbers.size(done))
            self._placed_of.set_text(self.tr("of {size} in place").format(size=numbers.size(total)))
        else:
            steps = sum(reached(row_.step) for row_ in forming.rows)
            self.bar.set_part(steps / max(len(forming.rows) * len(STEPS), 1))
        slowest = min(forming.rows, key=lambda row_: (reached(row_.step), -row_.total_bytes), default=None)
        if slowest is None or slowest.step is FormStep.READY:
            self._lead.set_text(self.tr("Everyone is ready."))
        elif all(row_.step is slowest.step for row_ in forming.rows):
            self._lead.set_text(self.tr("Each computer gets its own parts of the model ready."))
        else:
            words = self.tr("{machine} takes the longest; the others are ready or nearly so.")
            self._lead.set_text(words.format(machine=slowest.machine.name))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """The names of the steps stand above the lights only where the rows lie flat."""
        super().resizeEvent(event)
        margins = self.theme.px(80 if event.size().width() >= self.theme.px(900) else 48)
        self._names.setVisible(event.size().width() - margins >= self.theme.px(TURN_BELOW))

    def _stop(self) -> None:
        forming = self._forming
        if forming is None or not forming.is_host or len(forming.rows) < 2:
            self.send(LeaveSession())
            return
        asking = Asking(
            self.theme, self, self.tr("End the session for everyone?"),
            self.tr("The ring is not made, and the others are told that the session ended."),
            stay=self.tr("Go on"), go=self.tr("End for everyone"),
        )  # fmt: skip
        asking.accepted.connect(lambda: self.send(LeaveSession()))
        asking.open()
