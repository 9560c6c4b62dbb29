"""The chat: one conversation in view, written in, searched for and exported."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QMenu, QVBoxLayout, QWidget

from kafila.domain.chat import AnswerText, ChatEvent
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId
from kafila.gui.serving import conversations as talk
from kafila.gui.serving.composer import Composer
from kafila.gui.serving.conversation_menu import ConversationMenu
from kafila.gui.serving.library import Library
from kafila.gui.serving.message import footer_words
from kafila.gui.serving.messages import Messages
from kafila.gui.serving.small import TitleButton
from kafila.gui.serving.store import Trouble, TroubleKind
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Button, IconButton, IconLabel, Kind, Size, Text, Tone
from kafila.gui.widgets.notice import Asking, Notice, NoticeKind

RENDER_MS = 80
"""The answer being written is rendered again at most so often."""
REST = 4
"""Where rendering is slow, the window is busy with it for a fifth of the time at most."""
HEAD = 52


class Chat(QWidget):
    """A conversation with its head, its messages and the place to write."""

    exported = Signal(str)

    def __init__(self, theme: Theme, library: Library) -> None:
        super().__init__()
        self._theme = theme
        self._library = library
        self._reason = ""
        self._paused: Problem | None = None
        self._model = ""
        self._editing: tuple[ConversationId, int] | None = None
        self._drafts: dict[ConversationId, str] = {}
        self._rendered_ms = 0.0
        self._stale = QTimer(self, singleShot=True, interval=RENDER_MS)
        self._stale.timeout.connect(self.refresh)
        self.title = TitleButton(theme)
        self.search = IconButton(theme, Icon.SEARCH, self.tr("Search conversations (Ctrl+K)"))
        self.new = IconButton(theme, Icon.SQUARE_PEN, self.tr("New conversation (Ctrl+N)"))
        self.more = IconButton(theme, Icon.ELLIPSIS, self.tr("More about this conversation"))
        self.menu = ConversationMenu(theme, library.find, self)
        self.messages = Messages(theme)
        self.composer = Composer(theme)
        self.trouble = Notice(theme, NoticeKind.RELAYED)
        self.got_it = Button(theme, self.tr("Got it"), Kind.PLAIN, Size.SMALL)
        self.edit_notice = Notice(theme, NoticeKind.ACCENT, Icon.PENCIL)
        self.cancel_edit = Button(theme, self.tr("Cancel"), Kind.PLAIN, Size.SMALL)
        self.pace = Text(theme, "", Role.SMALL, Tone.MUTED)
        self._gauge = IconLabel(theme, Icon.GAUGE, "text_faint", 14)
        self.stop = Button(theme, self.tr("Stop"), Kind.PLAIN, Size.SMALL, Icon.SQUARE)
        self.lock = Text(theme, "", Role.CAPTION, Tone.MUTED, wrap=True)
        self._bar = QWidget()
        self._actions = QMenu(self)
        self._build()
        self._connect()
        self.refresh()

    def _build(self) -> None:
        px = self._theme.px
        self.setProperty("surface", "surface")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        head = QFrame()
        head.setProperty("surface", "chat-head")
        head.setMinimumHeight(HEAD)
        top = QHBoxLayout(head)
        top.setContentsMargins(px(20), px(4), px(18), px(4))
        top.setSpacing(px(4))
        top.addWidget(self.title, 1)
        for button in (self.search, self.new, self.more):
            top.addWidget(button)
        bar = QHBoxLayout(self._bar)
        bar.setContentsMargins(px(8), 0, px(8), px(8))
        bar.setSpacing(px(8))
        bar.addWidget(self._gauge)
        bar.addWidget(self.pace)
        bar.addStretch(1)
        bar.addWidget(self.stop)
        self.trouble.add(self.got_it)
        self.edit_notice.add(self.cancel_edit)
        locked = QHBoxLayout()
        locked.setContentsMargins(0, 0, 0, 0)
        locked.setSpacing(px(6))
        top_of_line = Qt.AlignmentFlag.AlignTop
        locked.addWidget(IconLabel(self._theme, Icon.LOCK, "text_faint", 14), 0, top_of_line)
        locked.addWidget(self.lock, 1)
        low = QVBoxLayout()
        low.setContentsMargins(px(20), 0, px(20), px(12))
        low.setSpacing(px(8))
        for part in (self._bar, self.trouble, self.edit_notice, self.composer):
            low.addWidget(part)
        low.addLayout(locked)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(head)
        layout.addWidget(self.messages, 1)
        layout.addLayout(low)
        self.edit_notice.hide()

    def _connect(self) -> None:
        for words, act in (
            (self.tr("Export as Markdown…"), self._export),
            (self.tr("Copy as Markdown"), self._copy),
            (self.tr("Delete this conversation…"), self._ask_to_delete),
        ):
            action = QAction(words, self._actions)
            action.triggered.connect(act)
            self._actions.addAction(action)
        self.title.clicked.connect(self.open_menu)
        self.search.clicked.connect(self.open_menu)
        self.new.clicked.connect(self.begin)
        self.more.clicked.connect(self._open_actions)
        self.menu.picked.connect(self._open)
        self.menu.begun.connect(self.begin)
        self.composer.sent.connect(self._ask)
        self.stop.clicked.connect(self.stop_answer)
        self.cancel_edit.clicked.connect(self._end_edit)
        self.got_it.clicked.connect(self._forget_trouble)
        self.messages.again.connect(self._again)
        self.messages.edit.connect(self._edit)
        self.messages.go_on.connect(self._go_on)
        for keys, act in (
            (QKeySequence("Ctrl+N"), self.begin),
            (QKeySequence("Ctrl+K"), self.open_menu),
            (QKeySequence("Esc"), self.escape),
        ):
            QShortcut(keys, self).activated.connect(act)

    def hear(self, event: ChatEvent) -> None:
        """Take in what the engine says about an answer."""
        if not self._library.hear(event):
            return
        if not isinstance(event, AnswerText):
            self.refresh()
        elif not self._stale.isActive():
            self._stale.start(max(RENDER_MS, round(self._rendered_ms * REST)))

    def set_session(self, *, reason: str, paused: Problem | None, lock: str, model: str) -> None:
        """Why nothing can be asked (empty: it can), and who reads what is said."""
        changed = (reason, paused, model) != (self._reason, self._paused, self._model)
        self._reason, self._paused, self._model = reason, paused, model
        self.lock.set_text(lock)
        if changed:
            self.refresh()

    def interrupt(self, problem: Problem) -> None:
        """No more words will come."""
        self._library.interrupt(problem)
        self.refresh()

    def refresh(self) -> None:
        """Show the conversation as it is now."""
        began_s = monotonic()
        self._show()
        self._rendered_ms = (monotonic() - began_s) * 1000

    def _show(self) -> None:
        here = self._library.current
        self.title.show_title(here.title or self.tr("New conversation"))
        self.messages.show_conversation(here, paused=self._paused, can_ask=not self._reason)
        answer = here.open_answer
        self._bar.setVisible(answer is not None)
        if answer is not None:
            self.pace.set_text(footer_words(answer))
            self._gauge.setVisible(bool(self.pace.text()))
        waits = self.tr("Wait for the answer, or stop it.") if answer is not None else ""
        self.composer.block(self._reason or waits)
        self.more.setEnabled(bool(here.turns))
        troubles = self._library.troubles
        self.trouble.setVisible(bool(troubles))
        if troubles:
            self.trouble.say_problem(self._words_of(troubles[0]))

    def begin(self) -> None:
        """Begin a new conversation."""
        self._turn_to(self._library.begin)

    def open_menu(self) -> None:
        """Open the list of conversations."""
        self.menu.open_below(self.title)

    def stop_answer(self) -> None:
        """Stop the answer being written."""
        self._library.stop()
        self.refresh()

    def escape(self) -> None:
        """Stop the answer, or else leave off editing."""
        if self._library.current.open_answer is not None:
            self.stop_answer()
        else:
            self._end_edit()

    def _open(self, conversation: str) -> None:
        self._turn_to(lambda: self._library.open(ConversationId(conversation)))

    def _turn_to(self, act: Callable[[], None]) -> None:
        """Change the conversation in view; each keeps its own draft."""
        self._end_edit()
        self._drafts[self._library.current.id] = self.composer.text
        act()
        self.refresh()
        self.composer.put(self._drafts.pop(self._library.current.id, ""))

    def _ask(self, question: str) -> None:
        self._library.settings = self.composer.settings.chosen
        editing = self._editing
        self._end_edit()
        if editing is not None and editing[0] == self._library.current.id:
            self._library.edit(editing[1], question)
        else:
            self._library.ask(question)
        self.refresh()
        self.messages.to_end()

    def _again(self, at: int) -> None:
        if not self._reason:
            self._library.settings = self.composer.settings.chosen
            self._library.ask_again(at)
            self.refresh()
            self.messages.to_end()

    def _go_on(self) -> None:
        if not self._reason:
            self._ask(self.tr("Please go on where you stopped."))

    def _edit(self, at: int) -> None:
        here = self._library.current
        self._editing = (here.id, at)
        later = len(here.turns) - 1 - at
        self.edit_notice.say(
            self.tr("Sending this again replaces the answer.")
            if later <= 0
            else self.tr("Sending this again replaces the answer and what follows it.")
        )
        self.edit_notice.show()
        self.composer.put(here.turns[at].question)

    def _end_edit(self) -> None:
        if self._editing is not None:
            self._editing = None
            self.edit_notice.hide()
            self.composer.put("")

    def _open_actions(self) -> None:
        self._actions.popup(self.more.mapToGlobal(QPoint(0, self.more.height())))

    def markdown(self) -> str:
        """The conversation in view as Markdown."""
        return talk.as_markdown(self._library.current, you=self.tr("You"), model=self._model or self.tr("Model"))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.markdown())

    def _export(self) -> None:
        name = "".join(letter if letter.isalnum() else "-" for letter in self._library.current.title)
        dialog = QFileDialog(self, self.tr("Export as Markdown"), f"{name.strip('-')[:60]}.md")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("md")
        dialog.setNameFilter(self.tr("Markdown (*.md)"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self.export_to)
        dialog.open()

    def export_to(self, path: str) -> None:
        """Write the conversation in view to a file."""
        try:
            Path(path).write_text(self.markdown(), encoding="utf-8")
        except OSError:
            self._library.troubles.append(Trouble(kind=TroubleKind.NOT_EXPORTED, file=path))
            self.refresh()
        else:
            self.exported.emit(path)

    def _ask_to_delete(self) -> None:
        dialog = Asking(
            self._theme,
            self,
            self.tr("Delete this conversation?"),
            self.tr("It is only on this computer. Nobody can bring it back."),
            stay=self.tr("Keep it"),
            go=self.tr("Delete"),
        )
        dialog.accepted.connect(self.delete)
        dialog.open()

    def delete(self) -> None:
        """Delete the conversation in view for good."""
        self._turn_to(self._library.forget)

    def _forget_trouble(self) -> None:
        del self._library.troubles[:1]
        self.refresh()

    def _words_of(self, trouble: Trouble) -> Problem:
        """A trouble with a file, as people read it."""
        match trouble.kind:
            case TroubleKind.SET_ASIDE:
                return Problem(
                    title=self.tr("A conversation could not be read"),
                    advice=self.tr("Its file was set aside as {file}; your other conversations are all here.").format(
                        file=trouble.file
                    ),
                )
            case TroubleKind.UNREADABLE:
                return Problem(
                    title=self.tr("A conversation could not be read"),
                    advice=self.tr("Its file {file} is as it was.").format(file=trouble.file),
                )
            case TroubleKind.NEWER:
                return Problem(
                    title=self.tr("A conversation comes from a newer Kafila"),
                    advice=self.tr("Update Kafila to read it; its file {file} is as it was.").format(file=trouble.file),
                )
            case TroubleKind.NOT_KEPT:
                return Problem(
                    title=self.tr("This conversation could not be kept"),
                    advice=self.tr("The disk may be full. Free some space, or export it elsewhere."),
                )
            case TroubleKind.NOT_DELETED:
                return Problem(
                    title=self.tr("This conversation could not be deleted"),
                    advice=self.tr("Its file may be open in another program. Close that first."),
                )
            case TroubleKind.NOT_EXPORTED:
                return Problem(
                    title=self.tr("The conversation could not be exported"),
                    advice=self.tr("{file} cannot be written. Choose another folder.").format(file=trouble.file),
                )
