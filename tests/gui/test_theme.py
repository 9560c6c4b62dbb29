"""Every number of the look can be read, and what is bundled is what is used."""

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QFontInfo
from PySide6.QtWidgets import QApplication

from kafila.assets import asset
from kafila.gui.theme import Colours, Icon, Looks, Mode, Role, Theme, load_tokens

GUI = Path(__file__).parents[2] / "app/kafila/gui"


def test_every_size_of_text_is_in_the_tokens() -> None:
    for role in Role:
        assert load_tokens().role(role).px > 0


@pytest.mark.parametrize("mode", [Mode.LIGHT, Mode.DARK])
def test_colours_are_those_of_the_mode(theme: Theme, mode: Mode) -> None:
    theme.choose(Looks(mode=mode, still=True))
    assert theme.dark is (mode is Mode.DARK)
    expected = load_tokens().colour.dark if mode is Mode.DARK else load_tokens().colour.light
    for name in Colours.__struct_fields__:
        assert re.fullmatch(r"#[0-9A-F]{6}", getattr(theme.colours, name))
    assert theme.colour("accent").name().upper() == expected.accent


def test_the_style_sheet_uses_no_colour_of_its_own() -> None:
    sheet = asset("style/kafila.qss").read_text("utf-8")
    assert set(re.findall(r"#[0-9A-Fa-f]{6}", sheet)) <= {"#FFFFFF"}


def test_text_grows_with_its_setting(theme: Theme) -> None:
    small = theme.font(Role.BODY).pixelSize()
    theme.choose(Looks(mode=Mode.LIGHT, text_percent=200, still=True))
    assert theme.font(Role.BODY).pixelSize() == 2 * small
    assert theme.px(10) == 20


def test_text_size_stays_within_its_limits(theme: Theme) -> None:
    theme.choose(Looks(mode=Mode.LIGHT, text_percent=900, still=True))
    assert theme.looks.text_percent == 200


def test_the_bundled_font_is_the_one_that_is_drawn(theme: Theme) -> None:
    assert QFontInfo(theme.font(Role.BODY)).family() == "Inter"
    assert QFontInfo(theme.mono()).family() == "Noto Sans Mono"


def test_icons_are_sharp_tinted_and_cached(theme: Theme) -> None:
    drawn = theme.pixmap(Icon.LAPTOP, "accent", 18, 2)
    assert drawn.width() == 36
    assert drawn.cacheKey() == theme.pixmap(Icon.LAPTOP, "accent", 18, 2).cacheKey()
    image = drawn.toImage()
    inks = {
        image.pixelColor(x, y).name().upper()
        for x in range(36)
        for y in range(36)
        if image.pixelColor(x, y).alpha() == 255
    }
    assert inks == {theme.colours.accent}


def test_every_icon_has_its_file_and_every_file_its_icon() -> None:
    files = {path.stem for path in asset("icons/lucide").glob("*.svg")} | {"lantern"}
    assert files == {str(icon) for icon in Icon}
    assert asset("icons/lantern.svg").is_file()


def test_no_icon_is_carried_along_unused() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in GUI.rglob("*.py"))
    unused = [icon.name for icon in Icon if f"Icon.{icon.name}" not in sources]
    assert unused == []


def test_fonts_and_icons_come_with_their_licences() -> None:
    assert "SIL OPEN FONT LICENSE" in asset("fonts/Inter-LICENSE.txt").read_text("utf-8")
    assert "SIL OPEN FONT LICENSE" in asset("fonts/NotoSans-LICENSE.txt").read_text("utf-8")
    assert "ISC License" in asset("icons/lucide/LICENSE.txt").read_text("utf-8")


def test_a_computer_keeps_its_colour_for_the_whole_session(theme: Theme) -> None:
    first, second = theme.series_of("aa"), theme.series_of("bb")
    assert first != second
    assert theme.series_of("aa") == first
    theme.forget_members()
    assert theme.series_of("bb") == first


def test_a_change_of_the_look_is_told_once(qapp: QApplication, theme: Theme) -> None:
    told: list[bool] = []
    theme.changed.connect(lambda: told.append(True))
    looks = Looks(mode=Mode.DARK, still=True)
    theme.choose(looks)
    theme.choose(looks)
    assert told == [True]
    assert theme.colours.bg.lower() in qapp.styleSheet().lower()
