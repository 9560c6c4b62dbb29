"""The look: one `Theme` gives colours, fonts, sizes and icons to everything in the window.

    theme = Theme(); theme.apply(app)          # fonts, palette, style sheet
    theme.colour("accent")                     # QColor in the present mode (names of `Colours`)
    theme.font(Role.HEADING)                   # QFont, already multiplied by the text size
    theme.px(16)                               # lengths that grow with the text
    theme.pixmap(Icon.LAPTOP, "text_muted")    # tinted, sharp, cached
    theme.series(0).colour, .dash, .marker     # the first computer's colour in this mode

A widget that paints asks the theme at paint time and connects `theme.changed` to drop whatever it
cached. Plain fills, borders and states come from the style sheet, by the dynamic properties that
`kafila.gui.widgets` sets.
"""

from kafila.gui.theme.icons import Icon
from kafila.gui.theme.theme import Looks, Mode, Theme
from kafila.gui.theme.tokens import Colours, Role, Series, Tokens, load_tokens

__all__ = ["Colours", "Icon", "Looks", "Mode", "Role", "Series", "Theme", "Tokens", "load_tokens"]
