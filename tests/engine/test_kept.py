"""What is kept between sessions: settings, names, trust, and the device's key."""

import asyncio
import stat
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail

from helpers.sessions import member_id
from kafila.domain.errors import UserError
from kafila.engine.keystore import KEY_BYTES, device_key
from kafila.engine.settings import MAX_TRUSTED, Folders, SettingsFile, describe_machine

KEY = bytes(range(KEY_BYTES))


@contextmanager
def using(backend: KeyringBackend) -> Generator[None]:
    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    try:
        yield
    finally:
        keyring.set_keyring(before)


def new_key() -> bytes:
    return KEY


def no_key() -> bytes:
    raise AssertionError


@pytest.fixture
def no_keyring() -> Iterator[None]:
    """A computer without a keyring: keyring's own backend for that."""
    with using(fail.Keyring()):
        yield


def test_settings_survive(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path)
    settings.change(machine="Attic mini", owner="Kit")
    settings.trust(member_id(5))
    again = SettingsFile(tmp_path)
    assert (again.value.machine, again.value.owner, again.value.trusted) == ("Attic mini", "Kit", (member_id(5),))
    assert describe_machine(again.value).name == "Attic mini"


def test_broken_settings_are_set_aside_and_nothing_stops(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"machine": 7')
    settings = SettingsFile(tmp_path)
    assert settings.value.machine == ""
    assert (tmp_path / "settings.broken.json").read_text() == '{"machine": 7'
    settings.change(machine="New")
    assert SettingsFile(tmp_path).value.machine == "New"


def test_a_momentary_engine_keeps_nothing(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path, kept=False)
    settings.change(machine="Attic mini")
    assert settings.value.machine == "Attic mini"
    assert list(tmp_path.iterdir()) == []


def test_trust_does_not_grow_without_end(tmp_path: Path) -> None:
    settings = SettingsFile(tmp_path, kept=False)
    for number in range(MAX_TRUSTED + 10):
        settings.trust(member_id(number))
    settings.trust(member_id(MAX_TRUSTED))
    assert len(settings.value.trusted) == MAX_TRUSTED
    assert member_id(MAX_TRUSTED + 9) in settings.value.trusted


def test_profiles_are_apart_and_models_are_shared() -> None:
    one, other = Folders.of("one"), Folders.of(None)
    assert one.config != other.config
    assert one.data != other.data
    assert one.models == other.models


@pytest.mark.parametrize("name", ["../up", "a b", "", "x" * 33, "ü"])
def test_a_name_that_is_no_profile_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="not a profile"):
        Folders.of(name)


@pytest.mark.usefixtures("no_keyring")
async def test_without_a_keyring_the_key_lies_in_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    key, notice = await device_key(tmp_path / "profile", account="test", new_key=new_key)
    assert key == KEY
    assert notice is not None
    assert "file" in notice.advice
    path = tmp_path / "profile" / "device.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await device_key(tmp_path / "profile", account="test", new_key=no_key) == (KEY, notice)


@pytest.mark.usefixtures("no_keyring")
async def test_a_key_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    key, notice = await device_key(in_the_way / "profile", account="test", new_key=new_key)
    assert key == KEY
    assert notice is not None
    assert "could not be kept" in notice.title


class InMemory(KeyringBackend):
    priority: float = 1  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


class Locked(KeyringBackend):
    """Waits for somebody to unlock it."""

    priority: float = 1  # pyright: ignore[reportIncompatibleVariableOverride, reportAssignmentType]

    def __init__(self) -> None:
        super().__init__()
        self.unlocked = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        del service, username
        self.unlocked.wait(60)

    def set_password(self, service: str, username: str, password: str) -> None:
        del service, username, password
        self.unlocked.wait(60)


async def test_with_a_keyring_the_key_lies_there(tmp_path: Path) -> None:
    with using(InMemory()):
        assert await device_key(tmp_path, account="test", new_key=new_key) == (KEY, None)
        assert await device_key(tmp_path, account="test", new_key=no_key) == (KEY, None)
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240 - nothing waits for it


async def test_a_keyring_that_never_answers_does_not_hold_anyone_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafila.engine.keystore.KEYRING_PATIENCE_S", 0.05)
    locked = Locked()
    with using(locked):
        async with asyncio.timeout(30):
            key, notice = await device_key(tmp_path, account="test", new_key=new_key)
        locked.unlocked.set()
        # What still waits would go on with the next test's keyring.
        while any(thread.name == "keyring" for thread in threading.enumerate()):  # noqa: ASYNC110 - threads set no event
            await asyncio.sleep(0.01)
    assert key == KEY
    assert notice is not None
