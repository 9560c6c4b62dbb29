"""What a paused session says under its ring: who is away, how long we wait, what happens then."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.snapshot import Serving
from kafila.gui.serving import figures
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Card, Line, Text, Tile, Tone
from kafila.gui.widgets.meters import ShareBar

GRACE_S = 60.0
"""How long a computer is waited for; longer where the engine says so."""


class ActionCard(Card):
    """Shown in the place of the graphs while a computer is away."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, margin=20, spacing=14, kind="lost")
        self._own = theme
        self.title = Text(theme, "", Role.SUBHEADING)
        self.words = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self.left = Text(theme, "", Role.SMALL, weight=600)
        self.bar = ShareBar(theme)
        self._waiting = Text(theme, self.tr("Waiting for it"), Role.SMALL, Tone.MUTED)
        self._wait = QWidget()
        self.then = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._line = Line()
        px = theme.px
        lines = QVBoxLayout()
        lines.setSpacing(px(4))
        lines.addWidget(self.title)
        lines.addWidget(self.words)
        head = QHBoxLayout()
        head.setSpacing(px(14))
        tile = Tile(theme, Icon.UNPLUG, "lost", "lost_soft")
        head.addWidget(tile, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(lines, 1)
        wait = QHBoxLayout(self._wait)
        wait.setContentsMargins(0, 0, 0, 0)
        wait.setSpacing(px(10))
        wait.addWidget(self._waiting)
        wait.addWidget(self.bar, 1)
        wait.addWidget(self.left)
        self.body.addLayout(head)
        self.body.addWidget(self._wait)
        self.body.addWidget(self._line)
        self.body.addWidget(self.then)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    def show_paused(self, serving: Serving) -> None:
        """Say what a paused session waits for."""
        paused = serving.paused
        if paused is None:
            return
        away = [one for one in serving.ring if one.away_s is not None]
        self.title.set_text(paused.title)
        self.words.set_text(" ".join(part for part in (self._holds(serving), paused.advice) if part))
        left = serving.grace_left_s
        self._wait.setVisible(left is not None)
        self._line.setVisible(left is not None)
        self.then.setVisible(left is not None)
        if left is not None:
            waited = max((one.away_s or 0.0 for one in away), default=0.0)
            whole = max(GRACE_S, left + waited) if waited else GRACE_S
            colour = self._own.colours.lantern
            self.bar.show_share(min(1.0, max(0.0, 1 - left / whole)), colour=colour)
            self.left.set_text(self.tr("{time} left").format(time=figures.clock(left)))
            self.bar.setAccessibleName(self.left.text())
            self.then.set_text(self._afterwards(serving))
        self.setAccessibleName(f"{paused.title}. {self.words.words()}")

    def _holds(self, serving: Serving) -> str:
        away = [one for one in serving.ring if one.away_s is not None]
        if not away:
            return ""
        total = max(one.end for one in serving.ring)
        held = sum(one.end - one.first for one in away)
        if len(away) == 1:
            words = self.tr("It holds {held} of {total} parts, so the model waits.")
        else:
            words = self.tr("They hold {held} of {total} parts, so the model waits.")
        return words.format(held=figures.number(held, 0), total=figures.number(total, 0))

    def _afterwards(self, serving: Serving) -> str:
        if serving.is_host:
            return self.tr("If it does not come back in time, this session ends. Your conversations stay here.")
        return self.tr(
            "If it does not come back in time, the host’s session ends. Your conversations stay on this computer."
        )
