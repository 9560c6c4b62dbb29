"""The lines between an engine and its client."""

import msgspec
import pytest

from kafila.domain.capability import Machine
from kafila.domain.chat import AnswerFailed
from kafila.domain.commands import Ask, ChatMessage, Command, HostSession, LeaveSession
from kafila.domain.errors import Problem
from kafila.domain.ids import ConversationId, MemberId
from kafila.domain.snapshot import Ended, Snapshot, ThisComputer
from kafila.domain.wire import Output, decode_command, decode_output, encode_line

ME = ThisComputer(member=MemberId("00" * 8), machine=Machine(name="Desk"))
PROBLEM = Problem(title="It broke", advice="Try again.")


@pytest.mark.parametrize(
    "command",
    [
        HostSession(model="demo"),
        LeaveSession(),
        Ask(conversation=ConversationId("c"), answer=1, messages=(ChatMessage(role="user", text="a\nb"),)),
    ],
)
def test_a_command_is_one_line(command: Command) -> None:
    line = encode_line(command)
    assert line.count(b"\n") == 1
    assert decode_command(line) == command


@pytest.mark.parametrize(
    "output",
    [
        Snapshot(me=ME, models=(), session=Ended(reason=PROBLEM, failed=True)),
        AnswerFailed(conversation=ConversationId("c"), answer=1, problem=PROBLEM),
    ],
)
def test_an_output_is_one_line(output: Output) -> None:
    assert decode_output(encode_line(output)) == output


@pytest.mark.parametrize("line", [b"", b"{}", b'{"type":"dance"}', b"\xff\n"])
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_command(line)
    with pytest.raises(msgspec.DecodeError):
        decode_output(line)
