"""What the window remembers: the look that was chosen, and where it stood."""

import base64
import logging
from pathlib import Path

import msgspec

from kafila.gui.theme import Looks, Mode

log = logging.getLogger(__name__)

FILE = "window.json"


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """One profile's window."""

    mode: Mode = Mode.SYSTEM
    text_percent: int = 100
    still: bool = False
    geometry: str = ""
    """Base64 of what Qt gives."""

    def looks(self) -> Looks:
        """What the theme takes."""
        return Looks(mode=self.mode, text_percent=self.text_percent, still=self.still)

    def with_looks(self, looks: Looks) -> "Preferences":
        """The same window in another look."""
        return msgspec.structs.replace(self, mode=looks.mode, text_percent=looks.text_percent, still=looks.still)

    def with_geometry(self, geometry: bytes) -> "Preferences":
        """The same look at another place."""
        return msgspec.structs.replace(self, geometry=base64.b64encode(geometry).decode())

    def geometry_bytes(self) -> bytes:
        """What Qt takes; empty where nothing was kept."""
        try:
            return base64.b64decode(self.geometry, validate=True)
        except ValueError:
            return b""


def read_preferences(folder: Path | None) -> Preferences:
    """What was kept; the defaults where nothing was, or where it cannot be read."""
    if folder is None:
        return Preferences()
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Preferences)
    except FileNotFoundError:
        return Preferences()
    except (OSError, msgspec.DecodeError) as error:
        log.warning("the window's preferences cannot be read: %s", type(error).__name__)
        return Preferences()


def keep_preferences(folder: Path | None, preferences: Preferences) -> None:
    """Keep them: written beside and renamed, so that a crash leaves the old ones."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder / f"{FILE}.new"
        beside.write_bytes(msgspec.json.encode(preferences))
        beside.replace(folder / FILE)
    except OSError as error:
        log.warning("the window's preferences cannot be kept: %s", type(error).__name__)
