"""The plan in full: order, connections, parts, other divisions, and how it was found."""

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from kafila.domain.plan import Figures, PathKind, Plan
from kafila.gui import numbers
from kafila.gui.pages.shares import Names, name_of
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Text, Tone

Section = tuple[str, tuple[tuple[str, str], ...]]
"""A heading, and pairs of name and value; a value without a name takes the whole line."""

LEAST_STRETCH, MOST_STRETCH = 12, 30
"""The columns of a table share the width as their longest texts do, within these."""


def list_sections(plan: Plan, names: Names) -> tuple[Section, ...]:
    """Everything that is known of a plan, in words."""
    sections = (
        (_tr("Order"), _order(plan, names)),
        (_tr("Connections"), _connections(plan, names)),
        (_tr("Parts"), _parts(plan, names)),
        (_tr("Divisions"), _divisions(plan)),
        (_tr("Measured"), (("", plan.tier_reason),)),
    )
    full = ((heading, tuple((name, value) for name, value in facts if value)) for heading, facts in sections)
    return tuple((heading, facts) for heading, facts in full if facts)


def _tr(text: str) -> str:
    return QCoreApplication.translate("PlanDetails", text)


def _order(plan: Plan, names: Names) -> tuple[tuple[str, str], ...]:
    order = " → ".join(name_of(names, share.member) for share in plan.shares)
    found = {
        "exact": _tr("No other order and division is better by what was measured."),
        "by-hand": _tr("Divided by hand."),
    }
    note = plan.search_note or found.get(plan.search, _tr("Found by search: another order may be better."))
    return (("", order), ("", note))


def _connections(plan: Plan, names: Names) -> tuple[tuple[str, str], ...]:
    facts: list[tuple[str, str]] = []
    for edge in plan.edges:
        word = _tr("relayed") if edge.predicted is PathKind.RELAYED else _tr("direct")
        price = numbers.milliseconds(edge.price_ms) if edge.price_ms is not None else ""
        ends = f"{name_of(names, edge.from_member)} → {name_of(names, edge.to_member)}"
        facts.append((ends, ", ".join(part for part in (word, price) if part)))
    return tuple(facts)


def _parts(plan: Plan, names: Names) -> tuple[tuple[str, str], ...]:
    facts: list[tuple[str, str]] = []
    for share in plan.shares:
        took = numbers.milliseconds(share.stage_ms) if share.stage_ms is not None else ""
        held = f"{share.first + 1}–{share.end}" if share.blocks > 1 else f"{share.end}"
        facts.append((name_of(names, share.member), ", ".join(part for part in (held, took) if part)))
    return tuple(facts)


def _divisions(plan: Plan) -> tuple[tuple[str, str], ...]:
    return (
        (_tr("This one"), _say(plan.figures)),
        (_tr("Evenly"), _say(plan.uniform)),
        (_tr("By memory"), _say(plan.memory_proportional)),
    )


def _say(figures: Figures | None) -> str:
    """What a division costs; empty where nothing is known of it."""
    if figures is None:
        return ""
    if not figures.fits:
        return _tr("does not fit")
    parts: list[str] = []
    if figures.tokens_per_second is not None:
        rate = numbers.words_a_second(figures.tokens_per_second)
        parts.append(_tr("{rate} words a second in all").format(rate=rate))
    if figures.bottleneck_ms is not None:
        parts.append(_tr("slowest step {time}").format(time=numbers.milliseconds(figures.bottleneck_ms)))
    if figures.utilisation is not None:
        parts.append(_tr("{percent}\N{NO-BREAK SPACE}% busy").format(percent=numbers.whole(figures.utilisation * 100)))
    return ", ".join(parts)


class PlanDetails(QWidget):
    """The sections below one another, names at the start and values beside them."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[Section, ...] = ()
        self._grid: QWidget | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def show_sections(self, sections: tuple[Section, ...]) -> None:
        """Show these, made anew when they change."""
        if sections == self._shown:
            return
        self._shown = sections
        if self._grid is not None:
            self._grid.hide()
            self._layout.removeWidget(self._grid)
            self._grid.deleteLater()
        self._grid = self._build(sections)
        self._layout.addWidget(self._grid)

    def _build(self, sections: tuple[Section, ...]) -> QWidget:
        theme = self._theme
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(3))
        for place, (heading, facts) in enumerate(sections):
            if place:
                layout.addSpacing(theme.px(8))
            layout.addWidget(Text(theme, heading, Role.SMALL, weight=600))
            layout.addLayout(self._table(facts))
        return holder

    def _table(self, facts: tuple[tuple[str, str], ...]) -> QGridLayout:
        theme = self._theme
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme.px(16))
        grid.setVerticalSpacing(theme.px(3))
        for side in (0, 1):
            longest = max(len(fact[side]) for fact in facts)
            grid.setColumnStretch(side, min(max(longest, LEAST_STRETCH), MOST_STRETCH))
        for line, (name, value) in enumerate(facts):
            shown = Text(theme, value, Role.SMALL, wrap=True)
            if name:
                words = Text(theme, name, Role.SMALL, Tone.MUTED, wrap=True)
                grid.addWidget(words, line, 0, Qt.AlignmentFlag.AlignTop)
                grid.addWidget(shown, line, 1, Qt.AlignmentFlag.AlignTop)
            else:
                grid.addWidget(shown, line, 0, 1, 2)
        return grid
