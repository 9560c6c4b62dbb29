"""The parts that pages are made of. Each takes the `Theme` first and follows its changes.

Text(theme, "Plan", Role.SUBHEADING)           Text(..., Tone.MUTED, wrap=True)
Button(theme, "Start", Kind.PRIMARY, Size.LARGE)     IconButton(theme, Icon.X, "Close")
Pill(theme, "Relayed", PillKind.RELAYED, Icon.ROUTE)
card = Card(theme); card.body.addWidget(...)   row(a, 1, b)   column(a, b)
"""

from kafila.gui.widgets.buttons import Button, IconButton, Kind, Size
from kafila.gui.widgets.cards import Card, Empty, IconLabel, Line, Tile, column, row
from kafila.gui.widgets.focus import FocusFrame
from kafila.gui.widgets.pill import Pill, PillKind
from kafila.gui.widgets.text import Text, Tone, fill

__all__ = [
    "Button", "Card", "Empty", "FocusFrame", "IconButton", "IconLabel", "Kind", "Line", "Pill",
    "PillKind", "Size", "Text", "Tile", "Tone", "column", "fill", "row",
]  # fmt: skip
