"""What stays one click away: a link that opens and closes what is below it."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets.buttons import Button, Kind, Size
from kafila.gui.widgets.text import Text, Tone


class Details(QWidget):
    """A closed heading; opened, it shows `content`."""

    def __init__(self, theme: Theme, name: str, content: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self._content = content
        self.heading = Button(theme, name, Kind.LINK, Size.SMALL, Icon.CHEVRON_RIGHT)
        self.heading.setCheckable(True)
        self.heading.setProperty("flush", "true")
        self.heading.toggled.connect(self._toggled)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(8))
        layout.addWidget(self.heading)
        layout.addWidget(content)
        content.hide()
        self._toggled(opened=False)

    def _toggled(self, opened: bool) -> None:  # noqa: FBT001 - Qt gives it by position
        self._content.setVisible(opened)
        self.heading.set_icon(Icon.CHEVRON_DOWN if opened else Icon.CHEVRON_RIGHT)


class Facts(QWidget):
    """Names and values below one another."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[tuple[str, str], ...] = ()
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(theme.px(4), 0, 0, 0)
        self._layout.setSpacing(theme.px(4))

    def show_facts(self, facts: tuple[tuple[str, str], ...]) -> None:
        """Show these pairs."""
        if facts == self._shown:
            return
        self._shown = facts
        while (item := self._layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for name, value in facts:
            line = Text(self._theme, "", Role.SMALL, Tone.MUTED, wrap=True)
            line.set_text(f"{name}: {value}" if name else value)
            self._layout.addWidget(line)
