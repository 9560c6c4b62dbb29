"""The lines between an engine process and its client: one JSON value a line, both ways."""

import msgspec

from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerQueued, AnswerText
from kafila.domain.commands import Command
from kafila.domain.snapshot import Snapshot

Output = Snapshot | AnswerQueued | AnswerText | AnswerDone | AnswerFailed
"""What an engine says: the newest snapshot, or a chat event."""

MAX_LINE_BYTES = 16 << 20

_encoder = msgspec.json.Encoder()
_commands = msgspec.json.Decoder(Command)
_outputs = msgspec.json.Decoder(Output)


def encode_line(value: Command | Output) -> bytes:
    """One line with its newline."""
    return _encoder.encode(value) + b"\n"


def decode_command(line: bytes) -> Command:
    """Raises msgspec.DecodeError (or its ValidationError) for anything that is not a command."""
    return _commands.decode(line)


def decode_output(line: bytes) -> Output:
    """Raises msgspec.DecodeError (or its ValidationError) for anything that is not an output."""
    return _outputs.decode(line)
