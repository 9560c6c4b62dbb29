"""Where the files of `resources/` lie: icons, fonts, style sheets, the word list, the catalogue."""

import sys
from pathlib import Path


def asset(name: str) -> Path:
    """The path of a file or folder in `resources/`, in a checkout, a wheel or an installed app."""
    bundled = Path(__file__).parent / "_resources"
    frozen = getattr(sys, "_MEIPASS", None)
    root = (
        Path(frozen) / "resources"
        if frozen is not None
        else bundled
        if bundled.is_dir()
        else Path(__file__).parents[2] / "resources"
    )
    return root / name
