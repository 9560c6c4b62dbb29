"""Conversations on the disk: one JSON file each, in a folder that is given. No Qt.

A file is written beside and renamed, so a crash leaves the old one or the new one. A file that
cannot be read is set aside under another name and a notice says so; nothing is ever deleted but by
`forget`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from kafila.domain.ids import ConversationId
from kafila.gui.serving.conversations import Conversation, settle

_SUFFIX = ".json"
_VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")


class _File(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    conversation: Conversation


class TroubleKind(StrEnum):
    """What went wrong with a file."""

    SET_ASIDE = "set-aside"
    """It could not be read and lies beside the others under another name."""
    UNREADABLE = "unreadable"
    """It could not be read, and stays as it is."""
    NEWER = "newer"
    """A later Kafila wrote it; it stays as it is."""
    NOT_KEPT = "not-kept"
    NOT_DELETED = "not-deleted"
    NOT_EXPORTED = "not-exported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What went wrong, and the name of the file as it is now."""

    kind: TroubleKind
    file: str


class _NewerFileError(Exception):
    pass


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_File)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What the folder holds, newest first, and what could not be read."""

    conversations: tuple[Conversation, ...] = ()
    troubles: tuple[Trouble, ...] = ()


class ConversationStore:
    """The folder. None keeps nothing: conversations then live as long as the window."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def load(self) -> Loaded:
        """Read all conversations."""
        if self._folder is None or not self._folder.is_dir():
            return Loaded()
        found: list[Conversation] = []
        troubles: list[Trouble] = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                found.append(_read(path))
            except _NewerFileError:
                troubles.append(Trouble(kind=TroubleKind.NEWER, file=path.name))
            except (OSError, msgspec.DecodeError, ValueError):
                troubles.append(_set_aside(path))
        found.sort(key=lambda one: one.changed_at, reverse=True)
        return Loaded(conversations=tuple(found), troubles=tuple(troubles))

    def save(self, conversation: Conversation) -> Trouble | None:
        """Write a conversation; the trouble, if it could not be written."""
        if self._folder is None:
            return None
        path = self._path(conversation.id)
        beside = path.with_suffix(".part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_bytes(_encoder.encode(_File(version=_VERSION, conversation=conversation)))
            beside.replace(path)
        except OSError:
            return Trouble(kind=TroubleKind.NOT_KEPT, file=path.name)
        return None

    def forget(self, conversation: ConversationId) -> Trouble | None:
        """Delete a conversation for good."""
        if self._folder is None:
            return None
        try:
            self._path(conversation).unlink(missing_ok=True)
        except OSError:
            return Trouble(kind=TroubleKind.NOT_DELETED, file=f"{conversation}{_SUFFIX}")
        return None

    def _path(self, conversation: ConversationId) -> Path:
        if self._folder is None or _ID.fullmatch(conversation) is None:
            raise ValueError(conversation)
        return self._folder / f"{conversation}{_SUFFIX}"


def _read(path: Path) -> Conversation:
    file = _decoder.decode(path.read_bytes())
    if file.version > _VERSION:
        raise _NewerFileError
    if _ID.fullmatch(file.conversation.id) is None or file.conversation.id != path.stem:
        raise ValueError(path.name)
    return settle(file.conversation)


def _set_aside(path: Path) -> Trouble:
    number = 1
    while (aside := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    try:
        path.rename(aside)
    except OSError:
        return Trouble(kind=TroubleKind.UNREADABLE, file=path.name)
    return Trouble(kind=TroubleKind.SET_ASIDE, file=aside.name)
