"""The first page: host, join, or try it on this computer."""

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPainterPath, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.commands import JoinSession, TryDemo
from kafila.domain.errors import Problem
from kafila.domain.snapshot import Ended, Idle, Snapshot, WaitingRoom
from kafila.gui import numbers
from kafila.gui.codes import Right, code_words, read_code
from kafila.gui.pages.frame import Send
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.theme.tokens import ColourName
from kafila.gui.widgets import (
    Button,
    Card,
    IconButton,
    Kind,
    Pill,
    PillKind,
    Size,
    Text,
    Tile,
    Tone,
    fill,
)
from kafila.gui.widgets.layouts import Centred, Columns, Scroll, stack
from kafila.gui.widgets.notice import Notice, NoticeKind
from kafila.gui.widgets.rows import Row, RowList

WIDTH = 840
CARAVAN = ((0.163, 2), (0.204, 2), (0.254, 2.2), (0.292, 2.2), (0.349, 2.4), (0.39, 2.5), (0.438, 2.6),
           (0.492, 2.8), (0.531, 2.8), (0.586, 3), (0.624, 3), (0.683, 3.2), (0.734, 3.2))  # fmt: skip
LEADER = 0.784
DUNE = 68
CARAVAN_FROM = 640
"""Lower windows have their content there."""


class StartPage(QWidget):
    """Two large choices, the code that was copied, and the ring of three to try."""

    host_wanted = Signal()
    join_wanted = Signal()
    session_wanted = Signal()

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__()
        self.theme = theme
        self.send = send
        self._own_codes: set[str] = set()
        self._dismissed: set[str] = set()
        self._copied: Right | None = None
        self._busy = False
        title = Text(theme, self.tr("Run a large model together"), Role.DISPLAY, wrap=True)
        self.ready = Pill(theme, self.tr("Getting ready"), PillKind.PLAIN)
        top = Columns(theme, 640, gap=16)
        top.add(title, 1)
        top.add(stack(10, self.ready, spacing=0), 0)
        lead = Text(
            theme,
            self.tr("Your computers share the work. What you write stays between the people in your group."),
            Role.LEAD,
            Tone.MUTED,
            wrap=True,
        )
        self.host_button = Button(theme, self.tr("Host a session"), Kind.PRIMARY, Size.LARGE)
        self.join_button = Button(theme, self.tr("Join with a code"), Kind.PLAIN, Size.LARGE)
        self.host_button.clicked.connect(self.host_wanted)
        self.join_button.clicked.connect(self.join_wanted)
        choices = Columns(theme, 560, gap=20)
        choices.add(
            self._choice(
                (Icon.LANTERN, "lantern_text", "lantern_soft"),
                self.tr("Host a session"),
                self.tr("Choose a model, send a code, let people in."),
                self.host_button,
            ),
            1,
        )
        choices.add(
            self._choice(
                (Icon.LOG_IN, "accent_text", "accent_soft"),
                self.tr("Join a session"),
                self.tr("Paste the code you were sent. The host lets you in."),
                self.join_button,
            ),
            1,
        )
        self.problem = Notice(theme, NoticeKind.LOST)
        self.notice = Notice(theme, NoticeKind.ACCENT)
        self.going_on = Notice(theme, NoticeKind.ACCENT, Icon.MESSAGE_CIRCLE)
        self.to_session = Button(theme, self.tr("Go to the session"), size=Size.SMALL)
        self.to_session.clicked.connect(self.session_wanted)
        self.going_on.add(self.to_session)
        self.copied = Notice(theme, NoticeKind.LANTERN)
        self.join_copied = Button(theme, self.tr("Join this session"), size=Size.SMALL)
        self.join_copied.clicked.connect(self._join_copied)
        self.dismiss = IconButton(theme, Icon.X, self.tr("Do not show this code"), size=Size.SMALL)
        self.dismiss.clicked.connect(self._dismiss)
        self.copied.add(self.join_copied)
        self.copied.add(self.dismiss)
        for hidden in (self.problem, self.notice, self.going_on, self.copied):
            hidden.hide()
        self.try_button = Button(theme, self.tr("Try it"), size=Size.SMALL)
        self.try_button.clicked.connect(lambda: self.send(TryDemo()))
        content = stack(
            top, lead, 20, choices, self.going_on, self.problem, self.copied, self.notice, 12,
            Text(theme, self.tr("New here?"), Role.SUBHEADING), self._try_list(),
        )  # fmt: skip
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(Scroll(Centred(theme, content, WIDTH, top=44, bottom=DUNE + 40)))
        QGuiApplication.clipboard().dataChanged.connect(self._look_at_clipboard)

    def _choice(self, look: tuple[Icon, ColourName, ColourName], title: str, sentence: str, button: Button) -> Card:
        card = Card(self.theme, margin=24, spacing=6)
        button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        card.body.addWidget(Tile(self.theme, *look, side=44))
        card.body.addSpacing(self.theme.px(10))
        card.body.addWidget(Text(self.theme, title, Role.HEADING, weight=600))
        card.body.addWidget(Text(self.theme, sentence, tone=Tone.MUTED, wrap=True))
        card.body.addSpacing(self.theme.px(12))
        card.body.addWidget(button)
        return card

    def _try_list(self) -> RowList[Row]:
        rows: RowList[Row] = RowList()

        def make(_key: str) -> Row:
            line = Row(self.theme, Icon.SPARKLES)
            line.title.set_text(self.tr("Try it on this computer"))
            line.second.set_text(self.tr("A small model in a ring of three, all on this machine. Nothing to download."))
            line.end.addWidget(self.try_button)
            return line

        rows.show_keys(("try",), make)
        return rows

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show this computer's readiness, and whether a session is going on."""
        me, session = snapshot.me, snapshot.session
        if me.room_bytes is None:
            self.ready.show_as(self.tr("Getting ready"), PillKind.PLAIN)
        else:
            words = self.tr("{machine} is ready · {room} of room")
            text = words.format(machine=me.machine.name, room=numbers.size(me.room_bytes))
            self.ready.show_as(text, PillKind.OK, dot=True)
        self.notice.setVisible(bool(me.notices))
        if me.notices:
            self.notice.say_problem(me.notices[0])
        if isinstance(session, WaitingRoom):
            self._own_codes |= {text for text in (session.code, session.link) if text}
        self._busy = not isinstance(session, Idle | Ended)
        group: str = getattr(session, "group", "")
        self.going_on.setVisible(self._busy)
        sentence = (
            self.tr("<b>You are in {group}.</b> Leave it before you open or join another session.")
            if group
            else self.tr("<b>You are in a session.</b> Leave it before you open or join another one.")
        )
        self.going_on.say(fill(sentence, group=group))
        for button in (self.host_button, self.join_button, self.try_button):
            button.setEnabled(not self._busy)
        self._show_copied()

    def show_problem(self, problem: Problem | None) -> None:
        """Say why what was tried here did not work."""
        self.problem.setVisible(problem is not None)
        if problem is not None:
            self.problem.say_problem(problem)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Look at what was copied meanwhile."""
        super().showEvent(event)
        self._look_at_clipboard()

    def _look_at_clipboard(self) -> None:
        if not self.isVisible():
            return
        reading = read_code(QGuiApplication.clipboard().text()[:4096], code_words())
        self._copied = reading if isinstance(reading, Right) else None
        self._show_copied()

    def _show_copied(self) -> None:
        copied = self._copied
        known = self._own_codes | self._dismissed
        spoken = copied.invitation.code.spoken() if copied else ""
        own = copied is not None and (copied.text() in known or spoken in known)
        self.copied.setVisible(copied is not None and not own and not self._busy)
        if copied is not None:
            self.copied.say(fill(self.tr("You copied a code: <b>{code}</b>"), code=spoken))

    def _join_copied(self) -> None:
        if self._copied is not None:
            self.send(JoinSession(code=self._copied.text()))

    def _dismiss(self) -> None:
        if self._copied is not None:
            self._dismissed.add(self._copied.text())
            self._show_copied()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002, N802
        """Draw the dune at the bottom, and the line of lights that travels on it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), self.theme.colour("bg"))
        if self.layoutDirection() is Qt.LayoutDirection.RightToLeft:
            painter.translate(self.width(), 0)
            painter.scale(-1, 1)
        width, bottom = self.width(), self.height()
        ridge = QPainterPath(QPointF(0, bottom - 27))
        ridge.cubicTo(
            QPointF(width * 0.28, bottom - 54), QPointF(width * 0.3, bottom - 40), QPointF(width * 0.52, bottom - 54)
        )
        ridge.cubicTo(
            QPointF(width * 0.74, bottom - 74), QPointF(width * 0.8, bottom - 70), QPointF(width, bottom - 49)
        )
        ground = QPainterPath(ridge)
        ground.lineTo(width, bottom)
        ground.lineTo(0, bottom)
        painter.fillPath(ground, self.theme.colour("rail"))
        painter.setPen(QPen(self.theme.colour("border"), 1))
        painter.drawPath(ridge)
        painter.setPen(Qt.PenStyle.NoPen)
        if self.height() < self.theme.px(CARAVAN_FROM):
            return
        light = self.theme.colour("lantern")
        for share, radius in CARAVAN:
            light.setAlphaF(0.3 + 0.6 * share)
            painter.setBrush(light)
            painter.drawEllipse(QPointF(share * width, _height_at(ridge, share * width) - 8), radius, radius)
        leader = QPointF(LEADER * width, _height_at(ridge, LEADER * width) - 9)
        light.setAlphaF(0.28)
        painter.setBrush(light)
        painter.drawEllipse(leader, 14, 14)
        light.setAlphaF(1)
        painter.setBrush(light)
        painter.drawEllipse(leader, 5.5, 5.5)
        painter.end()


def _height_at(ridge: QPainterPath, x: float) -> float:
    """Where the ridge is above a point of the ground line."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        if ridge.pointAtPercent(middle).x() < x:
            low = middle
        else:
            high = middle
    return ridge.pointAtPercent(low).y()
