"""The engine as a whole, with all its real parts: what it was told before its end still counts."""

import asyncio
from pathlib import Path

import pytest

from kafila.cli.compose import open_world
from kafila.domain.commands import Command, Rename
from kafila.engine.engine import Engine


async def test_what_was_said_before_the_end_is_done_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above all the goodbye to the others, which is the last of it."""
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    commands: asyncio.Queue[Command | None] = asyncio.Queue()
    names = ["Attic", "Blue", "Cellar", "Den"]
    for name in names:
        commands.put_nowait(Rename(machine=name, owner=""))
    commands.put_nowait(None)
    async with open_world(None, ephemeral=True) as world, asyncio.timeout(60):
        await Engine(world, lambda _: None).run(commands)
        assert world.settings.value.machine == names[-1]
