"""The main window: the rail, and the page that fits what the engine shows."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QApplication, QHBoxLayout, QStackedWidget, QWidget

from kafila.domain.chat import ChatEvent
from kafila.domain.commands import Command, HostSession, JoinSession, LeaveSession, PlanAnew, TryDemo
from kafila.domain.errors import Problem
from kafila.domain.snapshot import (
    Ended,
    Forming,
    Idle,
    Joining,
    Preparing,
    Serving,
    SessionView,
    Snapshot,
    WaitingRoom,
)
from kafila.gui.arrivals import new_since
from kafila.gui.bridge import EngineStopped
from kafila.gui.closing import ask_before_closing, who_would_lose
from kafila.gui.fade import Fade
from kafila.gui.pages.draft import ModelChoice
from kafila.gui.pages.ended import EndedPage, EngineStoppedPage
from kafila.gui.pages.forming import FormingPage
from kafila.gui.pages.frame import Send
from kafila.gui.pages.help import HelpPage
from kafila.gui.pages.host_conversations import ConversationsPage
from kafila.gui.pages.host_model import ModelPage
from kafila.gui.pages.join import JoinPage
from kafila.gui.pages.joining import JoiningPage, PreparingPage
from kafila.gui.pages.settings import SettingsPage
from kafila.gui.pages.start import StartPage
from kafila.gui.pages.waiting_room import WaitingRoomPage
from kafila.gui.pages.waking import WakingPage
from kafila.gui.rail import Place, Rail
from kafila.gui.theme import Theme
from kafila.gui.theme.icons import window_icon
from kafila.gui.widgets import FocusFrame
from kafila.gui.widgets.notice import Toast

WIDTH, HEIGHT = 1280, 800
LEAST = QSize(760, 528)
NARROW_BELOW = 1040
AT_WORK = WaitingRoom | Forming | Serving | Ended
"""What stands under Session in the rail; everything else is at home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPages:
    """The pages of a serving session, and how they are fed."""

    serving: QWidget
    graphs: QWidget
    show_snapshot: Callable[[Snapshot], None]
    chat_event: Callable[[ChatEvent], None]


class Wizard(Enum):
    """Where one is at home, before there is a session."""

    START = auto()
    MODEL = auto()
    CONVERSATIONS = auto()
    JOIN = auto()


class Window(QWidget):
    """One window. Fed with snapshots, chat events and the engine's death; `closed` at the end."""

    restart_wanted = Signal()
    closed = Signal()

    def __init__(self, theme: Theme, send: Send, make_session_pages: Callable[[Theme, Send], SessionPages]) -> None:
        super().__init__()
        self.setObjectName("window")
        # The window itself has the focus at first: no button looks chosen before a key is pressed.
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.theme = theme
        self._send_on = send
        self._snapshot: Snapshot | None = None
        self._dead = False
        self._place = Place.HOME
        self._wizard = Wizard.START
        self._asked: Command | None = None
        self._leaving = False
        self._dividing = False
        self._served = False
        self._sure = False
        self.session_pages = make_session_pages(theme, self._send)
        self._build_pages()
        self.rail = Rail(theme)
        self.rail.chosen.connect(self.go)
        self.stack = QStackedWidget()
        for page in self._all_pages():
            self.stack.addWidget(page)
        self._fade = Fade(theme, self.stack)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.rail)
        layout.addWidget(self.stack, 1)
        self.toast = Toast(theme, self)
        self.focus_frame = FocusFrame(theme, self)
        self.setMinimumSize(LEAST)
        self.resize(WIDTH, HEIGHT)
        self.setWindowIcon(window_icon())
        for place in Place:
            keys = QShortcut(QKeySequence(f"Ctrl+{place + 1}"), self)
            keys.activated.connect(self.rail.button(place).click)
        help_key = QShortcut(QKeySequence(QKeySequence.StandardKey.HelpContents), self)
        help_key.activated.connect(self.rail.button(Place.HELP).click)
        self._arrange()
        self.setFocus()

    def _build_pages(self) -> None:
        theme, send = self.theme, self._send
        self.waking = WakingPage(theme, send)
        self.stopped = EngineStoppedPage(theme, send)
        self.start = StartPage(theme, send)
        self.model = ModelPage(theme, send)
        self.conversations = ConversationsPage(theme, send)
        self.join = JoinPage(theme, send)
        self.joining = JoiningPage(theme, send)
        self.preparing = PreparingPage(theme, send)
        self.room = WaitingRoomPage(theme, send)
        self.forming = FormingPage(theme, send)
        self.ended = EndedPage(theme, send)
        self.settings = SettingsPage(theme, send)
        self.help = HelpPage(theme, send)
        self.stopped.restart.connect(self._restart)
        self.start.host_wanted.connect(lambda: self._to(Wizard.MODEL))
        self.start.join_wanted.connect(self._to_join)
        self.start.session_wanted.connect(lambda: self.go(Place.SESSION))
        self.model.back.connect(lambda: self._to(Wizard.START))
        self.model.cancelled.connect(lambda: self._to(Wizard.START))
        self.model.chosen.connect(self._to_conversations)
        self.conversations.back.connect(lambda: self._to(Wizard.MODEL))
        self.conversations.cancelled.connect(lambda: self._to(Wizard.START))
        self.join.back.connect(lambda: self._to(Wizard.START))

    def _all_pages(self) -> tuple[QWidget, ...]:
        return (
            self.waking, self.stopped, self.start, self.model, self.conversations, self.join, self.joining,
            self.preparing, self.room, self.forming, self.ended, self.settings, self.help,
            self.session_pages.serving, self.session_pages.graphs,
        )  # fmt: skip

    # What comes from the engine ------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show what there is to see now."""
        before = self._snapshot
        self._snapshot = snapshot
        self._dead = False
        session = snapshot.session
        if before is None or type(before.session) is not type(session):
            self._session_changed(session)
            if self.page() is not self.stack.currentWidget():
                self._hold_focus()
        elif isinstance(session, Idle) and before.session != session:
            self._show_problem(session.problem)
        if before is None or _at_rest(before) != _at_rest(snapshot):
            for page in (self.start, self.model, self.conversations, self.join, self.settings):
                page.show_snapshot(snapshot)
        for page in (self.help, self.joining, self.preparing, self.room, self.forming, self.ended):
            page.show_snapshot(snapshot)
        self.session_pages.show_snapshot(snapshot)
        self._tell_of_newcomers(before, session)
        self._tell_of_division(before, session)
        self._arrange()

    def chat_event(self, event: ChatEvent) -> None:
        """Pass on what the engine says about an answer."""
        self.session_pages.chat_event(event)

    def show_stopped(self, stopped: EngineStopped) -> None:
        """The engine is gone by accident."""
        self._dead = True
        self._snapshot = None
        self._served = False
        self._place = Place.HOME
        self._wizard = Wizard.START
        self.stopped.show_stopped(stopped)
        self._arrange()

    def _session_changed(self, session: SessionView) -> None:
        self._served = isinstance(session, Serving) or (self._served and isinstance(session, Ended))
        elsewhere = self._place in {Place.HELP, Place.SETTINGS}
        if isinstance(session, Idle | Joining | Preparing):
            self.theme.forget_members()
            self._place = self._place if elsewhere else Place.HOME
        else:
            self._wizard = Wizard.START
            self._place = self._place if elsewhere else Place.SESSION
        if isinstance(session, Idle):
            self._show_problem(session.problem)
        if isinstance(session, Ended) and not session.failed and self._leaving and not self._served:
            # Whoever ended it before there was anything to read knows that it is over.
            self._send_on(LeaveSession())
            self.toast.say(self.tr("The session is over."))
        if isinstance(session, Idle | Ended):
            self._leaving = False

    def _show_problem(self, problem: Problem | None) -> None:
        asked, self._asked = self._asked, None
        self.start.show_problem(None)
        if problem is None:
            return
        match asked:
            case JoinSession(code=code):
                self._wizard = Wizard.JOIN
                if not self.join.field.text():
                    self.join.field.setText(code)
                self.join.show_problem(problem)
            case HostSession():
                self._wizard = Wizard.CONVERSATIONS
                self.conversations.show_problem(problem)
            case _:
                self._wizard = Wizard.START
                self.start.show_problem(problem)

    def _tell_of_newcomers(self, before: Snapshot | None, session: SessionView) -> None:
        if not (new := new_since(before, session)):
            return
        QApplication.alert(self)
        if self._place is not Place.SESSION:
            words = self.tr("{machine} asks to join.").format(machine=new[0].machine.name)
            self.toast.say(words, self.tr("Show"), lambda: self.go(Place.SESSION))

    def _tell_of_division(self, before: Snapshot | None, session: SessionView) -> None:
        """What came of dividing the parts anew, to the host that asked for it."""
        earlier = before.session if before is not None else None
        if not isinstance(session, Serving) or not session.is_host:
            self._dividing = self._dividing and isinstance(session, Forming)
            return
        said = session.planned
        if not said and self._dividing and isinstance(earlier, Forming):
            said = self.tr("The parts are divided anew.")
        known = earlier.planned if isinstance(earlier, Serving) else ""
        if said and (self._dividing or said != known):
            self._dividing = False
            self.toast.say(said)

    # Where one is --------------------------------------------------------------------------------

    def go(self, place: int) -> None:
        """Go to a place of the rail."""
        if self._place is Place.HOME and place == Place.HOME and self._wizard is not Wizard.START:
            self._wizard = Wizard.START
        self._place = Place(place)
        self._arrange()

    def _to(self, wizard: Wizard) -> None:
        self._wizard = wizard
        self._place = Place.HOME
        self._arrange()

    def _to_join(self) -> None:
        self.join.clear()
        self._to(Wizard.JOIN)

    def _to_conversations(self, choice: ModelChoice) -> None:
        self.conversations.set_model(choice)
        self._to(Wizard.CONVERSATIONS)

    def page(self) -> QWidget:
        """The page that belongs here now."""
        if self._place is Place.HELP:
            return self.help
        if self._place is Place.SETTINGS:
            return self.settings
        if self._dead:
            return self.stopped
        if self._snapshot is None:
            return self.waking
        if self._place is Place.HOME:
            return self._home_page(self._snapshot.session)
        return self._session_page(self._snapshot.session)

    def _home_page(self, session: SessionView) -> QWidget:
        match session:
            case Joining():
                return self.joining
            case Preparing():
                return self.preparing
            case Idle() | Ended():
                return {
                    Wizard.START: self.start,
                    Wizard.MODEL: self.model,
                    Wizard.CONVERSATIONS: self.conversations,
                    Wizard.JOIN: self.join,
                }[self._wizard]
            case _:
                return self.start

    def _session_page(self, session: SessionView) -> QWidget:
        match session:
            case WaitingRoom():
                return self.room
            case Forming():
                return self.forming
            case Ended() if not self._served:
                return self.ended
            case Serving() | Ended():
                pages = self.session_pages
                return pages.graphs if self._place is Place.GRAPHS else pages.serving
            case _:
                return self._home_page(session)

    def _arrange(self) -> None:
        """Bring page, rail and title in line with what is known."""
        session = self._snapshot.session if self._snapshot is not None else None
        at_work = isinstance(session, AT_WORK)
        if self._place is Place.GRAPHS and not self._served:
            self._place = Place.SESSION if at_work else Place.HOME
        if self._place is Place.SESSION and not at_work:
            self._place = Place.HOME
        self.rail.allow(Place.SESSION, allowed=at_work)
        self.rail.allow(Place.GRAPHS, allowed=self._served and at_work)
        self.rail.show_place(self._place)
        group: str = getattr(session, "group", "")
        # Desktops add the app's name by themselves.
        self.setWindowTitle(group or "Kafila")
        page = self.page()
        if page is self.stack.currentWidget():
            return
        self._fade.cover()
        self._hold_focus()
        self.stack.setCurrentWidget(page)
        if QApplication.focusWidget() is self:
            page.setFocus()

    def _hold_focus(self) -> None:
        """Take the focus before a page goes; else Qt gives it to what comes next, as if it were chosen."""
        focused = QApplication.focusWidget()
        if focused and self.stack.isAncestorOf(focused):
            self.setFocus()

    # What goes to the engine ---------------------------------------------------------------------

    def _send(self, command: Command) -> None:
        match command:
            case JoinSession() | HostSession() | TryDemo():
                self._asked = command
                self._leaving = False
                self.start.show_problem(None)
                self.conversations.show_problem(None)
                self.join.show_problem(None)
            case LeaveSession():
                self._leaving = True
            case PlanAnew():
                self._dividing = True
            case _:
                pass
        self._send_on(command)

    def _restart(self) -> None:
        self._dead = False
        self._arrange()
        self.restart_wanted.emit()

    # The window itself ---------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """The rail goes without words where it is narrow."""
        super().resizeEvent(event)
        self.rail.set_narrow(narrow=event.size().width() < NARROW_BELOW)

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802
        """Ask where others would lose something; then hide, and let the app clean up."""
        event.ignore()
        others = who_would_lose(self._snapshot, demo=isinstance(self._asked, TryDemo))
        if others and not self._sure:
            asking = ask_before_closing(self.theme, self, others)
            asking.accepted.connect(self.close_now)
            asking.open()
            return
        self.hide()
        self.closed.emit()

    def close_now(self) -> None:
        """Close without asking: the system shuts down, or the terminal says so."""
        self._sure = True
        self.close()


def _at_rest(snapshot: Snapshot) -> tuple[object, ...]:
    """What the pages show that do not follow a session's every move."""
    session = snapshot.session
    code = session.code if isinstance(session, WaitingRoom) else None
    return (snapshot.me, snapshot.models, type(session), code)
