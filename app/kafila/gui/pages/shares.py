"""Who holds what: one line for each computer, in the order of the ring."""

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.capability import Machine
from kafila.domain.ids import MemberId
from kafila.domain.plan import Share
from kafila.gui import numbers
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import IconButton, Kind, Size, Text, Tone, row
from kafila.gui.widgets.buttons import restyle
from kafila.gui.widgets.cards import Dot
from kafila.gui.widgets.elided import Elided
from kafila.gui.widgets.meters import ShareBar

Names = Mapping[MemberId, Machine]


def name_of(names: Names, member: MemberId) -> str:
    """What a computer is called."""
    machine = names.get(member)
    return machine.name if machine else member[:4]


class ShareLine(QFrame):
    """One computer's part: name, parts, how full it gets; red where it is too small for it.

    `moved` with 1 or -1 when a person wants it to hold a part more or fewer.
    """

    moved = Signal(int)

    def __init__(self, theme: Theme, *, roomy: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._dot = Dot(theme, "text_muted")
        self._name = Elided(theme, "", Role.SMALL)
        self.parts = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._room = Text(theme, "", Role.CAPTION, Tone.MUTED)
        self._bar = ShareBar(theme, 8 if roomy else 6)
        self.fewer = IconButton(theme, Icon.MINUS, "", Kind.PLAIN, Size.SMALL)
        self.more = IconButton(theme, Icon.PLUS, "", Kind.PLAIN, Size.SMALL)
        self.fewer.clicked.connect(lambda: self.moved.emit(-1))
        self.more.clicked.connect(lambda: self.moved.emit(1))
        first = row(self._dot, self._name, self.fewer, self.parts, self.more)
        first.setStretch(1, 1)
        self.parts.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._room.setMinimumWidth(theme.px(84))
        self._room.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        second = row(self._bar, self._room, spacing=12)
        second.setStretch(0, 1)
        second.setContentsMargins(theme.px(18), 0, 0, 0)
        lines = QVBoxLayout(self)
        side = theme.px(10 if roomy else 0)
        lines.setContentsMargins(side, theme.px(6 if roomy else 0), side, theme.px(6 if roomy else 0))
        lines.setSpacing(theme.px(4) if roomy else 0)
        lines.addLayout(first)
        lines.addLayout(second)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.offer(fewer=None, more=None)

    def show_share(self, name: str, share: Share, parts: int) -> None:
        """Change what it shows; `parts` may be ahead of what is planned."""
        colour = self._theme.series_of(share.member).colour
        self._dot.set_colour(colour)
        self._name.set_text(name)
        self.parts.set_text(self.tr("%n part(s)", "", parts))
        room, need = share.room_bytes, share.need_bytes
        short = room is not None and need > room
        self._say_room(need, room)
        if room is None:
            self._bar.show_share(1.0, colour=colour)
        elif short:
            has = room / max(need, 1)
            self._bar.show_share(1.0, colour=colour, wide=has, over=1 - has)
        else:
            self._bar.show_share(need / room if room else 0.0, colour=colour)
        if self.property("notice") != ("lost" if short else None):
            self.setProperty("notice", "lost" if short else None)
            restyle(self)
        self.setAccessibleName(f"{name}: {self.parts.text()}, {self._room.text()}")

    def _say_room(self, need: int, room: int | None) -> None:
        self._room.set_tone(Tone.MUTED if room is None or need <= room else Tone.LOST)
        if room is None:
            self._room.set_text(numbers.size(need))
        elif need > room:
            words = self.tr("needs {needs}, has {has}")
            self._room.set_text(words.format(needs=numbers.size(need, up=True), has=numbers.size(room)))
        else:
            self._room.set_text(numbers.size_of(need, room))

    def offer(self, *, fewer: str | None, more: str | None) -> None:
        """Let a person move parts, by buttons of these names. None: not here; empty: not now."""
        for button, name in ((self.fewer, fewer), (self.more, more)):
            button.setVisible(name is not None)
            button.setEnabled(bool(name))
            if name:
                button.set_name(name)
        self.parts.setMinimumWidth(0 if fewer is None else self._theme.px(62))


class ShareList(QWidget):
    """The lines of a division."""

    moved = Signal(int, int)

    def __init__(self, theme: Theme, *, roomy: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._roomy = roomy
        self.lines: list[ShareLine] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(4))

    def show_shares(self, shares: Sequence[Share], names: Names, parts: Sequence[int] = ()) -> None:
        """Show a division, with other counts than its own where some are given."""
        while len(self.lines) < len(shares):
            self._add(len(self.lines))
        for place, line in enumerate(self.lines):
            line.setVisible(place < len(shares))
            if place < len(shares):
                share = shares[place]
                line.show_share(name_of(names, share.member), share, parts[place] if parts else share.blocks)

    def _add(self, place: int) -> None:
        line = ShareLine(self._theme, roomy=self._roomy)
        line.moved.connect(partial(self.moved.emit, place))
        self.lines.append(line)
        self._layout.addWidget(line)
