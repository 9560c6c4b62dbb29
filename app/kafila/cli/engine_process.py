"""`kafila engine`: the engine as a child process of the window, or of a demo."""

import argparse
import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafila.cli.compose import open_world
from kafila.domain.wire import Output
from kafila.engine.engine import Engine
from kafila.engine.process import serve_over_pipes

if TYPE_CHECKING:
    from kafila.domain.commands import Command


def run(arguments: argparse.Namespace) -> int:
    """Serve the client at the other end of the pipes until it goes."""

    async def run_engine(say: Callable[[Output], None], commands: "asyncio.Queue[Command | None]") -> None:
        async with open_world(arguments.profile, ephemeral=arguments.ephemeral) as world:
            await Engine(world, say).run(commands)

    asyncio.run(serve_over_pipes(run_engine))
    return 0
