"""The memory of a line: what was sent and not yet acknowledged, and how much has been taken in.

Both sides of a line keep one. A WebSocket delivers in order, so a count is all that is needed to
know, after a dropped connection, which messages the other side has not seen.
"""

from collections import deque

from kafila.domain.errors import PeerError

ACK_EVERY_MESSAGES = 16
ACK_EVERY_BYTES = 128 << 10


class Line:
    """Counts the numbered messages of one line in both directions."""

    def __init__(self) -> None:
        self.received = 0
        """Numbered messages taken in."""
        self.waiting_bytes = 0
        """Bytes of messages that the other side has not acknowledged."""
        self._unacknowledged: deque[bytes] = deque()
        self._acknowledged = 0
        self._unsaid_messages = 0
        self._unsaid_bytes = 0

    @property
    def waiting(self) -> int:
        """Messages that the other side has not acknowledged."""
        return len(self._unacknowledged)

    def push(self, data: bytes) -> None:
        """Remember a numbered message until it is acknowledged."""
        self._unacknowledged.append(data)
        self.waiting_bytes += len(data)

    def acknowledge(self, received: int) -> None:
        """The other side has taken in so many. Raises PeerError where that cannot be."""
        if not 0 <= received - self._acknowledged <= len(self._unacknowledged):
            fault = "an acknowledgement of messages that were never sent"
            raise PeerError(fault)
        while self._acknowledged < received:
            self.waiting_bytes -= len(self._unacknowledged.popleft())
            self._acknowledged += 1

    def resume(self, received: int) -> tuple[bytes, ...]:
        """What to send again on a new connection, oldest first. Raises as `acknowledge` does."""
        self.acknowledge(received)
        return tuple(self._unacknowledged)

    def take_in(self, size_bytes: int) -> bool:
        """Count a numbered message that came; true where it is time to acknowledge."""
        self.received += 1
        self._unsaid_messages += 1
        self._unsaid_bytes += size_bytes
        return self._unsaid_messages >= ACK_EVERY_MESSAGES or self._unsaid_bytes >= ACK_EVERY_BYTES

    def said_received(self) -> int:
        """`received`, on its way to the other side."""
        self._unsaid_messages = self._unsaid_bytes = 0
        return self.received
