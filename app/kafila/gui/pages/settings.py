"""What a person can set: what this computer is called, how the window looks."""

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLineEdit, QVBoxLayout, QWidget

from kafila import __version__
from kafila.domain.commands import MeetAt, Rename
from kafila.domain.snapshot import Snapshot
from kafila.gui import numbers
from kafila.gui.pages.frame import Send
from kafila.gui.pages.sided import SidedPage
from kafila.gui.theme import Icon, Looks, Mode, Role, Theme
from kafila.gui.widgets import Text, Tone
from kafila.gui.widgets.choices import Segments, Switch
from kafila.gui.widgets.focus import CORNER
from kafila.gui.widgets.layouts import Columns, stack
from kafila.gui.widgets.notice import Notice, NoticeKind

MODES = (Mode.SYSTEM, Mode.LIGHT, Mode.DARK)
TEXT_SIZES = (100, 125, 150, 175, 200)


class Setting(QWidget):
    """One line of a settings card: what it is, and the control at its end."""

    def __init__(self, theme: Theme, name: str, second: str, control: QWidget) -> None:
        super().__init__()
        self.second = Text(theme, second, Role.SMALL, Tone.MUTED, wrap=True)
        self.second.setVisible(bool(second))
        words = stack(Text(theme, name, weight=500), self.second, spacing=0)
        line = Columns(theme, 520, gap=16, upright=Qt.AlignmentFlag.AlignVCenter)
        line.add(words, 1)
        line.add(control, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(20), theme.px(14), theme.px(20), theme.px(14))
        layout.addWidget(line)


def _card(*settings: QWidget) -> QFrame:
    card = QFrame()
    card.setProperty("card", "plain")
    layout = QVBoxLayout(card)
    layout.setContentsMargins(1, 1, 1, 1)
    layout.setSpacing(0)
    for place, setting in enumerate(settings):
        if place:
            line = QFrame()
            line.setProperty("surface", "line")
            line.setFixedHeight(1)
            layout.addWidget(line)
        layout.addWidget(setting)
    return card


class SettingsPage(SidedPage):
    """Changes are kept at once. `looks_chosen` with the new `Looks`."""

    looks_chosen = Signal(object)

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme)
        self.set_title(self.tr("Settings"))
        self.send = send
        self._named = ("", "")
        self.machine = self._name_field(self.tr("Name of this computer"))
        self.owner = self._name_field(self.tr("Your name"))
        self.room = Text(theme, "", weight=600)
        self.notice = Notice(theme, NoticeKind.ACCENT)
        self.notice.hide()
        self.system = Text(theme, "", Role.SMALL, Tone.MUTED)
        self.add_topic(
            Icon.LAPTOP,
            self.tr("This computer"),
            stack(
                self._heading(self.tr("This computer"), self.tr("Changes are kept at once.")),
                _card(
                    Setting(theme, self.tr("Name"), self.tr("What others in your group see"), self.machine),
                    Setting(theme, self.tr("Your name"), self.tr("So that they know whose computer it is"), self.owner),
                    Setting(
                        theme, self.tr("Room Kafila may use"),
                        self.tr("The rest stays for your own programs. Kafila never takes it all: "
                                "a full computer stutters for everyone."),
                        self.room,
                    ),
                    Setting(theme, self.tr("System"), "", self.system),
                ),
                self.notice,
                spacing=16,
            ),
        )  # fmt: skip
        self._add_meeting()
        self._add_look()
        self._add_about()

    def _heading(self, title: str, sentence: str) -> QWidget:
        second = Text(self.theme, sentence, tone=Tone.MUTED, wrap=True)
        return stack(Text(self.theme, title, Role.TITLE, wrap=True), second, spacing=4)

    def _name_field(self, name: str) -> QLineEdit:
        field = QLineEdit()
        field.setProperty(CORNER, 11)
        field.setAccessibleName(name)
        field.setMaxLength(40)
        field.setMinimumWidth(self.theme.px(240))
        field.editingFinished.connect(self._rename)
        return field

    def _add_meeting(self) -> None:
        theme = self.theme
        self._met_at = ""
        self.rendezvous = QLineEdit()
        self.rendezvous.setProperty(CORNER, 11)
        self.rendezvous.setAccessibleName(self.tr("Rendezvous of the group"))
        self.rendezvous.setPlaceholderText(self.tr("none"))
        self.rendezvous.setMaxLength(300)
        self.rendezvous.setMinimumWidth(theme.px(280))
        self.rendezvous.editingFinished.connect(self._meet)
        self.rendezvous_problem = Notice(theme, NoticeKind.LOST)
        self.rendezvous_problem.hide()
        self.add_topic(
            Icon.GLOBE,
            self.tr("Meeting"),
            stack(
                self._heading(
                    self.tr("Meeting"),
                    self.tr("On one network Kafila needs nothing here: computers find each other."),
                ),
                _card(
                    Setting(
                        theme, self.tr("Rendezvous of the group"),
                        self.tr("Where computers on different networks find each other. Whoever runs it, with "
                                "“kafila rendezvous”, gives you its address. It cannot read what is said."),
                        self.rendezvous,
                    ),
                ),
                self.rendezvous_problem,
                spacing=16,
            ),
        )  # fmt: skip

    def _add_look(self) -> None:
        theme, looks = self.theme, self.theme.looks
        self.mode = Segments(
            theme, self.tr("Colours"), (self.tr("As my system"), self.tr("Light"), self.tr("Dark")),
            MODES.index(looks.mode),
        )  # fmt: skip
        sizes = tuple(self.tr("{number} %").format(number=size) for size in TEXT_SIZES)
        near = min(TEXT_SIZES, key=lambda size: abs(size - looks.text_percent))
        self.text_size = Segments(theme, self.tr("Text size"), sizes, TEXT_SIZES.index(near))
        self.movement = Switch(theme, self.tr("Movement"))
        self.movement.setChecked(not looks.still)
        self.mode.chosen.connect(self._choose_mode)
        self.text_size.chosen.connect(self._choose_size)
        self.movement.toggled.connect(self._choose_movement)
        self.add_topic(
            Icon.PALETTE,
            self.tr("Look"),
            stack(
                self._heading(self.tr("Look"), self.tr("Changes are kept at once.")),
                _card(
                    Setting(theme, self.tr("Colours"), "", self.mode),
                    Setting(theme, self.tr("Text size"), self.tr("Everything grows with it"), self.text_size),
                    Setting(
                        theme, self.tr("Movement"),
                        self.tr("Off: nothing moves, values change in place. Saves a little power too."),
                        self.movement,
                    ),
                ),
                spacing=16,
            ),
        )  # fmt: skip

    def _add_about(self) -> None:
        words = self.tr("Kafila {version}").format(version=__version__)
        parts = self.tr(
            "Free software under the Apache licence 2.0. The window is set in Inter and Noto (SIL Open Font "
            "License) and drawn with lucide icons (ISC licence). Qt is used under the LGPL version 3."
        )
        self.add_topic(
            Icon.INFO,
            self.tr("About"),
            stack(self._heading(words, ""), Text(self.theme, parts, tone=Tone.MUTED, wrap=True), spacing=12),
        )

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show what this computer is called, unless somebody is typing it."""
        me = snapshot.me
        self._named = (me.machine.name, me.machine.owner)
        for field, value in ((self.machine, me.machine.name), (self.owner, me.machine.owner)):
            if not field.hasFocus() and field.text() != value:
                field.setText(value)
        if not self.rendezvous.hasFocus() and me.rendezvous_problem is None and self.rendezvous.text() != me.rendezvous:
            self.rendezvous.setText(me.rendezvous)
        self._met_at = me.rendezvous
        self.rendezvous_problem.setVisible(me.rendezvous_problem is not None)
        if me.rendezvous_problem is not None:
            self.rendezvous_problem.say_problem(me.rendezvous_problem)
        self.room.set_text(numbers.size(me.room_bytes) if me.room_bytes else self.tr("not known yet"))
        self.system.set_text(me.machine.system)
        self.notice.setVisible(bool(me.notices))
        if me.notices:
            self.notice.say_problem(me.notices[0])

    def _rename(self) -> None:
        named = (self.machine.text().strip(), self.owner.text().strip())
        if named[0] and named != self._named:
            self._named = named
            self.send(Rename(machine=named[0], owner=named[1]))

    def _meet(self) -> None:
        wanted = self.rendezvous.text().strip()
        if wanted != self._met_at or not self.rendezvous_problem.isHidden():
            self.send(MeetAt(rendezvous=wanted))

    def _choose(self, looks: Looks) -> None:
        self.looks_chosen.emit(looks)

    def _choose_mode(self, place: int) -> None:
        self._choose(replace(self.theme.looks, mode=MODES[place]))

    def _choose_size(self, place: int) -> None:
        self._choose(replace(self.theme.looks, text_percent=TEXT_SIZES[place]))

    def _choose_movement(self, on: bool) -> None:  # noqa: FBT001 - Qt gives it by position
        self._choose(replace(self.theme.looks, still=not on))
