"""The engine's process from the window's side: started, listened to, ended, and mourned."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from helpers import snapshots
from helpers.fake_engine import DIE, HANG, heard, write_script
from kafila.domain.chat import AnswerText, ChatEvent
from kafila.domain.commands import LeaveSession, NewCode, TryDemo
from kafila.domain.ids import ConversationId
from kafila.domain.snapshot import Serving, Snapshot
from kafila.gui import bridge
from kafila.gui.bridge import EngineProcess, EngineStopped

pytestmark = [pytest.mark.loopback, pytest.mark.usefixtures("qapp")]


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - what Qt draws sets no event
            await asyncio.sleep(0.01)


class Listener:
    """What came from an engine."""

    def __init__(self, engine: EngineProcess) -> None:
        self.snapshots: list[Snapshot] = []
        self.chat: list[ChatEvent] = []
        self.stopped: list[EngineStopped] = []
        engine.snapshot.connect(self.snapshots.append)
        engine.chat.connect(self.chat.append)
        engine.stopped.connect(self.stopped.append)


def _words(count: int) -> tuple[AnswerText, ...]:
    return tuple(AnswerText(conversation=ConversationId("c"), answer=1, text=f"{word} ") for word in range(count))


def test_commands_go_in_and_the_newest_snapshot_and_every_word_come_out(
    qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    words = _words(200)
    play = tuple(value for word in words for value in (snapshots.preparing(), word))
    command = write_script(tmp_path, (snapshots.idle(),), {"demo": (*play, snapshots.serving())})

    async def scene() -> None:
        engine = EngineProcess(command)
        listener = Listener(engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await until(lambda: listener.snapshots)
            engine.send(TryDemo())
            await until(lambda: isinstance(listener.snapshots[-1].session, Serving))
            await until(lambda: len(listener.chat) == len(words))
            await engine.stop()
        assert listener.chat == list(words)
        assert len(listener.snapshots) < len(words)
        assert listener.stopped == []
        assert not engine.running

    qt_runner.run(scene())
    assert heard(tmp_path) == ["demo"]


def test_a_dead_engine_is_told_with_its_last_words_and_can_be_started_again(
    qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    command = write_script(tmp_path, (snapshots.idle(),), {"leave": (DIE,)})

    async def scene() -> None:
        engine = EngineProcess(command)
        listener = Listener(engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await until(lambda: listener.snapshots)
            engine.send(LeaveSession())
            await until(lambda: listener.stopped)
            assert listener.stopped[0].exit_code == 3
            assert "the compute library gave up" in listener.stopped[0].report()
            engine.send(NewCode())
            listener.snapshots.clear()
            engine.again()
            await until(lambda: listener.snapshots)
            assert engine.running
            await engine.stop()
        assert len(listener.stopped) == 1

    qt_runner.run(scene())
    assert heard(tmp_path) == ["leave"]


def test_an_engine_that_cannot_be_started_is_told_too(qt_runner: asyncio.Runner, tmp_path: Path) -> None:
    async def scene() -> None:
        engine = EngineProcess((str(tmp_path / "no-such-program"),))
        listener = Listener(engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await until(lambda: listener.stopped)
            await engine.stop()
        assert listener.stopped[0].exit_code is None
        assert "not started" in listener.stopped[0].report()

    qt_runner.run(scene())


def test_an_engine_that_does_not_end_is_ended(
    qt_runner: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "STOP_S", 0.2)
    command = write_script(tmp_path, (snapshots.idle(),), {"demo": (HANG, snapshots.preparing())})

    async def scene() -> None:
        engine = EngineProcess(command)
        listener = Listener(engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await until(lambda: listener.snapshots)
            engine.send(TryDemo())
            await until(lambda: len(listener.snapshots) > 1)
            await engine.stop()
        assert not engine.running
        assert listener.stopped == []

    qt_runner.run(scene())


def test_nonsense_from_an_engine_is_passed_over(
    qt_runner: asyncio.Runner, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nonsense = msgspec.Raw(b'{"type": "surprise"}')
    command = write_script(tmp_path, (), {"demo": (nonsense, snapshots.idle())})

    async def scene() -> None:
        engine = EngineProcess(command)
        listener = Listener(engine)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            await until(lambda: engine.running)
            engine.send(TryDemo())
            await until(lambda: listener.snapshots)
            await engine.stop()

    qt_runner.run(scene())
    assert "something unknown" in caplog.text


def test_an_engine_that_was_being_started_when_the_window_closed_ends_too(
    qt_runner: asyncio.Runner, tmp_path: Path
) -> None:
    command = write_script(tmp_path, (snapshots.idle(),), {})

    async def scene() -> None:
        engine = EngineProcess(command)
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            tasks.create_task(engine.run())
            # The task has begun to make the process, and nobody has seen it yet.
            await asyncio.sleep(0)
            assert not engine.running
            await engine.stop()
        assert not engine.running

    qt_runner.run(scene())
