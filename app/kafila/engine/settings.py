"""What is remembered between sessions: names, the group's rendezvous, trusted computers.

A profile keeps several instances on one machine apart (settings, keys); models are shared.
"""

import logging
import os
import platform
from pathlib import Path

import msgspec
import platformdirs
import psutil

from kafila.domain.capability import Machine, MachineKind
from kafila.domain.errors import UserError
from kafila.domain.ids import MemberId

log = logging.getLogger(__name__)

APP = "kafila"
MAX_TRUSTED = 200
MAX_CERTIFICATES = 50


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The remembered values."""

    machine: str = ""
    owner: str = ""
    rendezvous: str | None = None
    trusted: tuple[MemberId, ...] = ()
    """Computers that were let in before."""
    certificates: dict[str, str] = {}
    """By HOST:PORT, what a rendezvous showed there: its certificate's SHA-256, or that an authority vouches for it."""


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """Where this instance keeps its files."""

    config: Path
    data: Path
    """Of this profile: conversations."""
    models: Path
    """Shared by all profiles."""
    rendezvous: Path
    """Of `kafila rendezvous`."""

    @classmethod
    def of(cls, profile: str | None) -> "Folders":
        """The platform's usual places. Raises UserError for a name that is no profile."""
        if profile is not None and not (
            profile.replace("-", "").isalnum() and profile.isascii() and len(profile) <= 32
        ):
            raise UserError(
                title="That is not a profile name",
                advice="Use up to 32 letters, digits and hyphens.",
            )
        name = profile or "default"
        data = Path(platformdirs.user_data_dir(APP, appauthor=False))
        config = Path(platformdirs.user_config_dir(APP, appauthor=False))
        return cls(
            config=config / "profiles" / name,
            data=data / "profiles" / name,
            models=data / "models",
            rendezvous=data / "rendezvous",
        )


class SettingsFile:
    """The settings on disk, written beside and renamed, so that a crash leaves the old ones."""

    def __init__(self, folder: Path, *, kept: bool = True) -> None:
        """`kept` False: nothing is read or written, as for an engine that is here for a moment."""
        self._path = folder / "settings.json"
        self._kept = kept
        self.value = self._read() if kept else Settings()

    def _read(self) -> Settings:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Settings)
        except FileNotFoundError:
            return Settings()
        except (OSError, msgspec.DecodeError):
            log.warning("the settings cannot be read; starting with fresh ones")
            if self._path.exists():
                self._path.replace(self._path.with_suffix(".broken.json"))
            return Settings()

    def trust(self, member: MemberId) -> None:
        """This computer was let in: it is known from now on."""
        if member not in self.value.trusted:
            self.change(trusted=(*self.value.trusted, member)[-MAX_TRUSTED:])

    def remember(self, address: str, certificate: str) -> None:
        """A rendezvous showed this certificate: another one is noticed from now on."""
        if self.value.certificates.get(address) != certificate:
            others = [(place, shown) for place, shown in self.value.certificates.items() if place != address]
            self.change(certificates=dict([*others, (address, certificate)][-MAX_CERTIFICATES:]))

    def change(self, **changes: object) -> None:
        """Keep new values; a disk that cannot be written to costs only the memory of them."""
        self.value = msgspec.structs.replace(self.value, **changes)
        if not self._kept:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_suffix(f".{os.getpid()}.new")
            beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.value)))
            beside.replace(self._path)
        except OSError as error:
            log.warning("the settings could not be kept: %s", error.strerror)


def describe_machine(settings: Settings) -> Machine:
    """This computer, as others will see it."""
    battery: object = psutil.sensors_battery()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return Machine(
        name=settings.machine or platform.node().split(".")[0] or "This computer",
        owner=settings.owner,
        kind=MachineKind.LAPTOP if battery is not None else MachineKind.DESKTOP,
        system=f"{platform.system()} {platform.machine()}".strip(),
    )
