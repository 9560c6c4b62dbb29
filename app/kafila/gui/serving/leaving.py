"""The question before one leaves a session that serves."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from kafila.domain.ids import MemberId
from kafila.domain.snapshot import Serving
from kafila.gui.serving import figures
from kafila.gui.theme import Theme
from kafila.gui.widgets.notice import Asking


def leaving_dialog(theme: Theme, parent: QWidget, serving: Serving, me: MemberId) -> Asking:
    """A dialog that says what this computer holds and for whom the session ends."""
    stay = QCoreApplication.translate("Leaving", "Stay")
    if serving.is_host:
        question = QCoreApplication.translate("Leaving", "End the session?")
        go = QCoreApplication.translate("Leaving", "End for everyone")
    else:
        question = QCoreApplication.translate("Leaving", "Leave while the group is working?")
        go = QCoreApplication.translate("Leaving", "Leave")
    return Asking(theme, parent, question, _affected(serving, me), stay=stay, go=go)


def _affected(serving: Serving, me: MemberId) -> str:
    others = [one.machine.name for one in serving.ring if one.member != me]
    if not others:
        return QCoreApplication.translate("Leaving", "Your conversations stay on this computer.")
    mine = next((one for one in serving.ring if one.member == me), None)
    total = max(one.end for one in serving.ring)
    words = QCoreApplication.translate(
        "Leaving",
        "This computer holds {held} of {total} parts. Without it the session ends for {others}; "
        "their conversations stay on their own computers.",
    )
    return words.format(
        held=figures.number(mine.end - mine.first if mine else 0, 0),
        total=figures.number(total, 0),
        others=", ".join(others),
    )
