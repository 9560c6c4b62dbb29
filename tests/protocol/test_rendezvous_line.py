"""Lines: what is acknowledged is forgotten, what is not is sent again."""

import pytest

from kafila.domain.errors import PeerError
from kafila.protocol.rendezvous_line import ACK_EVERY_BYTES, ACK_EVERY_MESSAGES, Line


def test_only_what_was_not_acknowledged_is_sent_again() -> None:
    line = Line()
    for number in range(5):
        line.push(bytes([number]) * 10)
    line.acknowledge(2)
    assert (line.waiting, line.waiting_bytes) == (3, 30)
    assert [data[0] for data in line.resume(3)] == [3, 4]
    assert line.resume(5) == ()
    assert line.waiting_bytes == 0


@pytest.mark.parametrize("received", [-1, 1, 6])
def test_an_acknowledgement_of_what_was_never_sent_is_a_fault(received: int) -> None:
    line = Line()
    for _ in range(5):
        line.push(b"x")
    line.acknowledge(2)
    with pytest.raises(PeerError):
        line.acknowledge(received)


def test_it_is_time_to_acknowledge_after_many_messages_or_many_bytes() -> None:
    line = Line()
    due = [line.take_in(1) for _ in range(ACK_EVERY_MESSAGES)]
    assert due == [False] * (ACK_EVERY_MESSAGES - 1) + [True]
    assert line.said_received() == ACK_EVERY_MESSAGES
    assert not line.take_in(1)
    assert line.take_in(ACK_EVERY_BYTES)
