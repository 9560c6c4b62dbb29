"""Why it does not fit yet: who is short by how much, the nearest division, and what would help."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from kafila.domain.plan import Refusal
from kafila.domain.snapshot import Member, WaitingRoom
from kafila.gui import numbers
from kafila.gui.pages.shares import Names, ShareList, name_of
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, Kind, Line, Size, Text, Tile, Tone, row
from kafila.gui.widgets.layouts import flow, stack

Act = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change that would make it fit, and the button that makes it, where there is one."""

    icon: Icon
    title: str
    second: str = ""
    button: str = ""
    done: str = ""
    """What the button says for a moment afterwards."""
    act: Act | None = None


class RemedyRow(QWidget):
    """A picture, what to do, and a button."""

    def __init__(self, theme: Theme, remedy: Remedy) -> None:
        super().__init__()
        title = Text(theme, remedy.title, Role.SMALL, weight=600 if remedy.second else None, wrap=True)
        second = Text(theme, remedy.second, Role.SMALL, Tone.MUTED, wrap=True)
        second.setVisible(bool(remedy.second))
        words = stack(title, second, spacing=0)
        line = row(Tile(theme, remedy.icon), words, spacing=theme.px(12))
        line.setStretch(1, 1)
        self.button: Button | None = None
        if remedy.act is not None:
            self.button = Button(theme, remedy.button, Kind.PLAIN, Size.SMALL)
            self.button.clicked.connect(lambda: self._press(remedy))
            line.addWidget(self.button)
        self.setLayout(line)

    def _press(self, remedy: Remedy) -> None:
        if remedy.act is not None:
            remedy.act()
        if remedy.done and self.button is not None:
            self.button.flash(remedy.done)


class RefusalView(QWidget):
    """The refusal. What a host can do about it from here are signals.

    `remove_wanted` with a member, `invite_wanted`, `hand_wanted`, `plan_wanted` (Kafila's own).
    """

    remove_wanted = Signal(str)
    invite_wanted = Signal()
    hand_wanted = Signal()
    plan_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[object, ...] = ()
        self.title = Text(theme, "", Role.HEADING, wrap=True)
        self._sentence = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        self._heading = Text(theme, "", Role.SMALL, weight=600)
        self.shares = ShareList(theme, roomy=True)
        self._division = stack(self._heading, self.shares, spacing=theme.px(6))
        back = Button(theme, self.tr("Back to Kafila’s plan"), Kind.PRIMARY, Size.SMALL, Icon.ROTATE_CCW)
        back.clicked.connect(self.plan_wanted)
        again = Button(theme, self.tr("Move parts…"), Kind.PLAIN, Size.SMALL, Icon.SLIDERS_HORIZONTAL)
        again.clicked.connect(self.hand_wanted)
        self.back = back
        self._hand = flow(theme, back, again)
        self.rows: list[RemedyRow] = []
        self._helps: QWidget | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(theme.px(10))
        for part in (self.title, self._sentence, self._division, self._hand):
            self._layout.addWidget(part)

    def show_refusal(self, refusal: Refusal, room: WaitingRoom, names: Names, *, by_hand: bool) -> None:
        """Show who is short, and by how much."""
        missing = max(refusal.needs_bytes - refusal.has_bytes, 0)
        who = name_of(names, refusal.member) if refusal.member else self.tr("The group")
        title = self.tr("{who} is {size} short") if missing else self.tr("It does not fit yet")
        self.title.set_text(title.format(who=who, size=numbers.size(missing, up=True)))
        sentence = explain(refusal, room, by_hand=by_hand)
        self._sentence.set_text(sentence)
        self._sentence.setVisible(bool(sentence))
        self._division.setVisible(bool(refusal.shares))
        self._heading.set_text(self.tr("Your division") if by_hand else self.tr("The best division there is"))
        self.shares.show_shares(refusal.shares, names)
        self._hand.setVisible(by_hand and room.is_host)
        shown = (refusal, room.members, room.is_host, room.code, room.concurrency)
        if shown != self._shown:
            self._shown = shown
            self._show_help(refusal, room)

    def _show_help(self, refusal: Refusal, room: WaitingRoom) -> None:
        if self._helps is not None:
            self._helps.hide()
            self._layout.removeWidget(self._helps)
            self._helps.deleteLater()
        theme = self._theme
        self._helps = QWidget()
        lines = QVBoxLayout(self._helps)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(theme.px(10))
        here, anew = self.from_here(refusal, room), list_anew(refusal, room)
        if not here and not anew:
            here = tuple(Remedy(icon=Icon.LIGHTBULB, title=sentence) for sentence in refusal.help)
        self.rows = []
        for heading, remedies in (
            (self.tr("What would help"), here),
            (self.tr("Or end this session and host again with"), anew),
        ):
            if remedies:
                lines.addWidget(Line())
                lines.addWidget(Text(theme, heading, Role.SMALL, weight=600, wrap=True))
            for remedy in remedies:
                self.rows.append(RemedyRow(theme, remedy))
                lines.addWidget(self.rows[-1])
        self._layout.addWidget(self._helps)

    def from_here(self, refusal: Refusal, room: WaitingRoom) -> tuple[Remedy, ...]:
        """What can be done while everyone stays; the host gets buttons."""
        remedies = refusal.remedies
        short = next((member for member in room.members if member.member == refusal.member), None)
        found: list[Remedy] = []
        if remedies.new_member_bytes is not None:
            copy = self.tr("Copy code") if room.code else self.tr("Copy invitation")
            with_room = self.tr("With {size} of room or more")
            found.append(
                Remedy(
                    icon=Icon.USERS, title=self.tr("One more computer"),
                    second=with_room.format(size=numbers.size(remedies.new_member_bytes, up=True)),
                    button=copy, done=self.tr("Copied"), act=self.invite_wanted.emit if room.is_host else None,
                )
            )  # fmt: skip
        if short is not None and remedies.more_room_bytes is not None:
            found.append(self._close_programs(short, remedies.more_room_bytes, room))
        if short is not None and remedies.leave_out:
            title = self.tr("Go on without {machine}").format(machine=short.machine.name)
            act = _with(self.remove_wanted.emit, short.member) if room.is_host else None
            second = self.tr("The model fits on the others")
            found.append(Remedy(icon=Icon.USER, title=title, second=second, button=self.tr("Remove…"), act=act))
        return tuple(found)

    def _close_programs(self, short: Member, more_bytes: int, room: WaitingRoom) -> Remedy:
        machine, size = short.machine, numbers.size(more_bytes, up=True)
        words = self.tr("{machine} needs {size} more memory for {group}. Could you close some programs there?")
        request = words.format(machine=machine.name, size=size, group=room.group or self.tr("our group"))
        ask = self.tr("Ask {owner}").format(owner=machine.owner) if machine.owner else self.tr("Copy a request")
        mine = short.is_host or not room.is_host
        return Remedy(
            icon=Icon.MONITOR,
            title=self.tr("Close programs on {machine}").format(machine=machine.name),
            second=self.tr("{size} more room there is enough").format(size=size),
            button=ask,
            done=self.tr("Copied"),
            act=None if mine else _with(QGuiApplication.clipboard().setText, request),
        )


def _with(act: Callable[[str], None], argument: str) -> Act:
    return lambda: act(argument)


def explain(refusal: Refusal, room: WaitingRoom, *, by_hand: bool) -> str:
    """What is needed in all, and what there is; where that is not known, the planner's sentence."""
    share = next((share for share in refusal.shares if share.member == refusal.member), None)
    if by_hand or share is None or share.need_bytes != refusal.needs_bytes:
        return "" if by_hand else refusal.sentence
    rooms = [share.room_bytes for share in refusal.shares if share.room_bytes is not None]
    needs, has = sum(share.need_bytes for share in refusal.shares), sum(rooms)
    if len(rooms) < len(refusal.shares):
        return ""
    translate = QCoreApplication.translate
    words = translate("Refusal", "{model} and %n conversation(s) need {needs} in all.", "", room.concurrency)
    if needs > has:
        more = translate("Refusal", "{has} are here.")
    else:
        more = translate("Refusal", "There is so much room, but not for whole parts on each computer.")
    return f"{words} {more}".format(model=room.model, needs=numbers.size(needs, up=True), has=numbers.size(has))


def list_anew(refusal: Refusal, room: WaitingRoom) -> tuple[Remedy, ...]:
    """What is settled before there is a code, so that it takes another session."""
    remedies, translate = refusal.remedies, QCoreApplication.translate
    found: list[Remedy] = []
    if remedies.context is not None:
        words = numbers.words_at_most(remedies.context)
        title = translate("Refusal", "Shorter conversations")
        second = translate("Refusal", "Up to {words} words each").format(words=words)
        found.append(Remedy(icon=Icon.MESSAGE_CIRCLE, title=title, second=second))
    if remedies.concurrency is not None:
        title = translate("Refusal", "%n [person|people] at once", "", remedies.concurrency)
        second = translate("Refusal", "Not {people}").format(people=numbers.whole(room.concurrency))
        found.append(Remedy(icon=Icon.USERS, title=title, second=second))
    if remedies.size_percent is not None:
        title = translate("Refusal", "A smaller model")
        words = translate("Refusal", "This one would fit at {percent} % of its size, for example in fewer bits")
        second = words.format(percent=numbers.whole(remedies.size_percent))
        found.append(Remedy(icon=Icon.SPARKLES, title=title, second=second))
    return tuple(found)
