"""Icons by name. Each is a file in `resources/icons`; a test keeps this list and the files equal."""

from enum import StrEnum
from functools import cache

from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon

from kafila.assets import asset

STROKE = "1.75"
MARK_SIZES = (16, 32, 48, 128, 512)


class Icon(StrEnum):
    """The line icons in use (lucide, but for the lantern, which is ours)."""

    LANTERN = "lantern"
    ACTIVITY = "activity"
    ARROW_LEFT = "arrow-left"
    ARROW_UP = "arrow-up"
    CHECK = "check"
    CHEVRON_DOWN = "chevron-down"
    CHEVRON_RIGHT = "chevron-right"
    CIRCLE_ALERT = "circle-alert"
    CIRCLE_CHECK = "circle-check"
    CIRCLE_DASHED = "circle-dashed"
    CLIPBOARD_CHECK = "clipboard-check"
    CLOCK = "clock"
    COFFEE = "coffee"
    COPY = "copy"
    DOWNLOAD = "download"
    ELLIPSIS = "ellipsis"
    EYE = "eye"
    FOLDER = "folder"
    GAUGE = "gauge"
    GLOBE = "globe"
    HOURGLASS = "hourglass"
    HOUSE = "house"
    INFO = "info"
    LAPTOP = "laptop"
    LIFE_BUOY = "life-buoy"
    LIGHTBULB = "lightbulb"
    LINK = "link"
    LOCK = "lock"
    LOG_IN = "log-in"
    MESSAGE_CIRCLE = "message-circle"
    MINUS = "minus"
    MONITOR = "monitor"
    PALETTE = "palette"
    PAUSE = "pause"
    PENCIL = "pencil"
    PLUS = "plus"
    REFRESH_CW = "refresh-cw"
    ROTATE_CCW = "rotate-ccw"
    ROUTE = "route"
    SEARCH = "search"
    SERVER = "server"
    SETTINGS = "settings"
    SHIELD_CHECK = "shield-check"
    SLIDERS_HORIZONTAL = "sliders-horizontal"
    SPARKLES = "sparkles"
    SQUARE_PEN = "square-pen"
    SQUARE = "square"
    UNPLUG = "unplug"
    USER = "user"
    USERS = "users"
    WIFI = "wifi"
    X = "x"


@cache
def svg(icon: Icon, colour: str) -> bytes:
    """The icon's drawing in one colour (#RRGGBB)."""
    path = asset("icons/lantern.svg") if icon is Icon.LANTERN else asset(f"icons/lucide/{icon}.svg")
    text = path.read_text("utf-8")
    text = text.replace('stroke-width="2"', f'stroke-width="{STROKE}"', 1)
    return text.replace("currentColor", colour).encode()


def window_icon() -> QIcon:
    """Kafila's mark, in every size that a desktop asks for."""
    icon = QIcon()
    for side in MARK_SIZES:
        icon.addFile(str(asset(f"icons/kafila-icon-{side}.png")), QSize(side, side))
    return icon
