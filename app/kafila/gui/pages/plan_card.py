"""What would happen if Start were pressed now: the plan, or who is short by how much."""

import re
from html import escape

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kafila.domain.plan import PathKind, Plan, Refusal
from kafila.domain.snapshot import WaitingRoom
from kafila.gui import numbers
from kafila.gui.pages.by_hand import Hand, HandView
from kafila.gui.pages.frame import Send
from kafila.gui.pages.plan_details import PlanDetails, list_sections
from kafila.gui.pages.plan_speeds import Speeds
from kafila.gui.pages.refusal_view import RefusalView
from kafila.gui.pages.shares import Names, ShareList
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Card, Kind, Line, Pill, PillKind, Size, Text, Tone, column, row
from kafila.gui.widgets.details import Details
from kafila.gui.widgets.layouts import Columns, stack
from kafila.gui.widgets.lights import MovingLights
from kafila.gui.widgets.notice import Notice, NoticeKind
from kafila.gui.widgets.plan_ring import Disc, PlanRing

MOST_ADVICE = 2
DETAILS_FROM = 340


class PlanView(QWidget):
    """An admitted plan: speed, who holds what, what would change it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.speed = Text(theme, "", Role.DISPLAY)
        self._unit = Text(theme, self.tr("words a second"), tone=Tone.MUTED)
        self._speed_second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._parts = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._ring = PlanRing(theme)
        self.shares = ShareList(theme)
        self.by_hand = Notice(theme, NoticeKind.ACCENT, Icon.SLIDERS_HORIZONTAL)
        self.back = Button(theme, self.tr("Back to Kafila’s plan"), Kind.PLAIN, Size.SMALL, Icon.ROTATE_CCW)
        self.speeds = Speeds(theme)
        self.advice = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._advice_block = stack(Line(), self.speeds, self.advice, spacing=theme.px(10))
        self.facts = PlanDetails(theme)
        self.more = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        inside = stack(self.more, self.facts, spacing=theme.px(8))
        self.details = Details(theme, self.tr("Details"), inside)
        self.move_parts = Button(theme, self.tr("Move parts…"), Kind.LINK, Size.SMALL, Icon.SLIDERS_HORIZONTAL)
        self.move_parts.setProperty("flush", "true")
        speed = row(self.speed, self._unit, 1, spacing=8)
        heading = Columns(theme, 300, gap=4)
        heading.add(Text(theme, self.tr("Who holds what"), Role.SMALL, weight=600), 1)
        heading.add(self._parts, 0)
        who = Columns(theme, 320, gap=14, upright=Qt.AlignmentFlag.AlignVCenter)
        who.add(self._ring, 0)
        who.add(self.shares, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(10))
        layout.addLayout(column(speed, self._speed_second, spacing=0))
        layout.addWidget(Line())
        for part in (heading, who, self.by_hand, self.back, self._advice_block):
            layout.addWidget(part)
        layout.addLayout(column(self.move_parts, self.details, spacing=theme.px(2)))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Say less about the details where the words would not fit."""
        super().resizeEvent(event)
        narrow = event.size().width() < self._theme.px(DETAILS_FROM)
        words = self.tr("Details") if narrow else self.tr("Details: order, connections, other divisions")
        self.details.heading.set_words(words)

    def show_plan(self, plan: Plan, room: WaitingRoom, names: Names) -> None:
        """Show an admitted plan."""
        self._show_speed(plan, room.concurrency)
        parts = self.tr("{model} in %n part(s)", "", room.blocks).format(model=room.model)
        self._parts.set_text(parts)
        relayed = {edge.from_member: edge.predicted is PathKind.RELAYED for edge in plan.edges}
        discs = tuple(
            Disc(member=share.member, parts=share.blocks, relayed=relayed.get(share.member, False))
            for share in plan.shares
        )
        self._ring.show_ring(discs, len(room.newcomers))
        self.shares.show_shares(plan.shares, names)
        advice = plan.advice
        if plan.search == "by-hand":
            self.by_hand.say(escape(" ".join(advice)) or escape(self.tr("Divided by hand.")))
            advice = ()
        self.by_hand.setVisible(plan.search == "by-hand")
        self.back.setVisible(plan.search == "by-hand" and room.is_host)
        self.move_parts.setVisible(room.is_host and len(plan.shares) > 1)
        self.speeds.show_plan(plan, room)
        self.advice.set_html("<br>".join(emphasise(line, names) for line in advice[:MOST_ADVICE]))
        self.advice.setVisible(bool(advice))
        self._advice_block.setVisible(bool(advice or any(not line.isHidden() for line in self.speeds.lines)))
        self.more.set_html("<br>".join(emphasise(line, names) for line in advice[MOST_ADVICE:]))
        self.more.setVisible(len(advice) > MOST_ADVICE)
        self.facts.show_sections(list_sections(plan, names))

    def _show_speed(self, plan: Plan, people: int) -> None:
        alone, together = plan.tokens_per_second_alone, plan.figures.tokens_per_second
        if alone is None:
            self.speed.set_text("–")
            self._speed_second.set_text(self.tr("The speed is known once all computers are measured."))
            return
        self.speed.set_text(numbers.words_a_second(alone))
        if people > 1 and together is not None:
            words = self.tr("for one person · {rate} each for {people}")
            rate = numbers.words_a_second(together / people)
            self._speed_second.set_text(words.format(rate=rate, people=numbers.whole(people)))
        else:
            self._speed_second.set_text(self.tr("for one person, at best"))


class PlanCard(Card):
    """The plan preview of the waiting room, made new with every arrival.

    `remove_wanted` with a member, `invite_wanted`: what would help where the model does not fit.
    """

    remove_wanted = Signal(str)
    invite_wanted = Signal()

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, margin=20, spacing=10)
        self._hand = Hand()
        self._moving = False
        self._room: WaitingRoom | None = None
        self.pill = Pill(theme, "", PillKind.PLAIN)
        self.plan = PlanView(theme)
        self.refusal = RefusalView(theme)
        self.hand = HandView(theme, send, self._hand)
        lights = MovingLights(theme)
        self._wait_words = Text(theme, self.tr("The plan is made as soon as this computer is measured."), wrap=True)
        self._wait = QWidget()
        line = row(lights, self._wait_words, spacing=10)
        line.setStretch(1, 1)
        self._wait.setLayout(line)
        self.body.addLayout(row(Text(theme, self.tr("Plan"), Role.SUBHEADING), 1, self.pill))
        for part in (self._wait, self.plan, self.refusal, self.hand):
            self.body.addWidget(part)
        self.refusal.remove_wanted.connect(self.remove_wanted)
        self.refusal.invite_wanted.connect(self.invite_wanted)
        for wants in (self.plan.move_parts.clicked, self.refusal.hand_wanted):
            wants.connect(self._open_hand)
        for gives in (self.plan.back.clicked, self.refusal.plan_wanted):
            gives.connect(self.hand.give_back)
        self.hand.finished.connect(self._close_hand)

    @property
    def refused_by_hand(self) -> bool:
        """Whether it is a person's own division that does not fit."""
        plan = self._room.plan if self._room is not None else None
        return isinstance(plan, Refusal) and self._hand.made(plan)

    def show_room(self, room: WaitingRoom) -> None:
        """Show what the room's plan is now."""
        if self._room is not None and _who(self._room) != _who(room):
            self._moving = False
        self._room = room
        names = {member.member: member.machine for member in room.members}
        plan = room.plan
        if plan is not None:
            self._hand.meet(plan)
        moving = self._moving and plan is not None and len(plan.shares) > 1 and room.is_host
        self._wait.setVisible(plan is None)
        self.plan.setVisible(isinstance(plan, Plan) and not moving)
        self.refusal.setVisible(isinstance(plan, Refusal) and not moving)
        self.hand.setVisible(moving)
        if plan is not None and moving:
            self.hand.show_division(plan, names)
        match plan:
            case None:
                self.pill.show_as(self.tr("Measuring"), PillKind.PLAIN)
            case Plan():
                self.pill.show_as(self.tr("It fits"), PillKind.OK, Icon.CHECK)
                self.plan.show_plan(plan, room, names)
            case Refusal():
                kind = PillKind.LOST if len(room.members) > 1 else PillKind.NEEDS
                icon = Icon.CIRCLE_ALERT if kind is PillKind.LOST else Icon.USERS
                words = self.tr("Does not fit yet") if kind is PillKind.LOST else self.tr("Needs more computers")
                self.pill.show_as(words, kind, icon)
                self.refusal.show_refusal(plan, room, names, by_hand=self.refused_by_hand)

    def _open_hand(self) -> None:
        by_key = self.plan.move_parts.hasFocus()
        self._moving = True
        if self._room is not None:
            self.show_room(self._room)
        if by_key and self.hand.shares.lines:
            line = self.hand.shares.lines[0]
            (line.fewer if line.fewer.isEnabled() else line.more).setFocus(Qt.FocusReason.TabFocusReason)

    def _close_hand(self) -> None:
        by_key = self.hand.done.hasFocus()
        self._moving = False
        if self._room is not None:
            self.show_room(self._room)
        if by_key and self.plan.move_parts.isVisible():
            self.plan.move_parts.setFocus(Qt.FocusReason.TabFocusReason)


def emphasise(sentence: str, names: Names) -> str:
    """The sentence as our own markup, with the names of computers in bold."""
    known = sorted({escape(machine.name) for machine in names.values() if machine.name}, key=len, reverse=True)
    words = escape(sentence)
    if not known:
        return words
    pattern = "|".join(re.escape(name) for name in known)
    return re.sub(rf"(?<!\w)({pattern})(?!\w)", r"<b>\1</b>", words)


def _who(room: WaitingRoom) -> frozenset[str]:
    return frozenset(member.member for member in room.members)
