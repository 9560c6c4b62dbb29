"""`kafila demo`, `host` and `join`: a person at a terminal, as a client of the engine."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine

from kafila.cli.compose import open_world
from kafila.cli.doorkeeper import Doorkeeper
from kafila.cli.interruption import when_interrupted
from kafila.cli.report import Reporter, answer_object
from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerText, ChatEvent
from kafila.domain.commands import (
    Admission,
    Ask,
    ChatMessage,
    Command,
    HostSession,
    JoinSession,
    Rename,
    TryDemo,
)
from kafila.domain.errors import Problem, UserError
from kafila.domain.ids import ConversationId
from kafila.domain.plan import Objective, Refusal
from kafila.domain.snapshot import Ended, Idle, Serving, Snapshot, WaitingRoom
from kafila.domain.wire import Output
from kafila.engine.engine import Engine
from kafila.engine.process import claim_stdout

EXIT_FAILED, EXIT_REFUSED = 1, 3


def run_demo(arguments: argparse.Namespace) -> int:
    """The demo ring; without a screen it says so and goes on without the window."""
    from kafila.cli.window import has_screen, run  # the window is optional here

    if not arguments.headless:
        if has_screen():
            return run(arguments)
        print("There is no screen here, so the demo runs in the terminal.", file=sys.stderr)
    return _drive(arguments, _demo)


def run_host(arguments: argparse.Namespace) -> int:
    """Host a session."""
    return _drive(arguments, _host)


def run_join(arguments: argparse.Namespace) -> int:
    """Join a session."""
    return _drive(arguments, _join)


class SessionOverError(Exception):  # an end, which may be a good one
    """The session is over, and the person has been told why."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Terminal:
    """Commands in, snapshots out, as for the window."""

    def __init__(self, reporter: Reporter) -> None:
        self.commands: asyncio.Queue[Command | None] = asyncio.Queue()
        self._reporter = reporter
        self._newest: Snapshot | None = None
        self._snapshots: asyncio.Queue[Snapshot] = asyncio.Queue()
        self._answers: asyncio.Queue[ChatEvent] = asyncio.Queue()

    def say(self, output: Output) -> None:
        """Take what the engine says."""
        if isinstance(output, Snapshot):
            self._newest = output
            self._reporter.show(output)
            self._snapshots.put_nowait(output)
        else:
            self._answers.put_nowait(output)

    def do(self, command: Command | None) -> None:
        """Ask the engine for something; None ends it."""
        self.commands.put_nowait(command)

    def serving(self) -> Serving:
        """The ring as it was shown last. Raises SessionOverError where it does not serve any more."""
        if self._newest is None or not isinstance(self._newest.session, Serving):
            raise SessionOverError(EXIT_FAILED)
        return self._newest.session

    async def until_serving(self, members: int, doorkeeper: Doorkeeper | None = None) -> None:
        """Wait for the ring. Raises SessionOverError, or UserError, where so many cannot form one."""
        while not isinstance((snapshot := await self._snapshots.get()).session, Serving):
            self._stop_if_over(snapshot)
            if isinstance(room := snapshot.session, WaitingRoom):
                if isinstance(room.plan, Refusal) and len(room.members) >= members:
                    print(room.plan.sentence, *room.plan.help, file=sys.stderr)
                    raise SessionOverError(EXIT_REFUSED)
                if doorkeeper is not None:
                    doorkeeper.look(room)

    async def until_over(self) -> None:
        """Wait until the session has ended. Raises SessionOverError, or UserError."""
        while True:
            self._stop_if_over(await self._snapshots.get())

    def _stop_if_over(self, snapshot: Snapshot) -> None:
        match snapshot.session:
            case Ended(failed=failed):
                raise SessionOverError(EXIT_FAILED if failed else 0)
            case Idle(problem=Problem() as problem):
                raise UserError(title=problem.title, advice=problem.advice)
            case _:
                pass

    async def ask(
        self, prompt: str, arguments: argparse.Namespace, on_text: Callable[[str], None]
    ) -> tuple[str, AnswerDone]:
        """Ask one question in a conversation of its own. Raises UserError where it fails."""
        conversation = ConversationId(os.urandom(8).hex())
        self.do(
            Ask(
                conversation=conversation,
                answer=1,
                messages=(ChatMessage(role="user", text=prompt),),
                max_tokens=arguments.max_tokens,
                temperature=arguments.temperature,
                top_p=1.0,
            )
        )
        text = ""
        while True:
            match await self._answers.get():
                case AnswerText(text=more):
                    text += more
                    on_text(more)
                case AnswerDone() as done:
                    return text, done
                case AnswerFailed(problem=problem):
                    raise UserError(title=problem.title, advice=problem.advice)
                case _:
                    pass


Client = Callable[[argparse.Namespace, Terminal, Reporter], Coroutine[None, None, int]]


def _drive(arguments: argparse.Namespace, client: Client) -> int:
    with os.fdopen(claim_stdout(), "w") as out:
        return asyncio.run(_run(arguments, client, Reporter(out, as_json=arguments.json)))


async def _run(arguments: argparse.Namespace, client: Client, reporter: Reporter) -> int:
    terminal = Terminal(reporter)
    interrupted = when_interrupted()
    async with (
        open_world(arguments.profile, ephemeral=False) as world,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(Engine(world, terminal.say).run(terminal.commands))
        work = tasks.create_task(_code_of(client(arguments, terminal, reporter)))
        stop = tasks.create_task(interrupted.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            code = 0 if stop.done() else work.result()
        finally:
            terminal.do(None)
            work.cancel()
            stop.cancel()
    if isinstance(code, UserError):
        raise code
    return code


async def _code_of(work: Coroutine[None, None, int]) -> int | UserError:
    """How the client's work ended, as a value, so that the engine can still say goodbye."""
    try:
        return await work
    except SessionOverError as over:
        return over.code
    except UserError as error:
        return error


async def _demo(arguments: argparse.Namespace, terminal: Terminal, reporter: Reporter) -> int:
    reporter.silent_events = True
    terminal.do(TryDemo(members=arguments.members))
    await terminal.until_serving(arguments.members)
    await _answer(arguments.prompt, arguments, terminal, reporter)
    return 0


async def _host(arguments: argparse.Namespace, terminal: Terminal, reporter: Reporter) -> int:
    terminal.do(
        HostSession(
            model=arguments.model,
            context=arguments.context,
            concurrency=arguments.concurrency,
            objective=Objective(arguments.objective),
            admission=Admission(arguments.admit),
            start_at=arguments.members,
            rendezvous=arguments.rendezvous,
            listen=arguments.listen,
            open_port=arguments.open_port,
        )
    )
    asks = arguments.admit == Admission.ASK
    await terminal.until_serving(arguments.members, Doorkeeper(terminal.do) if asks else None)
    for prompt in arguments.prompt:
        await _answer(prompt, arguments, terminal, reporter)
    if not arguments.prompt:
        reporter.tell("Serving. Press Ctrl+C to end the session for everyone.")
        await terminal.until_over()
    return 0


async def _join(arguments: argparse.Namespace, terminal: Terminal, reporter: Reporter) -> int:
    del reporter
    if arguments.name:
        terminal.do(Rename(machine=arguments.name, owner=""))
    terminal.do(JoinSession(code=arguments.code, rendezvous=arguments.rendezvous, listen=arguments.listen))
    await terminal.until_over()
    return 0


async def _answer(prompt: str, arguments: argparse.Namespace, terminal: Terminal, reporter: Reporter) -> None:
    text, done = await terminal.ask(prompt, arguments, reporter.text)
    reporter.text("\n")
    answer = answer_object(prompt=prompt, text=text, done=done, serving=terminal.serving())
    if reporter.silent_events and reporter.as_json:
        reporter.object(answer)
    else:
        reporter.event("answer", **answer)
    speed = f"{done.stats.tokens_per_second:.1f} tokens a second"
    reporter.tell(f"({speed}, the first after {done.stats.time_to_first_token_s:.1f} s)")
