"""The room where the group gathers: the code, who is in, who asks, and the plan.

The host sees all of it; members see the same without the code.
"""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from kafila.domain.capability import Capability
from kafila.domain.commands import Admit, Decline, LeaveSession, NewCode, Remove, StartRing, TrustKnown
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.domain.reach import reach_in_words
from kafila.domain.snapshot import Member, Newcomer, Reach, Snapshot, WaitingRoom
from kafila.gui import numbers
from kafila.gui.machines import icon_of, path_pill, second_line, speed_word
from kafila.gui.pages.draft import length_of
from kafila.gui.pages.frame import Page, Send
from kafila.gui.pages.plan_card import PlanCard
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import (
    Button,
    Card,
    IconLabel,
    Kind,
    Pill,
    PillKind,
    Size,
    Text,
    Tone,
    column,
    fill,
    row,
)
from kafila.gui.widgets.choices import Check
from kafila.gui.widgets.code_shown import CodeShown, QrCode
from kafila.gui.widgets.layouts import Columns, flow, stack
from kafila.gui.widgets.notice import Asking, Notice, NoticeKind
from kafila.gui.widgets.rows import Row, RowList

_WAYS_IN = (
    (NoticeKind.OK, Icon.GLOBE),
    (NoticeKind.ACCENT, Icon.INFO),
    (NoticeKind.RELAYED, Icon.WIFI),
)
PILL_WIDTH = 96
MENU_WIDTH = 30
"""What the menus of the other rows take."""


def _kind_of(room: WaitingRoom) -> NoticeKind | None:
    """How the way in is spoken of; None where the pill says all there is to say."""
    match room.reach:
        case Reach.ANYWHERE:
            return NoticeKind.OK
        case Reach.NEEDS_RENDEZVOUS:
            return NoticeKind.RELAYED
        case Reach.PROBABLY_ANYWHERE:
            return NoticeKind.ACCENT
        case _:
            return NoticeKind.ACCENT if room.no_port else None


class MemberRow(Row):
    """A computer that is in."""

    def __init__(self, theme: Theme, member: Member) -> None:
        self._pill: QWidget | None = None
        super().__init__(theme, icon_of(member.machine), indent_line=True)
        self.room = Text(theme, "", weight=500)
        self.speed = Text(theme, "", Role.CAPTION, Tone.MUTED)
        self.pill = Pill(theme, "", PillKind.PLAIN)
        figures = column(1, self.room, self.speed, 1, spacing=0)
        for text in (self.room, self.speed):
            text.setAlignment(text.alignment().AlignRight | text.alignment().AlignVCenter)
        holder = QWidget()
        holder.setLayout(figures)
        self.end.addWidget(holder)
        self._pill = QWidget()
        self._pill.setLayout(row(1, self.pill))
        self.end.addWidget(self._pill)
        self._restyle()

    def _restyle(self) -> None:
        super()._restyle()
        if self._pill is not None:
            self._pill.setMinimumWidth(self._theme.px(0 if self.upright else PILL_WIDTH))

    def show_member(self, member: Member, mine: Capability | None, me: MemberId, *, leads: bool) -> None:
        """Change what it shows."""
        self.title.set_text(member.machine.name)
        self.second.set_text(second_line(member, mine, me))
        capability = member.capability
        room = capability.room_bytes if capability else None
        self.room.set_text(self.tr("{size} room").format(size=numbers.size(room)) if room else "")
        self.speed.set_text(speed_word(capability) if capability else self.tr("Being measured"))
        if leads:
            self.pill.show_as(self.tr("Leads"), PillKind.LEADS, Icon.LANTERN)
        elif member.member == me:
            self.pill.show_as(self.tr("You"), PillKind.PLAIN)
        else:
            self.pill.show_as(*path_pill(member.path))
        self.setAccessibleName(
            ", ".join(
                part for part in (member.machine.name, self.second.words(), self.room.text(), self.pill.text()) if part
            )
        )


class NewcomerRow(Row):
    """A computer that asks to be let in."""

    def __init__(self, theme: Theme, newcomer: Newcomer, send: Send) -> None:
        super().__init__(theme, icon_of(newcomer.machine))
        machine = newcomer.machine
        self.ask()
        self.title.set_text(self.tr("{machine} asks to join").format(machine=machine.name))
        phrase = " ".join(newcomer.phrase)
        words = (
            self.tr("{owner} · check the words with {owner}: <b>{phrase}</b>")
            if machine.owner
            else self.tr("Check the words with its owner: <b>{phrase}</b>")
        )
        self.second.set_html(fill(words, owner=machine.owner, phrase=phrase))
        self.let_in = Button(theme, self.tr("Let in"), Kind.PRIMARY, Size.SMALL)
        self.not_now = Button(theme, self.tr("Not now"), Kind.PLAIN, Size.SMALL)
        self.let_in.clicked.connect(lambda: send(Admit(member=newcomer.member)))
        self.not_now.clicked.connect(lambda: send(Decline(member=newcomer.member)))
        if newcomer.known:
            self.end.addWidget(Pill(theme, self.tr("Was here before"), PillKind.PLAIN))
        self.end.addWidget(self.not_now)
        self.end.addWidget(self.let_in)
        self.setAccessibleName(f"{self.title.words()}. {self.second.words()}")


class CodeCard(Card):
    """The code to say, the link to send, and the same as a QR code."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, margin=20)
        self._link = ""
        self._group = ""
        self.qr = QrCode(theme)
        self.lead = Text(theme, "", Role.BODY, Tone.MUTED, wrap=True)
        self.code = CodeShown(theme)
        self.copy_code = Button(theme, self.tr("Copy code"), Kind.PRIMARY, Size.SMALL, Icon.COPY)
        self.copy_link = Button(theme, self.tr("Copy invitation"), Kind.PLAIN, Size.SMALL, Icon.LINK)
        self.new_code = Button(theme, self.tr("New code"), Kind.QUIET, Size.SMALL, Icon.REFRESH_CW)
        self.copy_code.clicked.connect(self._copy_code)
        self.copy_link.clicked.connect(self._copy_link)
        self.new_code.clicked.connect(lambda: send(NewCode()))
        buttons = flow(theme, self.copy_code, self.copy_link, self.new_code)
        columns = Columns(theme, 440, gap=18, upright=Qt.AlignmentFlag.AlignVCenter)
        columns.add(self.qr, 0)
        columns.add(stack(self.lead, self.code, 6, buttons, spacing=theme.px(4)), 1)
        self.body.addWidget(columns)

    def show_room(self, room: WaitingRoom) -> None:
        """Show the room's code and link."""
        self._group, self._link = room.group, room.link or ""
        spoken = room.code is not None
        self.code.setVisible(spoken)
        self.code.set_code(room.code or "")
        self.qr.set_link(self._link)
        self.copy_link.set_kind(Kind.PLAIN if spoken else Kind.PRIMARY)
        for_people = room.starts_at is None
        self.copy_code.setVisible(spoken and for_people)
        self.copy_link.setVisible(bool(self._link) and for_people)
        self.qr.setVisible(bool(self._link) and for_people)
        self.new_code.setVisible(for_people)
        if not for_people:
            self.lead.set_text(self.tr("Kafila starts more of itself on this computer; they join with this code"))
        elif spoken and room.reach in (Reach.PROBABLY_ANYWHERE, Reach.ANYWHERE):
            self.lead.set_text(self.tr("Send people here the code, people elsewhere the invitation"))
        elif spoken:
            self.lead.set_text(self.tr("Send this code to the people you want here"))
        else:
            self.lead.set_text(
                self.tr("Send the invitation to the people you want here. It carries the way to this computer.")
            )

    def invitation(self) -> str:
        """What is sent to people: one sentence and the link."""
        words = self.tr("Join “{group}” in Kafila: open Kafila, press Join and paste this. {link}")
        return words.format(group=self._group, link=self._link)

    def copy(self) -> None:
        """Take along what invites people: the code, or the link where only that works."""
        if self.code.code:
            self._copy_code()
        else:
            self._copy_link()

    def _copy_code(self) -> None:
        QGuiApplication.clipboard().setText(self.code.code)
        self.copy_code.flash(self.tr("Copied"))

    def _copy_link(self) -> None:
        QGuiApplication.clipboard().setText(self.invitation())
        self.copy_link.flash(self.tr("Copied"))


class WaitingRoomPage(Page):
    """People, plan, and Start."""

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, steps=True, back=False)
        if self.steps is not None:
            self.steps.set_step(2)
        self._room: WaitingRoom | None = None
        self.reach = Pill(theme, "", PillKind.OUTLINE)
        self.head.add_end(self.reach, spare=True)
        self.problem = Notice(theme, NoticeKind.LOST)
        self.code_card = CodeCard(theme, send)
        self.way_in = {kind: Notice(theme, kind, icon) for kind, icon in _WAYS_IN}
        self.waiting = Notice(theme, NoticeKind.LANTERN, Icon.HOURGLASS)
        self._count = Text(theme, "", Role.BODY, Tone.MUTED)
        self.trust = Check(theme, self.tr("Let in computers I trusted before"))
        self.trust.clicked.connect(self._trust)
        self.list: RowList[Row] = RowList()
        hint = Text(theme, self.tr("People can arrive until you press Start. The menu on a row removes someone."),
                    Role.SMALL, Tone.MUTED, wrap=True)  # fmt: skip
        self._hint = QWidget()
        line = row(IconLabel(theme, Icon.CIRCLE_DASHED), hint, spacing=10)
        line.setStretch(1, 1)
        self._hint.setLayout(line)
        self.plan = PlanCard(theme, send)
        self.plan.remove_wanted.connect(self._ask_remove)
        self.plan.invite_wanted.connect(self.code_card.copy)
        title = QWidget()
        title.setLayout(row(Text(theme, self.tr("In the group"), Role.SUBHEADING), self._count, 1))
        heading = Columns(theme, 440, gap=8)
        heading.add(title, 1)
        heading.add(self.trust, 0)
        left = stack(
            self.problem,
            self.code_card,
            *self.way_in.values(),
            self.waiting,
            8,
            heading,
            self.list,
            self._hint,
            spacing=12,
        )
        columns = Columns(theme, 880, gap=24)
        columns.add(left, 1)
        columns.add(self.plan, 0, 420)
        self.set_content(columns)
        self.leave = Button(theme, self.tr("End session"), Kind.DANGER)
        self.leave.clicked.connect(self._leave)
        self.start = Button(theme, self.tr("Start"), Kind.PRIMARY, Size.LARGE)
        self.start.clicked.connect(lambda: send(StartRing()))
        self.foot.add_end(self.leave)
        self.foot.add_end(self.start)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show the room as it is."""
        room = snapshot.session
        if not isinstance(room, WaitingRoom):
            return
        self._room = room
        host = room.is_host
        self.head_for(steps=host, heading=room.group)
        self.code_card.setVisible(host)
        self.waiting.setVisible(not host)
        if host:
            self.code_card.show_room(room)
        else:
            self._show_waiting(room)
        self.trust.setVisible(host and room.starts_at is None)
        self.trust.setChecked(room.trust_known)
        self._hint.setVisible(host and room.starts_at is None)
        self.problem.setVisible(room.problem is not None)
        if room.problem is not None:
            self.problem.say_problem(room.problem)
        self._count.set_text(numbers.whole(len(room.members)))
        self._show_people(room, snapshot.me.member)
        self.plan.show_room(room)
        self._show_reach(room)
        self._show_foot(room)

    def _trust(self, on: bool) -> None:  # noqa: FBT001 - Qt gives it by position
        self.send(TrustKnown(on=on))

    def _show_waiting(self, room: WaitingRoom) -> None:
        host = next((member.machine for member in room.members if member.is_host), None)
        who = (host.owner or host.name) if host else self.tr("The host")
        words = self.tr("<b>You are in.</b> {who} starts when everyone is here.")
        self.waiting.say(fill(words, who=who))

    def _show_people(self, room: WaitingRoom, me: MemberId) -> None:
        role = "host" if room.is_host else "guest"
        members = {f"{role}:{member.member}": member for member in room.members}
        newcomers = {f"ask:{guest.member}:{' '.join(guest.phrase)}": guest for guest in room.newcomers}

        def make(key: str) -> Row:
            if key in newcomers:
                return NewcomerRow(self.theme, newcomers[key], self.send)
            made = MemberRow(self.theme, members[key])
            if room.is_host and members[key].member != me:
                words = self.tr("More about {machine}").format(machine=members[key].machine.name)
                made.add_menu(words, ((self.tr("Remove…"), lambda key=key: self._ask_remove(members[key].member)),))
            elif room.is_host:
                instead = QWidget()
                instead.setFixedWidth(self.theme.px(MENU_WIDTH))
                made.end.addWidget(instead)
            return made

        self.list.show_keys((*members, *newcomers), make)
        mine = next((member.capability for member in room.members if member.member == me), None)
        head = room.plan.head if isinstance(room.plan, Plan) else None
        for key, member in members.items():
            line = self.list.row(key)
            if isinstance(line, MemberRow):
                line.show_member(member, mine, me, leads=member.member == head)

    def _show_reach(self, room: WaitingRoom) -> None:
        words, icon = {
            Reach.THIS_COMPUTER: (self.tr("Only on this computer"), Icon.LAPTOP),
            Reach.SAME_NETWORK: (self.tr("Open to people on this network"), Icon.WIFI),
            Reach.PROBABLY_ANYWHERE: (self.tr("Probably open to people elsewhere"), Icon.GLOBE),
            Reach.ANYWHERE: (self.tr("Open to people anywhere"), Icon.GLOBE),
            Reach.NEEDS_RENDEZVOUS: (self.tr("Open to people on this network"), Icon.WIFI),
            Reach.RENDEZVOUS: (self.tr("Open to people with the code"), Icon.GLOBE),
        }[room.reach]
        self.reach.show_as(words, PillKind.OUTLINE, icon)
        told = reach_in_words(room.reach, room.no_port) if room.is_host else None
        for kind, notice in self.way_in.items():
            notice.setVisible(told is not None and kind is _kind_of(room))
            if told is not None:
                notice.say_problem(told)

    def _show_foot(self, room: WaitingRoom) -> None:
        count = len(room.members)
        measured = all(member.capability is not None for member in room.members)
        ready = isinstance(room.plan, Plan) and room.plan.figures.fits and measured
        self.start.setVisible(room.is_host and room.starts_at is None)
        self.start.setEnabled(ready)
        self.start.set_words(self.tr("Start with %n computer(s)", "", count))
        self.leave.set_words(self.tr("End session") if room.is_host else self.tr("Leave"))
        if room.starts_at is not None:
            first = self.tr("Starts by itself, as soon as all are here and measured")
        elif not measured:
            first = self.tr("A computer is being measured")
        elif ready:
            first = self.tr("Ready with %n computer(s)", "", count)
        elif room.plan is None:
            first = self.tr("The plan is being made")
        elif self.plan.refused_by_hand:
            first = self.tr("Divided like this, it does not fit")
        else:
            first = self.tr("The model does not fit yet")
        length = {
            "short": self.tr("short conversations"),
            "long": self.tr("long conversations"),
            "very-long": self.tr("very long conversations"),
        }[length_of(room.context).key]
        people = self.tr("%n [person|people] at once", "", room.concurrency)
        self.summarise(first, " · ".join((room.model, length, people)))

    def _ask_remove(self, who: str) -> None:
        member = MemberId(who)
        room = self._room
        machine = next((entry.machine for entry in room.members if entry.member == member), None) if room else None
        if machine is None:
            return
        asking = Asking(
            self.theme,
            self,
            self.tr("Remove {machine}?").format(machine=machine.name),
            self.tr("It leaves the group now. It can ask again with the code."),
            stay=self.tr("Keep it"),
            go=self.tr("Remove"),
        )
        asking.accepted.connect(lambda: self.send(Remove(member=member)))
        asking.open()

    def _leave(self) -> None:
        room = self._room
        if room is None or not room.is_host or len(room.members) < 2:
            self.send(LeaveSession())
            return
        others = ", ".join(member.machine.owner or member.machine.name for member in room.members if not member.is_host)
        asking = Asking(
            self.theme,
            self,
            self.tr("End the session for everyone?"),
            self.tr("{names} are in. They are told that it ended.").format(names=others),
            stay=self.tr("Stay"),
            go=self.tr("End for everyone"),
        )
        asking.accepted.connect(lambda: self.send(LeaveSession()))
        asking.open()
