"""What would change the speed: the group as it is beside groups with fewer computers."""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kafila.domain.plan import Figures, Plan
from kafila.domain.snapshot import WaitingRoom
from kafila.gui import numbers
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import IconLabel, Text, Tone, row
from kafila.gui.widgets.elided import Elided
from kafila.gui.widgets.layouts import Columns
from kafila.gui.widgets.rate_bar import RateBar

MOST_WITHOUT = 4
TURN_BELOW = 300
LABEL = 156
VALUE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One group, and how fast it would be."""

    name: str
    rate: float | None
    """Tokens a second for each conversation; None: it cannot."""
    instead: str = ""
    """Why it cannot."""
    now: bool = False


def compare(plan: Plan, room: WaitingRoom) -> tuple[Speed, ...]:
    """The group as it is, then those of the fewer that tell most; none where no rate is known."""
    people = room.concurrency
    now = _each(plan.figures, people)
    if now is None or len(plan.shares) < 2:
        return ()
    names = {member.member: member.machine.name for member in room.members}
    words = QCoreApplication.translate("Speeds", "Now, %n computer(s)", "", len(plan.shares))
    speeds = [Speed(name=words, rate=now, now=True)]
    ranked = sorted(plan.without, key=lambda one: _each(one.figures, people) or 0.0, reverse=True)
    for one in ranked[:MOST_WITHOUT]:
        words = QCoreApplication.translate("Speeds", "Without {name}")
        words = words.format(name=names.get(one.member, one.member[:4]))
        speeds.append(Speed(name=words, rate=_each(one.figures, people), instead=_why_not(one.missing_bytes)))
    # Of two, the host alone is the group without the other.
    if len(plan.shares) > 2:
        words = QCoreApplication.translate("Speeds", "This computer alone")
        if not room.is_host:
            host = next((member.machine.name for member in room.members if member.is_host), "")
            words = QCoreApplication.translate("Speeds", "{name} alone").format(name=host)
        speeds.append(Speed(name=words, rate=_each(plan.host_alone, people), instead=_why_not(0)))
    return tuple(speeds)


def _each(figures: Figures | None, people: int) -> float | None:
    if figures is None or not figures.fits or figures.tokens_per_second is None:
        return None
    return figures.tokens_per_second / max(people, 1)


def _why_not(missing_bytes: int) -> str:
    if missing_bytes:
        words = QCoreApplication.translate("Speeds", "{size} short")
        return words.format(size=numbers.size(missing_bytes, up=True))
    return QCoreApplication.translate("Speeds", "does not fit")


class SpeedLine(Columns):
    """One group: its name, a bar, words a second."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, TURN_BELOW, gap=4, upright=Qt.AlignmentFlag.AlignVCenter)
        self._name = Elided(theme, "", Role.SMALL)
        self._now = Elided(theme, "", Role.SMALL, weight=600)
        self._bar = RateBar(theme)
        self._value = Text(theme, "", Role.SMALL)
        self._value.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        self._value.setMinimumWidth(theme.px(VALUE))
        rate = QWidget()
        line = row(self._bar, self._value, spacing=8)
        line.setStretch(0, 1)
        rate.setLayout(line)
        for name in (self._name, self._now):
            self.add(name, 0, LABEL)
        self.add(rate, 1)

    def show_speed(self, speed: Speed, highest: float) -> None:
        """Change what it shows; the highest rate fills a bar."""
        self._name.setVisible(not speed.now)
        self._now.setVisible(speed.now)
        for name in (self._name, self._now):
            name.set_text(speed.name)
        value = speed.instead if speed.rate is None else numbers.words_a_second(speed.rate)
        self._value.set_text(value)
        share = None if speed.rate is None else speed.rate / highest
        self._bar.show_rate(share, "accent" if speed.now else "border_strong")
        said = value if speed.rate is None else self.tr("{rate} words a second").format(rate=value)
        self.setAccessibleName(f"{speed.name}: {said}")


class Speeds(QWidget):
    """The bars under one heading."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.lines: list[SpeedLine] = []
        self._unit = Text(theme, "", Role.CAPTION, Tone.MUTED)
        title = Text(theme, self.tr("What would change the speed"), Role.SMALL, weight=600, wrap=True)
        heading = row(IconLabel(theme, Icon.LIGHTBULB, "relayed_text"), title, self._unit)
        heading.setStretch(1, 1)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(6))
        self._layout.addLayout(heading)

    def show_plan(self, plan: Plan, room: WaitingRoom) -> None:
        """Compare; only the heading where nothing can be compared."""
        speeds = compare(plan, room)
        people = room.concurrency
        each = self.tr("each of %n", "", people) if people > 1 else self.tr("words a second")
        self._unit.set_text(each)
        self._unit.setVisible(bool(speeds))
        highest = max((speed.rate for speed in speeds if speed.rate), default=1.0)
        while len(self.lines) < len(speeds):
            self.lines.append(SpeedLine(self._theme))
            self._layout.addWidget(self.lines[-1])
        for place, line in enumerate(self.lines):
            line.setVisible(place < len(speeds))
            if place < len(speeds):
                line.show_speed(speeds[place], highest)
