"""The one object that turns tokens into what Qt draws with."""

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from string import Template

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QGuiApplication,
    QIcon,
    QPainter,
    QPalette,
    QPixmap,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from kafila.assets import asset
from kafila.gui.theme.icons import Icon, svg
from kafila.gui.theme.tokens import ColourName, Colours, Role, Series, Tokens, load_tokens

ICON_PX = 18
TABULAR = QFont.Tag("tnum")
_FIGURES = frozenset({Role.DISPLAY, Role.CODE, Role.AXIS})


class Mode(StrEnum):
    """Which colours to use."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What a person can choose about the look."""

    mode: Mode = Mode.SYSTEM
    text_percent: int = 100
    """100 to 200."""
    still: bool = False
    """No movement: values change in place."""


class Theme(QObject):
    """Colours, fonts, sizes and icons in the present mode; `changed` when any of them changes."""

    changed = Signal()

    def __init__(self, looks: Looks = Looks()) -> None:
        super().__init__()
        self._tokens = load_tokens()
        self._looks = looks
        self._app: QApplication | None = None
        self._places: dict[str, int] = {}
        self._pixmaps: dict[tuple[Icon, str, int, float], QPixmap] = {}

    @property
    def tokens(self) -> Tokens:
        """The numbers of the look."""
        return self._tokens

    @property
    def looks(self) -> Looks:
        """What was chosen."""
        return self._looks

    @property
    def still(self) -> bool:
        """Whether movement is off."""
        return self._looks.still

    @property
    def dark(self) -> bool:
        """Whether the dark colours are in use."""
        if self._looks.mode is Mode.SYSTEM:
            hints = QGuiApplication.styleHints()
            return hints.colorScheme() is Qt.ColorScheme.Dark
        return self._looks.mode is Mode.DARK

    @property
    def colours(self) -> Colours:
        """All colours of the present mode."""
        return self._tokens.colour.dark if self.dark else self._tokens.colour.light

    def colour(self, name: ColourName) -> QColor:
        """One colour of the present mode."""
        return QColor(self.colours.named(name))

    def series(self, place: int) -> Series:
        """How the computer at this place of the group is drawn everywhere."""
        chart = self._tokens.chart.dark if self.dark else self._tokens.chart.light
        return chart.series[place % len(chart.series)]

    def series_of(self, member: str) -> Series:
        """How a computer is drawn everywhere: places are given out as computers are first seen."""
        return self.series(self.place_of(member))

    def place_of(self, member: str) -> int:
        """The computer's place in the list of series."""
        return self._places.setdefault(member, len(self._places))

    def forget_members(self) -> None:
        """Another session begins: give out places anew."""
        self._places.clear()

    def px(self, length: float) -> int:
        """A length that grows with the text."""
        return round(length * self._looks.text_percent / 100)

    def line(self, role: Role) -> int:
        """The height of a line of this size, in pixels."""
        return self.px(self._tokens.role(role).line)

    def font(self, role: Role, weight: int | None = None, *, tabular: bool = False) -> QFont:
        """The font of a size of text. `tabular`: figures are equally wide, for values that change."""
        size = self._tokens.role(role)
        font = QFont()
        font.setFamilies([self._tokens.type.family, self._tokens.type.fallback["ar"]])
        font.setPixelSize(self.px(size.px))
        font.setWeight(QFont.Weight(weight if weight is not None else size.weight))
        font.setLetterSpacing(QFont.SpacingType.PercentageSpacing, 100 + size.tracking_percent)
        # It widens hyphens too, so names and sentences do without.
        if tabular or role in _FIGURES:
            font.setFeature(TABULAR, 1)
        return font

    def mono(self, role: Role = Role.SMALL) -> QFont:
        """The font of code and addresses."""
        font = QFont()
        font.setFamilies([self._tokens.type.fallback["mono"], "monospace"])
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(self.px(self._tokens.role(role).px))
        return font

    def pixmap(self, icon: Icon, colour: ColourName, size: float = ICON_PX, ratio: float = 0) -> QPixmap:
        """An icon in one colour, `size` pixels wide at 100 percent text, sharp at `ratio`."""
        app = QGuiApplication.instance()
        ratio = ratio or (app.devicePixelRatio() if isinstance(app, QGuiApplication) else 1)
        side = self.px(size)
        key = (icon, self.colours.named(colour), side, ratio)
        if key not in self._pixmaps:
            self._pixmaps[key] = _draw(svg(icon, key[1]), side, ratio)
        return self._pixmaps[key]

    def icon(self, icon: Icon, colour: ColourName, size: float = ICON_PX) -> QIcon:
        """The same for a button; set its `iconSize` to `px(size)` too."""
        return QIcon(self.pixmap(icon, colour, size))

    def apply(self, app: QApplication) -> None:
        """Put fonts, palette and style sheet on the application."""
        if self._app is None:
            self._app = app
            _load_fonts()
            app.setStyle("Fusion")
            app.styleHints().colorSchemeChanged.connect(self._refresh)
        self._refresh()

    def choose(self, looks: Looks) -> None:
        """Change the look of everything at once."""
        if looks != self._looks:
            self._looks = replace(looks, text_percent=min(max(looks.text_percent, 100), 200))
            self._refresh()

    def _refresh(self) -> None:
        self._pixmaps.clear()
        if self._app is not None:
            self._app.setFont(self.font(Role.BODY))
            self._app.setPalette(self._palette())
            self._app.setStyleSheet(self._sheet())
        self.changed.emit()

    def _palette(self) -> QPalette:
        palette = QPalette()
        roles: dict[QPalette.ColorRole, ColourName] = {
            QPalette.ColorRole.Window: "bg",
            QPalette.ColorRole.WindowText: "text",
            QPalette.ColorRole.Base: "surface",
            QPalette.ColorRole.AlternateBase: "sunken",
            QPalette.ColorRole.Text: "text",
            QPalette.ColorRole.PlaceholderText: "text_faint",
            QPalette.ColorRole.Button: "raised",
            QPalette.ColorRole.ButtonText: "text",
            QPalette.ColorRole.Highlight: "selection",
            QPalette.ColorRole.HighlightedText: "text",
            QPalette.ColorRole.Link: "accent_text",
            QPalette.ColorRole.LinkVisited: "accent_text",
            QPalette.ColorRole.ToolTipBase: "raised",
            QPalette.ColorRole.ToolTipText: "text",
            QPalette.ColorRole.Accent: "accent",
        }
        for role, name in roles.items():
            palette.setColor(role, self.colour(name))
        for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text):
            palette.setColor(QPalette.ColorGroup.Disabled, role, self.colour("text_faint"))
        return palette

    def _sheet(self) -> str:
        template = Template(asset("style/kafila.qss").read_text("utf-8"))
        values = {name: getattr(self.colours, name) for name in Colours.__struct_fields__}
        values |= {f"px{length}": f"{self.px(length)}px" for length in range(1, 65)}
        return template.substitute(values)


@cache
def _load_fonts() -> None:
    """The bundled fonts become known to this process, once."""
    for path in sorted(asset("fonts").glob("*.ttf")):
        QFontDatabase.addApplicationFont(str(path))


def _draw(drawing: bytes, side: int, ratio: float) -> QPixmap:
    device = round(side * ratio)
    pixmap = QPixmap(QSize(device, device))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(drawing)).render(painter, QRectF(0, 0, device, device))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap
