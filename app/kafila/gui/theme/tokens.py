"""The numbers of the look, read from `resources/look/tokens.json`. No Qt here."""

from enum import StrEnum
from functools import cache
from typing import Generic, Literal, TypeVar

import msgspec

from kafila.assets import asset

T = TypeVar("T")

ColourName = Literal[
    "bg", "surface", "sunken", "raised", "rail", "border", "border_strong", "text", "text_muted",
    "text_faint", "accent", "accent_hover", "accent_press", "on_accent", "accent_soft",
    "accent_text", "lantern", "lantern_soft", "on_lantern", "lantern_text", "direct",
    "direct_soft", "direct_text", "relayed", "relayed_soft", "relayed_text", "lost", "lost_soft",
    "lost_text", "on_lost", "busy", "busy_track", "head", "focus", "hover", "user_msg", "code_bg",
    "selection",
]  # fmt: skip


class Colours(msgspec.Struct, frozen=True, kw_only=True):
    """Every named colour of one mode, as #RRGGBB."""

    bg: str
    surface: str
    sunken: str
    raised: str
    rail: str
    border: str
    border_strong: str
    text: str
    text_muted: str
    text_faint: str
    accent: str
    accent_hover: str
    accent_press: str
    on_accent: str
    accent_soft: str
    accent_text: str
    lantern: str
    lantern_soft: str
    on_lantern: str
    lantern_text: str
    direct: str
    direct_soft: str
    direct_text: str
    relayed: str
    relayed_soft: str
    relayed_text: str
    lost: str
    lost_soft: str
    lost_text: str
    on_lost: str
    busy: str
    busy_track: str
    head: str
    focus: str
    hover: str
    user_msg: str
    code_bg: str
    selection: str

    def named(self, name: ColourName) -> str:
        """One colour by its name."""
        value: str = getattr(self, name)
        return value


class Ink(msgspec.Struct, frozen=True, kw_only=True):
    """Which colour may be written on a series' colour."""

    token: ColourName


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """How one computer is drawn in the band, the plan and every graph."""

    colour: str
    dash: str
    """"solid", or lengths of strokes and gaps."""
    marker: str
    ink_on: Ink


class TypeRole(msgspec.Struct, frozen=True, kw_only=True):
    """One size of text."""

    name: str
    px: int
    line: int
    weight: int
    tracking_percent: float


class Role(StrEnum):
    """What a text is for; its size follows."""

    DISPLAY = "display"
    CODE = "code"
    TITLE = "title"
    HEADING = "heading"
    SUBHEADING = "subheading"
    LEAD = "lead"
    BODY = "body"
    MESSAGE = "message"
    STRONG = "strong"
    SMALL = "small"
    CAPTION = "caption"
    AXIS = "axis"


class Typography(msgspec.Struct, frozen=True, kw_only=True):
    """The scale of text."""

    family: str
    fallback: dict[str, str]
    scale: tuple[TypeRole, ...]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """The series of one mode."""

    series: tuple[Series, ...]


class ByMode(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The same thing in the light and in the dark."""

    light: T
    dark: T


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """How long movements take, in milliseconds."""

    press: int
    hover: int
    fade: int
    move: int
    page: int
    arrive: int
    busy_arc: int
    edge_change: int
    toast_in: int
    toast_stay: int


class Motion(msgspec.Struct, frozen=True, kw_only=True):
    """How things move."""

    durations_ms: Durations


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the token file that the window uses."""

    colour: ByMode[Colours]
    chart: ByMode[Chart]
    type: Typography
    motion: Motion

    def role(self, role: Role) -> TypeRole:
        """The measures of one size of text."""
        return next(entry for entry in self.type.scale if entry.name == role)


@cache
def load_tokens() -> Tokens:
    """Read the token file once."""
    return msgspec.json.decode(asset("look/tokens.json").read_bytes(), type=Tokens)
