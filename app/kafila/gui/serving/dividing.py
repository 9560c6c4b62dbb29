"""The question before the parts are divided anew, for which everyone waits."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from kafila.domain.errors import Problem
from kafila.domain.snapshot import Serving
from kafila.gui import numbers
from kafila.gui.theme import Theme
from kafila.gui.widgets import Kind
from kafila.gui.widgets.notice import Asking


def dividing_dialog(theme: Theme, parent: QWidget, serving: Serving) -> Asking:
    """A dialog that says what it is good for, and that answers pause."""
    words = QCoreApplication.translate(
        "Dividing",
        "Kafila divides by what each computer really took. Where that is faster, answers pause for everyone "
        "until the ring stands again; the start took {time}. What is being written then has to be asked again.",
    )
    dialog = Asking(
        theme,
        parent,
        QCoreApplication.translate("Dividing", "Divide the parts anew?"),
        words.format(time=numbers.duration(serving.formed_in_s)),
        stay=QCoreApplication.translate("Dividing", "Not now"),
        go=QCoreApplication.translate("Dividing", "Divide anew"),
    )
    # Nobody loses the session by it, so it is not a red button.
    dialog.go.set_kind(Kind.PRIMARY)
    return dialog


def divided() -> Problem:
    """Why an answer broke off."""
    return Problem(
        title=QCoreApplication.translate("Dividing", "The parts were divided anew while this was being written"),
        advice=QCoreApplication.translate("Dividing", "Ask again."),
    )
