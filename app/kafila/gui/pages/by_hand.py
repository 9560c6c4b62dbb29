"""A division by hand: the host moves parts between neighbours of the ring and sees what it costs."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kafila.domain.commands import DivideByHand
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal
from kafila.gui import numbers
from kafila.gui.pages.frame import Send
from kafila.gui.pages.shares import Names, ShareList, name_of
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Kind, Line, Size, Text, Tone
from kafila.gui.widgets.layouts import flow

Blocks = tuple[tuple[MemberId, int], ...]
"""Every member with its number of parts, in ring order from the head on."""

KAFILAS: Blocks = ()
"""The planner's own division, whatever it is."""


def blocks_of(plan: Plan | Refusal) -> Blocks:
    """The division that a plan holds, or that a refusal came nearest to."""
    return tuple((share.member, share.blocks) for share in plan.shares)


def neighbour(place: int, count: int) -> int:
    """With which neighbour a member exchanges parts: the next, or for the last the one before."""
    return place + 1 if place + 1 < count else place - 1


def move(blocks: Blocks, place: int, step: int) -> Blocks | None:
    """The division once a member holds `step` parts more, its neighbour as many fewer.

    None where one of the two would hold nothing.

    >>> move((("a", 3), ("b", 1)), 1, 1)
    (('a', 2), ('b', 2))
    >>> move((("a", 3), ("b", 1)), 0, 1) is None
    True
    """
    other = neighbour(place, len(blocks))
    if other < 0:
        return None
    counts = [count for _, count in blocks]
    counts[place] += step
    counts[other] -= step
    if min(counts) < 1:
        return None
    return tuple((member, count) for (member, _), count in zip(blocks, counts, strict=True))


class Hand:
    """What this window asked for by hand, which may be ahead of what it is shown."""

    def __init__(self) -> None:
        self.asked = KAFILAS
        self._ahead = False

    def ask(self, blocks: Blocks) -> None:
        """Remember what was asked."""
        self.asked = blocks
        self._ahead = True

    def meet(self, plan: Plan | Refusal) -> None:
        """Compare with what is shown now. Where other people are in, nothing is by hand any more."""
        held = blocks_of(plan)
        if {member for member, _ in self.asked} != {member for member, _ in held}:
            self.asked = KAFILAS
        if self.asked in (held, KAFILAS):
            self._ahead = False

    def made(self, plan: Plan | Refusal) -> bool:
        """Whether this division is a person's, not the planner's."""
        if isinstance(plan, Plan):
            return plan.search == "by-hand"
        return bool(self.asked) and (self._ahead or blocks_of(plan) == self.asked)

    def blocks(self, plan: Plan | Refusal) -> Blocks:
        """The division to go on from."""
        return self.asked if self._ahead else blocks_of(plan)


class HandView(QWidget):
    """The lines of the division with buttons, what it costs, and the way back.

    `finished` when the person has had enough of it. Everything that changes stands below the lines,
    so that these stay under the pointer.
    """

    finished = Signal()

    def __init__(self, theme: Theme, send: Send, hand: Hand) -> None:
        super().__init__()
        self._send = send
        self._hand = hand
        self._shown: tuple[Plan | Refusal, Names] | None = None
        self.shares = ShareList(theme, roomy=True)
        self.shares.moved.connect(self._move)
        self.result = Text(theme, "", Role.SUBHEADING, wrap=True)
        self.cost = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self.back = Button(theme, self.tr("Back to Kafila’s plan"), Kind.PLAIN, Size.SMALL, Icon.ROTATE_CCW)
        self.back.clicked.connect(self.give_back)
        self.done = Button(theme, self.tr("Done"), Kind.PLAIN, Size.SMALL, Icon.CHECK)
        self.done.clicked.connect(self.finished)
        lead = self.tr("Each button moves one part between two neighbours of the ring.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(10))
        for part in (
            Text(theme, self.tr("Parts by hand"), Role.SMALL, weight=600),
            Text(theme, lead, Role.SMALL, Tone.MUTED, wrap=True),
            self.shares,
            Line(),
            self.result,
            self.cost,
            flow(theme, self.back, self.done),
        ):
            layout.addWidget(part)

    def show_division(self, plan: Plan | Refusal, names: Names) -> None:
        """Show a division, and what it costs."""
        self._shown = plan, names
        blocks = self._hand.blocks(plan)
        by_hand = self._hand.made(plan)
        self.shares.show_shares(plan.shares, names, [count for _, count in blocks])
        for place, line in enumerate(self.shares.lines[: len(blocks)]):
            name = name_of(names, blocks[place][0])
            other = name_of(names, blocks[neighbour(place, len(blocks))][0])
            fewer = self.tr("One part fewer for {name}, to {other}").format(name=name, other=other)
            more = self.tr("One part more for {name}, from {other}").format(name=name, other=other)
            line.offer(
                fewer=fewer if move(blocks, place, -1) else "",
                more=more if move(blocks, place, 1) else "",
            )
        self.back.setEnabled(by_hand)
        if isinstance(plan, Refusal):
            self._show_refused(plan, names)
        else:
            self._show_speed(plan, by_hand=by_hand)

    def _show_refused(self, refusal: Refusal, names: Names) -> None:
        missing = numbers.size(max(refusal.needs_bytes - refusal.has_bytes, 0), up=True)
        who = name_of(names, refusal.member) if refusal.member else self.tr("The group")
        self.result.set_tone(Tone.LOST)
        self.result.set_text(self.tr("{who} is {size} short").format(who=who, size=missing))
        self.cost.set_text(" ".join(refusal.help))

    def _show_speed(self, plan: Plan, *, by_hand: bool) -> None:
        alone = plan.tokens_per_second_alone
        words = self.tr("It fits: {rate} words a second for one person") if alone is not None else self.tr("It fits")
        self.result.set_tone(Tone.NORMAL)
        self.result.set_text(words.format(rate=numbers.words_a_second(alone or 0)))
        self.cost.set_text(" ".join(plan.advice[:1]) if by_hand else self.tr("This is Kafila’s own plan."))

    def _move(self, place: int, step: int) -> None:
        if self._shown is None:
            return
        plan, names = self._shown
        blocks = move(self._hand.blocks(plan), place, step)
        if blocks is not None:
            self._hand.ask(blocks)
            self.show_division(plan, names)
            self._send(DivideByHand(blocks=blocks))

    def give_back(self) -> None:
        """Let Kafila divide."""
        self._hand.ask(KAFILAS)
        self._send(DivideByHand(blocks=KAFILAS))
