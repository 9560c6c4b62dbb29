"""What would happen if Start were pressed now: the plan, or who is short by how much."""

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.capability import Machine
from kafila.domain.ids import MemberId
from kafila.domain.plan import Figures, PathKind, Plan, Refusal, Share
from kafila.domain.snapshot import WaitingRoom
from kafila.gui import numbers
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Card, IconLabel, Line, Pill, PillKind, Text, Tile, Tone, column, row
from kafila.gui.widgets.cards import Dot
from kafila.gui.widgets.details import Details, Facts
from kafila.gui.widgets.layouts import Columns, stack
from kafila.gui.widgets.lights import MovingLights
from kafila.gui.widgets.meters import ShareBar
from kafila.gui.widgets.plan_ring import Disc, PlanRing

Names = Mapping[MemberId, Machine]


class ShareLine(QWidget):
    """One computer's part of the plan: name, parts, how full it gets."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._dot = Dot(theme, "text_muted")
        self._name = Text(theme, "", Role.SMALL)
        self._name.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._parts = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._room = Text(theme, "", Role.CAPTION, Tone.MUTED)
        self._bar = ShareBar(theme)
        first = row(self._dot, self._name, self._parts)
        first.setStretch(1, 1)
        self._room.setMinimumWidth(theme.px(84))
        self._room.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        second = row(self._bar, self._room, spacing=12)
        second.setStretch(0, 1)
        second.setContentsMargins(theme.px(18), 0, 0, 0)
        lines = QVBoxLayout(self)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(0)
        lines.addLayout(first)
        lines.addLayout(second)

    def show_share(self, name: str, share: Share) -> None:
        """Change what it shows."""
        colour = self._theme.series_of(share.member).colour
        self._dot.set_colour(colour)
        self._name.set_text(name)
        self._parts.set_text(self.tr("%n part(s)", "", share.blocks))
        room = share.room_bytes
        self._room.set_text(numbers.size_of(share.need_bytes, room) if room else numbers.size(share.need_bytes))
        self._bar.show_share(share.need_bytes / room if room else 1.0, colour=colour)
        self.setAccessibleName(f"{name}: {self._parts.text()}, {self._room.text()}")


class PlanView(QWidget):
    """An admitted plan: speed, who holds what, advice."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.speed = Text(theme, "", Role.DISPLAY)
        self._unit = Text(theme, "", tone=Tone.MUTED)
        self._speed_second = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._parts = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._ring = PlanRing(theme)
        self._holder = QWidget()
        self._shares = QVBoxLayout(self._holder)
        self._shares.setContentsMargins(0, 0, 0, 0)
        self._shares.setSpacing(theme.px(4))
        self._lines: list[ShareLine] = []
        self._advice = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._advice_block = stack(Line(), self._advice_heading(), self._advice, spacing=theme.px(10))
        self._facts = Facts(theme)
        self._details = Details(theme, self.tr("Details: order, connections"), self._facts)
        speed = row(self.speed, self._unit, 1, spacing=8)
        heading = Columns(theme, 300, gap=4)
        heading.add(Text(theme, self.tr("Who holds what"), Role.SMALL, weight=600), 1)
        heading.add(self._parts, 0)
        who = Columns(theme, 320, gap=14, upright=Qt.AlignmentFlag.AlignVCenter)
        who.add(self._ring, 0)
        who.add(self._holder, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(10))
        top = column(speed, self._speed_second, spacing=0)
        layout.addLayout(top)
        layout.addWidget(Line())
        layout.addWidget(heading)
        layout.addWidget(who)
        layout.addWidget(self._advice_block)
        layout.addWidget(self._details)

    def _advice_heading(self) -> QWidget:
        holder = QWidget()
        title = Text(self._theme, self.tr("What would change the speed"), Role.SMALL, weight=600)
        holder.setLayout(row(IconLabel(self._theme, Icon.LIGHTBULB, "relayed_text"), title, 1))
        return holder

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
        while len(self._lines) < len(plan.shares):
            self._lines.append(ShareLine(self._theme))
            self._shares.addWidget(self._lines[-1])
        for place, line in enumerate(self._lines):
            line.setVisible(place < len(plan.shares))
            if place < len(plan.shares):
                share = plan.shares[place]
                line.show_share(_name(names, share.member), share)
        self._advice_block.setVisible(bool(plan.advice))
        self._advice.set_text("\n".join(plan.advice))
        self._facts.show_facts(self._details_of(plan, names))

    def _show_speed(self, plan: Plan, people: int) -> None:
        alone, together = plan.tokens_per_second_alone, plan.figures.tokens_per_second
        if alone is None:
            self.speed.set_text("–")
            self._unit.set_text(self.tr("words a second"))
            self._speed_second.set_text(self.tr("The speed is known once all computers are measured."))
            return
        self.speed.set_text(numbers.words_a_second(alone))
        self._unit.set_text(self.tr("words a second"))
        if people > 1 and together is not None:
            words = self.tr("for one person · {rate} each for {people}")
            rate = numbers.words_a_second(together / people)
            self._speed_second.set_text(words.format(rate=rate, people=numbers.whole(people)))
        else:
            self._speed_second.set_text(self.tr("for one person, at best"))

    def _details_of(self, plan: Plan, names: Names) -> tuple[tuple[str, str], ...]:
        order = " → ".join(_name(names, share.member) for share in plan.shares)
        facts = [(self.tr("Order"), order)]
        for share in plan.shares:
            took = f", {numbers.milliseconds(share.stage_ms)}" if share.stage_ms is not None else ""
            blocks = f"{share.first + 1}–{share.end}{took}"
            facts.append((_name(names, share.member), blocks))
        for edge in plan.edges:
            price = f", {numbers.milliseconds(edge.price_ms)}" if edge.price_ms is not None else ""
            word = self.tr("relayed") if edge.predicted is PathKind.RELAYED else self.tr("direct")
            ends = f"{_name(names, edge.from_member)} → {_name(names, edge.to_member)}"
            facts.append((ends, f"{word}{price}"))
        facts += [
            (self.tr("This division"), self._rate(plan.figures)),
            (self.tr("Divided evenly"), self._rate(plan.uniform)),
            (self.tr("Divided by memory"), self._rate(plan.memory_proportional)),
            (self.tr("Measured"), plan.tier_reason),
        ]
        return tuple((name, value) for name, value in facts if value)

    def _rate(self, figures: Figures | None) -> str:
        if figures is None:
            return ""
        if not figures.fits:
            return self.tr("does not fit")
        if figures.tokens_per_second is None:
            return ""
        words = self.tr("{rate} words a second for all together")
        return words.format(rate=numbers.words_a_second(figures.tokens_per_second))


class RefusalView(QWidget):
    """Why it does not fit yet: who, by how much, and what would help."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.title = Text(theme, "", Role.HEADING, wrap=True)
        self._sentence = Text(theme, "", tone=Tone.MUTED, wrap=True)
        self._bar = ShareBar(theme, 10)
        self._needs = Text(theme, "", Role.SMALL, Tone.LOST, weight=600)
        self._help_heading = Text(theme, self.tr("What would help"), Role.SUBHEADING)
        self._helps: list[tuple[QWidget, Text]] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(10))
        for part in (self.title, self._sentence, self._bar, self._needs, Line(), self._help_heading):
            self._layout.addWidget(part)

    def show_refusal(self, refusal: Refusal, names: Names) -> None:
        """Show who is short, and by how much."""
        missing = max(refusal.needs_bytes - refusal.has_bytes, 0)
        who = _name(names, refusal.member) if refusal.member else self.tr("The group")
        title = self.tr("{who} is {size} short") if missing else self.tr("It does not fit yet")
        self.title.set_text(title.format(who=who, size=numbers.size(missing)))
        self._sentence.set_text(refusal.sentence)
        words = self.tr("needs {needs}, has {has}")
        self._needs.set_text(words.format(needs=numbers.size(refusal.needs_bytes), has=numbers.size(refusal.has_bytes)))
        whole = max(refusal.needs_bytes, 1)
        colour = self._theme.series_of(refusal.member).colour if refusal.member else self._theme.colours.accent
        has = min(refusal.has_bytes / whole, 1)
        self._bar.show_share(1, colour=colour, wide=has, over=1 - has)
        for shown in (self._bar, self._needs):
            shown.setVisible(missing > 0)
        self._help_heading.setVisible(bool(refusal.help))
        while len(self._helps) < len(refusal.help):
            text = Text(self._theme, "", wrap=True)
            line = QWidget()
            layout = row(Tile(self._theme, Icon.LIGHTBULB), text, spacing=12)
            layout.setStretch(1, 1)
            line.setLayout(layout)
            self._helps.append((line, text))
            self._layout.addWidget(line)
        for place, (line, text) in enumerate(self._helps):
            line.setVisible(place < len(refusal.help))
            if place < len(refusal.help):
                text.set_text(refusal.help[place])


class PlanCard(Card):
    """The plan preview of the waiting room, made new with every arrival."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, margin=20, spacing=10)
        self.pill = Pill(theme, "", PillKind.PLAIN)
        self.plan = PlanView(theme)
        self.refusal = RefusalView(theme)
        lights = MovingLights(theme)
        self._wait_words = Text(theme, self.tr("The plan is made as soon as this computer is measured."), wrap=True)
        self._wait = QWidget()
        line = row(lights, self._wait_words, spacing=10)
        line.setStretch(1, 1)
        self._wait.setLayout(line)
        self.body.addLayout(row(Text(theme, self.tr("Plan"), Role.SUBHEADING), 1, self.pill))
        for part in (self._wait, self.plan, self.refusal):
            self.body.addWidget(part)

    def show_room(self, room: WaitingRoom) -> None:
        """Show what the room's plan is now."""
        names = {member.member: member.machine for member in room.members}
        plan = room.plan
        self._wait.setVisible(plan is None)
        self.plan.setVisible(isinstance(plan, Plan))
        self.refusal.setVisible(isinstance(plan, Refusal))
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
                self.refusal.show_refusal(plan, names)


def _name(names: Names, member: MemberId) -> str:
    machine = names.get(member)
    return machine.name if machine else member[:4]
