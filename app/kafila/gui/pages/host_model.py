"""Hosting, first step: which model the group will run."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QFileDialog, QHBoxLayout, QLineEdit, QWidget

from kafila.domain.snapshot import ModelCard, Snapshot
from kafila.gui import numbers
from kafila.gui.pages.draft import ModelChoice, computers_needed
from kafila.gui.pages.frame import Page, Send
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
    Tile,
    Tone,
    fill,
    row,
)
from kafila.gui.widgets.choices import ChoiceCard, Segments
from kafila.gui.widgets.focus import CORNER
from kafila.gui.widgets.layouts import CardGrid, flow, stack

TAGS_SHOWN = 4


class ModelPage(Page):
    """Cards of models, or a folder. `chosen` with the `ModelChoice` when going on."""

    chosen = Signal(object)
    cancelled = Signal()

    def __init__(self, theme: Theme, send: Send) -> None:
        super().__init__(theme, send, steps=True)
        self._cards: dict[str, ChoiceCard] = {}
        self._models: tuple[ModelCard, ...] = ()
        self._room: int | None = None
        self._folder: str = ""
        self._group = QButtonGroup(self)
        self._group.buttonToggled.connect(self._update)
        self.cancel = Button(theme, self.tr("Cancel"), Kind.QUIET)
        self.cancel.clicked.connect(self.cancelled)
        self.head.add_end(self.cancel, spare=True)
        self.room = Text(theme, "", tone=Tone.MUTED, wrap=True)
        self.tabs = Segments(theme, self.tr("Where from"), (self.tr("Suggested"), self.tr("My folder")))
        self.tabs.chosen.connect(self._show_tab)
        self.search = QLineEdit()
        self.search.setProperty(CORNER, 11)
        self.search.setPlaceholderText(self.tr("Search by name or use"))
        self.search.setAccessibleName(self.tr("Search models"))
        self.search.setClearButtonEnabled(True)
        self.search.setMaximumWidth(theme.px(300))
        self.search.setMinimumWidth(theme.px(160))
        self.search.textChanged.connect(self._filter)
        tools_row = row(self.tabs, self.search, 1, spacing=theme.px(12))
        tools_row.setStretch(1, 10)
        tools = QWidget()
        tools.setLayout(tools_row)
        self.grid = CardGrid(theme, 300)
        self.none_found = Text(theme, self.tr("No model is called so. Try another word."), tone=Tone.MUTED)
        self.none_found.hide()
        self.folder_card = self._make_folder_card()
        self.folder_card.hide()
        note = QWidget()
        promise = Text(theme, "", Role.SMALL, Tone.MUTED, wrap=True)
        promise.set_html(
            self.tr("Nothing is downloaded until you press <b>Start</b>. Each computer then reads only its own part.")
        )
        holder = QHBoxLayout(note)
        holder.setContentsMargins(0, 0, 0, 0)
        holder.addWidget(IconLabel(theme, Icon.DOWNLOAD, size=16))
        holder.addWidget(promise, 1)
        title = Text(theme, self.tr("Which model will the group run?"), Role.TITLE, wrap=True)
        self.set_content(
            stack(
                stack(title, self.room, spacing=4),
                4, tools, self.grid, self.none_found, self.folder_card, note, spacing=16,
            )
        )  # fmt: skip
        self.go_on = Button(theme, self.tr("Continue"), Kind.PRIMARY, Size.LARGE)
        self.go_on.clicked.connect(self._go_on)
        self.foot.add_end(self.go_on)
        self._update()

    def _make_folder_card(self) -> Card:
        card = Card(self.theme)
        self.folder_name = Text(self.theme, self.tr("No folder chosen yet"), Role.STRONG, wrap=True)
        self.choose_folder = Button(self.theme, self.tr("Choose a folder…"), icon=Icon.FOLDER)
        self.choose_folder.clicked.connect(self._open_dialog)
        words = self.tr("A model in the format of mlx-lm: config.json, the tokenizer and safetensors files.")
        lines = stack(self.folder_name, Text(self.theme, words, Role.SMALL, Tone.MUTED, wrap=True), spacing=2)
        line = row(Tile(self.theme, Icon.FOLDER), lines, self.choose_folder, spacing=14)
        line.setStretch(1, 1)
        card.body.addLayout(line)
        return card

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Show the models there are."""
        if snapshot.me.room_bytes != self._room or not self.room.words():
            self._room = snapshot.me.room_bytes
            words = self.tr("This computer has {room} of room. Anything larger is shared out when people join.")
            known = words.format(room=numbers.size(self._room)) if self._room else ""
            self.room.set_text(known or self.tr("Anything too large for one computer is shared out."))
        if snapshot.models != self._models:
            self._models = snapshot.models
            self._rebuild()

    def _rebuild(self) -> None:
        before = self._group.checkedButton()
        chosen = next((key for key, card in self._cards.items() if card is before), "")
        self.grid.show_cards(())
        for card in self._cards.values():
            self._group.removeButton(card)
            card.deleteLater()
        self._cards = {model.id: self._make_card(model) for model in self._models}
        keep = self._cards.get(chosen) or next(iter(self._cards.values()), None)
        if keep is not None:
            keep.setChecked(True)
        self._filter(self.search.text())
        self._update()

    def _make_card(self, model: ModelCard) -> ChoiceCard:
        card = ChoiceCard(self.theme, f"{model.name}. {model.good_at}")
        title = QWidget()
        title.setLayout(row(Text(self.theme, model.name, Role.LEAD, weight=600), 1))
        card.add(title)
        card.add(Text(self.theme, model.good_at, Role.SMALL, Tone.MUTED, wrap=True))
        card.body.addSpacing(self.theme.px(6))
        card.add(flow(self.theme, *(Pill(self.theme, tag) for tag in model.tags[:TAGS_SHOWN]), gap=6))
        facts = Text(self.theme, "", Role.SMALL, Tone.MUTED)
        facts.set_html(
            fill("<b>{size}</b> &nbsp;·&nbsp; {licence}", size=numbers.size(model.size_bytes), licence=model.licence)
        )
        card.body.addSpacing(self.theme.px(4))
        card.add(facts)
        card.body.addSpacing(self.theme.px(4))
        fit = QWidget()
        fit.setLayout(row(self._fit_pill(model), 1))
        card.add(fit)
        card.body.addStretch(1)
        self._group.addButton(card)
        return card

    def _fit_pill(self, model: ModelCard) -> Pill:
        if model.fits_here:
            return Pill(self.theme, self.tr("Fits this computer"), PillKind.OK, Icon.CHECK)
        count = computers_needed(model.size_bytes, self._room)
        words = self.tr("Needs about %n computer(s) like yours", "", count) if count else self.tr("Needs a group")
        return Pill(self.theme, words, PillKind.NEEDS, Icon.USERS)

    def _show_tab(self, tab: int) -> None:
        own = tab == 1
        self.grid.setVisible(not own)
        self.search.setVisible(not own)
        self.folder_card.setVisible(own)
        self.none_found.hide()
        self._update()

    def _filter(self, words: str) -> None:
        wanted = words.casefold().split()
        texts = {model.id: " ".join((model.name, model.good_at, *model.tags)).casefold() for model in self._models}
        found = [key for key, text in texts.items() if all(word in text for word in wanted)]
        self.grid.show_cards([self._cards[key] for key in found])
        self.none_found.setVisible(bool(self._models) and not found)

    def _open_dialog(self) -> None:
        dialog = QFileDialog(self, self.tr("Choose the folder of a model"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.use_folder)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def use_folder(self, folder: str) -> None:
        """Take a folder as the model."""
        self._folder = folder
        self.folder_name.set_text(folder)
        self._update()

    def _choice(self) -> ModelChoice | None:
        if not self.folder_card.isHidden():
            name = self._folder.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
            return ModelChoice(id=self._folder, name=name) if self._folder else None
        checked = self._group.checkedButton()
        model = next((model for model in self._models if self._cards.get(model.id) is checked), None)
        return ModelChoice.of(model) if model else None

    def _update(self) -> None:
        choice = self._choice()
        self.go_on.setEnabled(choice is not None)
        if choice is None:
            self.summarise("", self.tr("Choose a model to go on."))
        elif choice.size_bytes is None:
            self.summarise(choice.name, self.tr("From your own folder"))
        else:
            words = self.tr("{size} in all").format(size=numbers.size(choice.size_bytes))
            self.summarise(choice.name, words)

    def _go_on(self) -> None:
        choice = self._choice()
        if choice is not None:
            self.chosen.emit(choice)
