"""The person's language: a translation file where there is one, else English.

English sentences carry their own plural forms: "%n part(s)", "%n [person|people]".
"""

import re

from PySide6.QtCore import QLocale, QTranslator
from PySide6.QtWidgets import QApplication

from kafila.assets import asset

_FORMS = re.compile(r"\[([^|\]]*)\|([^\]]*)\]|\((s)\)")


def english(source: str, count: int) -> str:
    """The sentence with the forms for so many.

    >>> english("%n computer(s), [it waits|they wait]", 1)
    '%n computer, it waits'
    """

    def form(found: re.Match[str]) -> str:
        one, many = (found[1], found[2]) if found[3] is None else ("", "s")
        return one if count == 1 else many

    return _FORMS.sub(form, source)


class English(QTranslator):
    """Picks the plural forms that stand in the sentences themselves."""

    def isEmpty(self) -> bool:  # noqa: N802
        """It has something to say for every sentence."""
        return False

    def translate(self, context: str, sourceText: str, disambiguation: str | None = None, n: int = -1) -> str:  # noqa: ARG002, N803
        """The sentence itself, in the forms for so many."""
        return english(sourceText, n) if n >= 0 else sourceText


def install_language(app: QApplication) -> None:
    """Let the window speak the person's language."""
    if QLocale().language() is QLocale.Language.C:
        QLocale.setDefault(QLocale(QLocale.Language.English))
    # Later translators are asked first, so English answers only for what no file has.
    app.installTranslator(English(app))
    translated = QTranslator(app)
    if QLocale().language() is not QLocale.Language.English and translated.load(
        QLocale(), "kafila", "_", str(asset("translations"))
    ):
        app.installTranslator(translated)
