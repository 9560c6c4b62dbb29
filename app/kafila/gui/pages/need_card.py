"""What the group needs together: the model, its conversations, and who brings the room for them."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from kafila.gui import numbers
from kafila.gui.pages.draft import ModelChoice
from kafila.gui.theme import Icon, Role, Theme
from kafila.gui.widgets import Card, Line, Text, Tone, row
from kafila.gui.widgets.cards import Dot
from kafila.gui.widgets.layouts import stack
from kafila.gui.widgets.meters import Piece, PiecesBar
from kafila.gui.widgets.notice import Notice, NoticeKind


class Entry(QWidget):
    """A coloured dot, a name, a size."""

    def __init__(self, theme: Theme, dot: Dot) -> None:
        super().__init__()
        self._name = Text(theme, "", Role.SMALL)
        self._size = Text(theme, "", Role.SMALL, weight=600)
        self.setLayout(row(dot, self._name, 1, self._size))

    def show_entry(self, name: str, size: str) -> None:
        """Change name and size."""
        self._name.set_text(name)
        self._size.set_text(size)


class NeedCard(Card):
    """The sum, its parts, and what this computer offers of it."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, margin=20, spacing=10)
        self.total = Text(theme, "", Role.DISPLAY)
        self._parts = PiecesBar(theme)
        self._model = Entry(theme, Dot(theme, "accent"))
        self._talks = Entry(theme, Dot(theme, "lantern"))
        self._offered = PiecesBar(theme)
        self._own = Entry(theme, Dot(theme, "direct"))
        self._others = Entry(theme, Dot(theme, None))
        self.advice = Notice(theme, NoticeKind.ACCENT, Icon.USERS)
        together = Text(theme, self.tr("together"), tone=Tone.MUTED)
        total = row(self.total, together, 1, spacing=6)
        self.body.addWidget(Text(theme, self.tr("What the group needs"), Role.SUBHEADING))
        self.body.addLayout(total)
        self._counted = stack(
            self._parts, self._model, self._talks, 2, Line(), 2, self._offered, self._own, self._others, spacing=10
        )
        self.body.addWidget(self._counted)
        self.body.addWidget(self.advice)

    def show_need(self, model: ModelChoice, each_bytes: int | None, people: int, room_bytes: int | None) -> None:
        """Count it for so many people at once."""
        if model.size_bytes is None:
            self.total.set_text("…")
            self._counted.hide()
            self.advice.say(self.tr("What it needs is counted when the code is made."))
            return
        self._counted.show()
        talks = (each_bytes or 0) * people
        total = model.size_bytes + talks
        colours = self._theme.colours
        self.total.set_text(numbers.size(total))
        names = self.tr("%n conversation(s)", "", people)
        self._model.show_entry(model.name, numbers.size(model.size_bytes))
        self._talks.show_entry(names, numbers.size(talks) if each_bytes is not None else self.tr("not known yet"))
        self._parts.show_pieces(
            (Piece(model.size_bytes / total, colours.accent), Piece(talks / total, colours.lantern)),
            f"{model.name} {numbers.size(model.size_bytes)}, {names} {numbers.size(talks)}",
        )
        own = min(room_bytes or 0, total)
        missing = total - own
        self._own.show_entry(self.tr("This computer offers"), numbers.size(own))
        self._others.show_entry(self.tr("Others still have to bring"), numbers.size(missing))
        pieces = [Piece(own / total, colours.direct)]
        if missing:
            pieces.append(Piece(missing / total, None))
        said = self.tr("This computer offers {own}; others bring {missing}")
        self._offered.show_pieces(pieces, said.format(own=numbers.size(own), missing=numbers.size(missing)))
        self._others.setVisible(missing > 0)
        self.advice.say(_advice(missing, room_bytes))


def _advice(missing: int, room_bytes: int | None) -> str:
    translate = QCoreApplication.translate
    if not missing:
        return translate("NeedCard", "This computer can do it alone. With others it may be faster.")
    if not room_bytes:
        return translate("NeedCard", "The next page shows when there is enough.")
    count = -(-missing // room_bytes)
    return translate(
        "NeedCard", "That is about %n more computer(s) like this one. The next page shows when there is enough.",
        "", count,
    )  # fmt: skip
