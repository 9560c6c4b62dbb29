"""What `kafila` understands on its command line.

Exit codes: 0 done · 1 it could not be done, and a sentence says why · 2 the command line or a
file is malformed · 3 the planner refused: the model does not fit.
"""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kafila import __version__
from kafila.cli import arguments as typed
from kafila.cli import bench, doctor, plan
from kafila.domain.errors import UserError
from kafila.domain.plan import Objective
from kafila.engine.faults import first_cause

Run = Callable[[argparse.Namespace], int]

_count = typed.at_least(1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; nothing that goes wrong reaches a person as a traceback."""
    try:
        try:
            return _main(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone, as “| head” does. Nothing can be said to them, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _main(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    run_command: Run = arguments.run
    logging.basicConfig(
        level=logging.INFO if arguments.verbose else logging.ERROR,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    try:
        return run_command(arguments)
    except UserError as error:
        print(error.problem.sentence(), file=sys.stderr)
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    except BrokenPipeError:
        raise
    except BaseExceptionGroup as group:
        if isinstance(cause := first_cause(group), BrokenPipeError):
            raise cause from None
        return _crash(group)
    except Exception as error:  # noqa: BLE001  # the outermost place: a person reads a sentence
        return _crash(error)


# Each command is imported when it is given: Qt only for the window, MLX only for an engine.


def _window(arguments: argparse.Namespace) -> int:
    from kafila.cli.window import run

    return run(arguments)


def _demo(arguments: argparse.Namespace) -> int:
    from kafila.cli.terminal import run_demo

    return run_demo(arguments)


def _host(arguments: argparse.Namespace) -> int:
    from kafila.cli.terminal import run_host

    return run_host(arguments)


def _join(arguments: argparse.Namespace) -> int:
    from kafila.cli.terminal import run_join

    return run_join(arguments)


def _rendezvous(arguments: argparse.Namespace) -> int:
    from kafila.cli.rendezvous import run

    return run(arguments)


def _engine(arguments: argparse.Namespace) -> int:
    from kafila.cli.engine_process import run

    return run(arguments)


def _crash(error: BaseException) -> int:
    logging.getLogger(__name__).info("an unexpected failure", exc_info=error)
    print(
        "Kafila itself failed. Run the same command with --verbose to see why, and report it.",
        file=sys.stderr,
    )
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafila",
        description="Run a large model together: several people’s computers share the work.",
        epilog="Without a command, Kafila opens its window.",
    )
    parser.add_argument("--version", action="version", version=f"kafila {__version__}")
    parser.set_defaults(run=_window)
    _add_common(parser, verbose=False, profile=None)
    common = argparse.ArgumentParser(add_help=False)
    _add_common(common, verbose=argparse.SUPPRESS)
    profile = argparse.ArgumentParser(add_help=False)
    _add_common(profile, profile=argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="kafila")

    window = commands.add_parser("window", parents=[common, profile], help="open the window (the default)")
    window.set_defaults(run=_window)

    demo = commands.add_parser(
        "demo",
        parents=[common, profile],
        help="try it: a ring of engines on this one computer, with a small real model",
        description="Form a real ring of several engines on this computer and ask it something.",
    )
    demo.add_argument("--headless", action="store_true", help="without the window")
    demo.add_argument("--members", type=_count, default=3, metavar="N", help="engines in the ring (3)")
    _add_generation(demo, default_prompt="What is the capital of France?")
    demo.set_defaults(run=_demo)

    host = commands.add_parser(
        "host",
        parents=[common, profile],
        help="open a session and get a code for the others",
        description="Host a session: prints the code, waits for the others, forms the ring. With "
        "--prompt it answers and ends the session; without, it serves until interrupted.",
    )
    host.add_argument("--model", required=True, help="“demo”, or a folder in mlx-lm’s format")
    host.add_argument("--members", type=_count, required=True, metavar="N", help="start with so many, you included")
    host.add_argument("--admit", choices=["ask", "all"], default="ask", help="who decides over newcomers (ask)")
    host.add_argument(
        "--objective",
        choices=[*Objective],
        default=Objective.FASTEST,
        help="fastest: most words a second for the people at once; balanced: the shortest slowest part (fastest)",
    )
    host.add_argument("--context", type=_count, default=4096, metavar="T", help="tokens a conversation may have (4096)")
    host.add_argument("--concurrency", type=_count, default=1, metavar="C", help="conversations at once (1)")
    _add_network(host)
    host.add_argument(
        "--open-port",
        action="store_true",
        help="have the router open a port while the session lasts, so that people elsewhere can join with the link",
    )
    _add_generation(host, default_prompt=None)
    host.set_defaults(run=_host)

    join = commands.add_parser(
        "join",
        parents=[common, profile],
        help="join a session with a code or an invitation link",
    )
    join.add_argument("code", metavar="CODE", help="the code, or the kafila://join/… link")
    join.add_argument("--name", help="what this computer is called in the session")
    _add_network(join)
    join.add_argument("--json", action="store_true", help="one JSON object a line on stdout")
    join.set_defaults(run=_join)

    rendezvous = commands.add_parser(
        "rendezvous",
        parents=[common],
        help="run the meeting point for a group whose members are on different networks",
    )
    rendezvous.add_argument("--listen", action="append", metavar="HOST:PORT", help="repeat for more addresses")
    rendezvous.add_argument(
        "--secret-file",
        type=Path,
        metavar="FILE",
        help="kept from start to start, so that sessions go on after a restart; made where it is not there",
    )
    rendezvous.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="for its name, from an authority, as PEM; without one it makes its own, known by the fingerprint",
    )
    rendezvous.add_argument("--key", type=Path, metavar="FILE", help="the certificate’s key, as PEM")
    rendezvous.add_argument("--json", action="store_true", help="one JSON object a line on stdout")
    rendezvous.set_defaults(run=_rendezvous)

    plan.add_parser(commands, parents=[common])
    bench.add_parser(commands, parents=[common])
    doctor.add_parser(commands, parents=[common])

    engine = commands.add_parser("engine", parents=[common, profile])
    engine.add_argument("--ephemeral", action="store_true", help=argparse.SUPPRESS)
    engine.set_defaults(run=_engine)
    return parser


def _add_common(parser: argparse.ArgumentParser, **defaults: object) -> None:
    """Options that may stand before the command or after it; what is not given there changes nothing."""
    if "verbose" in defaults:
        parser.add_argument(
            "--verbose", action="store_true", default=defaults["verbose"], help="say on stderr what happens inside"
        )
    if "profile" in defaults:
        parser.add_argument(
            "--profile", metavar="NAME", default=defaults["profile"], help="keep this instance's settings and key apart"
        )


def _add_network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rendezvous",
        type=typed.rendezvous,
        metavar=typed.RENDEZVOUS,
        help="the group’s rendezvous, for other networks; with the fingerprint no other can take its place",
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help="where this computer listens")


def _add_generation(parser: argparse.ArgumentParser, *, default_prompt: str | None) -> None:
    if default_prompt is None:
        parser.add_argument("--prompt", action="append", default=[], metavar="TEXT", help="ask this, then end")
    else:
        parser.add_argument("--prompt", default=default_prompt, metavar="TEXT", help="what to ask")
    parser.add_argument("--max-tokens", type=_count, default=256, metavar="N", help="longest answer (256)")
    parser.add_argument(
        "--temperature", type=_temperature, default=0.0, metavar="T", help="0: always the likeliest word (0)"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout; everything else on stderr")


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 5.0:
        message = f"“{text}” is not a number from 0 to 5"
        raise argparse.ArgumentTypeError(message)
    return value
