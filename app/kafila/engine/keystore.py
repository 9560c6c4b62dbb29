"""The device's private key: in the system's keyring, or in a file that only its owner reads.

A keyring call can wait for ever on a locked keyring, so it runs on a thread of its own with a
time limit, and is never waited for at exit.
"""

import asyncio
import base64
import binascii
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import keyring
from keyring.errors import KeyringError

from kafila.domain.errors import Problem

log = logging.getLogger(__name__)

SERVICE = "kafila"
KEY_BYTES = 32
KEYRING_PATIENCE_S = 4.0

_T = TypeVar("_T")


async def device_key(folder: Path, *, account: str, new_key: Callable[[], bytes]) -> tuple[bytes, Problem | None]:
    """The device's 32-byte key, made on first use; and a notice where it lies in a file."""
    path = folder / "device.key"
    with contextlib.suppress(OSError):
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key, _IN_A_FILE
    key = await _from_keyring(account)
    if key is not None:
        return key, None
    key = new_key()
    if await _to_keyring(account, key):
        return key, None
    return key, _write_file(path, key)


async def _from_keyring(account: str) -> bytes | None:
    text = await _bounded(lambda: keyring.get_password(SERVICE, account))
    try:
        key = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except binascii.Error:
        return None
    return key if len(key) == KEY_BYTES else None


async def _to_keyring(account: str, key: bytes) -> bool:
    text = base64.b64encode(key).decode()

    def keep() -> bool:
        keyring.set_password(SERVICE, account, text)
        return keyring.get_password(SERVICE, account) == text

    return await _bounded(keep) is True


async def _bounded(call: Callable[[], _T]) -> _T | None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_T | None] = loop.create_future()

    def give(value: _T | None) -> None:
        if not answer.done():
            answer.set_result(value)

    def run() -> None:
        try:
            value = call()
        except (KeyringError, OSError, RuntimeError):
            value = None
        with contextlib.suppress(RuntimeError):  # the loop may be gone by then
            loop.call_soon_threadsafe(give, value)

    threading.Thread(target=run, name="keyring", daemon=True).start()
    try:
        return await asyncio.wait_for(answer, KEYRING_PATIENCE_S)
    except TimeoutError:
        log.info("the keyring does not answer; it may be locked")
        return None


def _write_file(path: Path, key: bytes) -> Problem:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = path.with_suffix(f".{os.getpid()}.new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
        beside.replace(path)
    except OSError as error:
        log.warning("the device key could not be kept: %s", error.strerror)
        return _NOT_KEPT
    return _IN_A_FILE


_IN_A_FILE = Problem(
    title="This computer has no unlocked keyring",
    advice="Its Kafila key is kept in a file that only you can read.",
)
_NOT_KEPT = Problem(
    title="This computer’s key could not be kept",
    advice="Friends will have to let it in anew each time. Check that your home folder has room.",
)
