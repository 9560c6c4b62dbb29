"""The page of a serving session: the ring at one side, the chat at the other.

    page = ServingPage(theme, send, folder=data / "conversations")
    page.show_snapshot(snapshot)      # any snapshot; it shows Serving, and dims when it has Ended
    page.chat_event(event)            # text as it comes

It remembers nothing but conversations, and knows nothing but snapshots and chat events.
"""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QSplitter, QVBoxLayout, QWidget

from kafila.domain.chat import ChatEvent
from kafila.domain.commands import Command, LeaveSession, PlanAnew
from kafila.domain.errors import Problem
from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Ended, Forming, Serving, Snapshot
from kafila.gui.serving.chat import Chat
from kafila.gui.serving.dividing import divided, dividing_dialog
from kafila.gui.serving.leaving import leaving_dialog
from kafila.gui.serving.library import Library
from kafila.gui.serving.ring_pane import NARROW_WIDTH, RingPane
from kafila.gui.serving.rooms import rooms
from kafila.gui.serving.series import SeriesBook
from kafila.gui.serving.small import show_status
from kafila.gui.serving.store import ConversationStore
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import IconButton, Pill, Tone
from kafila.gui.widgets.choices import Segments
from kafila.gui.widgets.elided import Elided
from kafila.gui.widgets.notice import Asking, Notice, NoticeKind

HEAD = 56
RING_WIDTH = 632
RAIL = 76
RAIL_NARROW = 56
NARROW_BELOW = 1040 - RAIL
TIGHT_BELOW = 760 - RAIL_NARROW
LEAST_CHAT = 360
LEAST_RING = 420


class ServingPage(QWidget):
    """Shows a session that serves; stays, dimmed and with its conversations, when it has ended.

    `ring_width_chosen` when the person moved the border between ring and chat.
    """

    ring_width_chosen = Signal(int)

    def __init__(
        self,
        theme: Theme,
        send: Callable[[Command], None],
        *,
        folder: Path | None = None,
        book: SeriesBook | None = None,
        ring_width: int = RING_WIDTH,
    ) -> None:
        super().__init__()
        self._ring_width = theme.px(ring_width)
        self._theme = theme
        self._send = send
        self._book = book or SeriesBook()
        self._serving: Serving | None = None
        self._me = MemberId("")
        self._over = False
        self._rooms = dict[MemberId, int]()
        self.leaving: Asking | None = None
        self.dividing: Asking | None = None
        self._tight = False
        self._narrow = False
        self.group = Elided(theme, "", Role.SUBHEADING)
        self.status = Pill(theme, "")
        self.model = Elided(theme, "", Role.SMALL, Tone.MUTED)
        self.more = IconButton(theme, Icon.ELLIPSIS, self.tr("More about this session"))
        self.tabs = Segments(theme, self.tr("Show"), (self.tr("Ring"), self.tr("Chat")), chosen=1)
        self.ended = Notice(theme, NoticeKind.RELAYED)
        self.ring_pane = RingPane(theme, self._book)
        self.chat = Chat(theme, Library(send, ConversationStore(folder)))
        self._menu = QMenu(self)
        self.divide = QAction(self.tr("Divide the parts anew…"), self._menu)
        self._leave = QAction(self._menu)
        self.split = QSplitter(Qt.Orientation.Horizontal)
        self._build()
        theme.changed.connect(self._restyle)

    def _build(self) -> None:
        theme = self._theme
        self.setProperty("surface", "bg")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        head = QFrame()
        head.setProperty("surface", "head")
        # Large text makes it higher by itself, and leaves the rest to what is read.
        head.setMinimumHeight(HEAD)
        top = QHBoxLayout(head)
        top.setContentsMargins(theme.px(24), theme.px(4), theme.px(18), theme.px(4))
        top.setSpacing(theme.px(12))
        for part in (self.group, self.status, self.model):
            top.addWidget(part)
        top.addStretch(1)
        top.addWidget(self.tabs)
        top.addWidget(self.more)
        self._menu.addAction(self.divide)
        self._menu.addAction(self._leave)
        self.divide.triggered.connect(self.ask_to_divide)
        self._leave.triggered.connect(self.ask_to_leave)
        self.more.clicked.connect(self._open_menu)
        self.tabs.hide()
        self.tabs.chosen.connect(self._choose_tab)
        self.split.setChildrenCollapsible(False)
        self.split.setHandleWidth(1)
        self.split.addWidget(self.ring_pane)
        self.split.addWidget(self.chat)
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setSizes([self._ring_width, self._ring_width])
        self.split.splitterMoved.connect(self._moved)
        self.ring_pane.setMinimumWidth(theme.px(LEAST_RING))
        self.chat.setMinimumWidth(theme.px(LEAST_CHAT))
        holder = QWidget()
        banner = QVBoxLayout(holder)
        banner.setContentsMargins(theme.px(20), theme.px(12), theme.px(20), theme.px(12))
        banner.addWidget(self.ended)
        self._banner = holder
        holder.hide()
        layout = QVBoxLayout(self)
        # The wide form asks for more room than the narrow one may have.
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(head)
        layout.addWidget(holder)
        layout.addWidget(self.split, 1)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Follow the session."""
        self._rooms |= rooms(snapshot)
        self._me = snapshot.me.member
        session = snapshot.session
        if isinstance(session, Serving):
            if self._over or self._serving is None:
                self._book.clear()
            self._over = False
            self._serving = session
            self._banner.hide()
            self._show(session)
        elif isinstance(session, Forming) and self._serving is not None and not self._over:
            # The same session, divided anew: the ring comes back, the answers of the last one do not.
            self.chat.interrupt(divided())
        elif self._serving is not None and not self._over:
            self._end(self._serving, self._why(self._serving, session) if isinstance(session, Ended) else None)

    def _why(self, serving: Serving, ended: Ended) -> Problem:
        """The reason as this person knows it: a host who ended it is not told of a host."""
        if serving.is_host and not ended.failed:
            return Problem(title=self.tr("You ended the session"), advice=self.tr("Your conversations stay here."))
        return ended.reason

    def _end(self, serving: Serving, reason: Problem | None) -> None:
        """The session is over; what was said stays."""
        reason = reason or Problem(
            title=self.tr("You left the session"), advice=self.tr("Your conversations stay here.")
        )
        self._over = True
        self.ended.say_problem(reason)
        self._banner.show()
        self.chat.interrupt(reason)
        self._show(serving)

    def chat_event(self, event: ChatEvent) -> None:
        """Take in what the engine says about an answer."""
        self.chat.hear(event)

    def _show(self, serving: Serving) -> None:
        self.group.set_text(serving.group or self.tr("Session"))
        self.model.set_text(serving.model)
        show_status(self.status, serving, over=self._over, short=self._narrow)
        self._leave.setText(self.tr("End the session…") if serving.is_host else self.tr("Leave the session…"))
        self.more.setVisible(not self._over)
        self.divide.setVisible(serving.is_host and len(serving.ring) > 1)
        self.divide.setEnabled(serving.paused is None)
        self.ring_pane.show_serving(serving, self._me, self._rooms, over=self._over)
        self.chat.set_session(
            reason=self._reason(serving),
            paused=None if self._over else serving.paused,
            lock=self._lock(serving),
            model=serving.model,
        )

    def _reason(self, serving: Serving) -> str:
        if self._over:
            return self.tr("The session has ended.")
        if serving.paused is None:
            return ""
        away = [one.machine.name for one in serving.ring if one.away_s is not None]
        if len(away) == 1:
            return self.tr("Paused: {name} is away.").format(name=away[0])
        return self.tr("Paused: some computers are away.")

    def _lock(self, serving: Serving) -> str:
        head = next((one for one in serving.ring if one.head), None)
        if head is None or len(serving.ring) == 1:
            return self.tr("Everything stays on this computer.")
        if head.member == self._me:
            return self.tr(
                "Encrypted between your computers. This computer leads and reads the text in order to answer."
            )
        words = self.tr("Encrypted between your computers. {name} leads and reads the text in order to answer.")
        return words.format(name=head.machine.name)

    def _open_menu(self) -> None:
        self._menu.popup(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def ask_to_leave(self) -> None:
        """Ask before leaving, and say who is affected."""
        if self._serving is not None:
            dialog = leaving_dialog(self._theme, self, self._serving, self._me)
            dialog.accepted.connect(self.leave)
            dialog.destroyed.connect(self._asked)
            self.leaving = dialog
            dialog.open()

    def _asked(self) -> None:
        self.leaving = None

    def ask_to_divide(self) -> None:
        """Ask before everyone has to wait."""
        if self._serving is not None:
            dialog = dividing_dialog(self._theme, self, self._serving)
            dialog.accepted.connect(lambda: self._send(PlanAnew()))
            dialog.destroyed.connect(self._asked_to_divide)
            self.dividing = dialog
            dialog.open()

    def _asked_to_divide(self) -> None:
        self.dividing = None

    def leave(self) -> None:
        """Leave; a host ends the session for everyone."""
        self._send(LeaveSession())

    def _choose_tab(self, place: int) -> None:
        self.ring_pane.setVisible(place == 0)
        self.chat.setVisible(place == 1)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Less than the present form needs, so that the window can shrink into the next one."""
        return QSize(self._theme.px(LEAST_CHAT), self._theme.px(LEAST_CHAT))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Take the form that fits."""
        super().resizeEvent(event)
        self._take_form(event.size().width())

    def _take_form(self, width: int) -> None:
        px = self._theme.px
        tight = width < px(TIGHT_BELOW)
        narrow = width < px(NARROW_BELOW)
        if (tight, narrow) == (self._tight, self._narrow):
            return
        self._tight, self._narrow = tight, narrow
        self.tabs.setVisible(tight)
        self.ring_pane.set_narrow(narrow=narrow)
        fixed = px(NARROW_WIDTH) if narrow and not tight else (1 << 24) - 1
        self.ring_pane.setMaximumWidth(fixed)
        self.ring_pane.setMinimumWidth(0 if tight else px(NARROW_WIDTH if narrow else LEAST_RING))
        self.chat.setMinimumWidth(0 if tight else px(LEAST_CHAT))
        self.model.setVisible(not tight)
        self.tabs.choose(1)
        self.ring_pane.setVisible(not tight)
        self.chat.show()
        if not tight:
            ring = px(NARROW_WIDTH) if narrow else self._ring_width
            self.split.setSizes([ring, max(1, width - ring)])
        if self._serving is not None:
            show_status(self.status, self._serving, over=self._over, short=narrow)

    def _restyle(self) -> None:
        """Larger text needs another form sooner."""
        self.chat.setMinimumWidth(0 if self._tight else self._theme.px(LEAST_CHAT))
        self._take_form(self.width())

    def _moved(self, place: int, _index: int) -> None:
        if not self._narrow and not self._tight:
            self._ring_width = place
            self.ring_width_chosen.emit(place)
