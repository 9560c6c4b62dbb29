"""A link, as the rest of the program has it in hand: send, receive, close.

What drives it from below is `kafila.network.link_session`.
"""

import asyncio
from typing import Protocol

from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.network.link_channels import HIGH_WATER_BYTES, Inbox, Outbox
from kafila.protocol.links import MAX_MESSAGE_BYTES, Channel, LinkClosed


class LinkDriver(Protocol):
    """What a link asks of whatever carries it."""

    def wake(self) -> None:
        """There is something to send, or something was taken out."""
        ...

    def leave(self) -> None:
        """Close the connection in good order."""
        ...

    def path(self) -> PathKind:
        """How datagrams travel now."""
        ...

    def rtt_ms(self) -> float | None:
        """The round trip of that path."""
        ...


class Link:
    """One mutually authenticated connection with a peer."""

    def __init__(self, peer: MemberId, driver: LinkDriver) -> None:
        self.peer = peer
        # Tuples, by the channel's number: a packet looks here several times, and hashing an enum is slow.
        self.outboxes = tuple(Outbox() for _ in Channel)
        self.inboxes = tuple(Inbox() for _ in Channel)
        self._driver = driver
        self._room = tuple(asyncio.Event() for _ in Channel)
        self._arrived = tuple(asyncio.Event() for _ in Channel)
        self._delivered = tuple(asyncio.Event() for _ in Channel)
        self._ended: str | None = None

    @property
    def path(self) -> PathKind:
        """How the link's datagrams travel now."""
        return self._driver.path()

    @property
    def rtt_ms(self) -> float | None:
        """The round trip on that path, once it is measured."""
        return self._driver.rtt_ms()

    @property
    def tx_bytes(self) -> int:
        """Bytes of messages sent so far."""
        return sum(outbox.sent_bytes for outbox in self.outboxes)

    @property
    def rx_bytes(self) -> int:
        """Bytes of messages received so far."""
        return sum(inbox.received_bytes for inbox in self.inboxes)

    async def send(self, channel: Channel, message: bytes) -> None:
        """Queue a message, once the channel has room for it. Raises LinkClosed.

        A cancelled `send` has sent nothing; one that returned is delivered whole, in order, or the
        link is lost. Channels do not wait for one another.
        """
        if len(message) > MAX_MESSAGE_BYTES:
            text = f"a message of {len(message)} bytes is too long for a link"
            raise ValueError(text)
        outbox = self.outboxes[channel]
        while self._ended is None and outbox.waiting_bytes >= HIGH_WATER_BYTES:
            self._room[channel].clear()
            await self._room[channel].wait()
        if self._ended is not None:
            raise LinkClosed(self._ended)
        outbox.put(message)
        self._delivered[channel].clear()
        self._driver.wake()

    async def delivered(self, channel: Channel) -> None:
        """Wait until the peer has acknowledged all that was sent on the channel, or the link is over."""
        await self._delivered[channel].wait()

    async def receive(self, channel: Channel) -> bytes:
        """The next message of the channel. Raises LinkClosed when no more will come."""
        inbox = self.inboxes[channel]
        while (message := inbox.take()) is None:
            if self._ended is not None:
                raise LinkClosed(self._ended)
            self._arrived[channel].clear()
            await self._arrived[channel].wait()
        self._driver.wake()
        return message

    def close(self) -> None:
        """Leave; the peer is told. What it has not acknowledged may be lost: see `delivered`."""
        self._driver.leave()

    # For the driver

    def tell_room(self, channel: Channel) -> None:
        """The channel can take more messages."""
        self._room[channel].set()

    def tell_delivered(self, channel: Channel) -> None:
        """The peer has all of the channel."""
        self._delivered[channel].set()

    def tell_arrived(self, channel: Channel) -> None:
        """The channel has more bytes."""
        self._arrived[channel].set()

    def end(self, reason: str) -> None:
        """Nothing more goes or comes."""
        if self._ended is None:
            self._ended = reason
            for event in (*self._room, *self._arrived, *self._delivered):
                event.set()
