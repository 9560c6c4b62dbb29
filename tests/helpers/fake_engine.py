"""An engine at the edge: it speaks the lines of `domain.wire` and plays prepared snapshots.

    python fake_engine.py SCRIPT

The script is a JSON file: what to say at first, and what to say after each kind of command. It
ends when its input closes, as a real engine does; "die" as an answer ends it with code 3.
"""

import sys
from pathlib import Path

import msgspec

from kafila.domain.wire import Output, decode_command


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What a fake engine says."""

    first: tuple[msgspec.Raw, ...] = ()
    after: dict[str, tuple[msgspec.Raw, ...]] = {}
    """By the command's tag. A command that is not here is ignored."""
    heard: str
    """The file to which commands are written as they come."""


DIE = msgspec.Raw(b'"die"')
HANG = msgspec.Raw(b'"hang"')


def write_script(
    folder: Path, first: tuple[Output, ...], after: dict[str, tuple[Output | msgspec.Raw, ...]] | None = None
) -> tuple[str, ...]:
    """Write a script; the command that starts an engine of it."""
    encoder = msgspec.json.Encoder()

    def raw(value: Output | msgspec.Raw) -> msgspec.Raw:
        return value if isinstance(value, msgspec.Raw) else msgspec.Raw(encoder.encode(value))

    script = Script(
        first=tuple(raw(value) for value in first),
        after={tag: tuple(raw(value) for value in values) for tag, values in (after or {}).items()},
        heard=str(folder / "heard.jsonl"),
    )
    path = folder / "script.json"
    path.write_bytes(encoder.encode(script))
    return (sys.executable, str(Path(__file__).resolve()), str(path))


def heard(folder: Path) -> list[str]:
    """The tags of the commands that came, in their order."""
    path = folder / "heard.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line)["type"] for line in lines]


def _say(values: tuple[msgspec.Raw, ...]) -> None:
    for value in values:
        if bytes(value) == bytes(DIE):
            sys.stderr.write("the compute library gave up\n")
            sys.stderr.flush()
            sys.exit(3)
        sys.stdout.buffer.write(bytes(value) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Play the script."""
    script = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Script)
    _say(script.first)
    hang = False
    with Path(script.heard).open("ab") as kept:
        for line in sys.stdin.buffer:
            decode_command(line)
            kept.write(line)
            kept.flush()
            answers = script.after.get(msgspec.json.decode(line)["type"], ())
            hang = hang or HANG in answers
            _say(tuple(answer for answer in answers if answer != HANG))
    while hang:
        sys.stdin.buffer.read(1)


if __name__ == "__main__":
    main()
