"""The moment before the engine has said anything."""

from PySide6.QtWidgets import QWidget

from kafila.domain.snapshot import Snapshot
from kafila.gui.pages.frame import TEXT_MOST, Send
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Text, Tone, column, row
from kafila.gui.widgets.layouts import Centred, Scroll, stack
from kafila.gui.widgets.lights import MovingLights


class WakingPage(QWidget):
    """Three lights, and what is being waited for."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__()
        self.send = send
        lights = QWidget()
        lights.setLayout(row(MovingLights(theme), 1))
        title = Text(theme, self.tr("Kafila is getting ready"), Role.TITLE, wrap=True)
        sentence = Text(theme, self.tr("It looks at what this computer can do."), Role.LEAD, Tone.MUTED, wrap=True)
        content = stack(lights, title, sentence, spacing=8)
        self.setLayout(column(Scroll(Centred(theme, content, TEXT_MOST, top=180))))

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Nothing here depends on a snapshot."""
