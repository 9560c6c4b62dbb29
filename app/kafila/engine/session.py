"""One session's work on this computer: its socket, its door, its links, its stage.

Created by the engine for an OpenSession or OpenDoor effect; everything that it starts ends with
it. What it learns it reports as events; it decides nothing.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafila.domain.errors import PeerError, UserError
from kafila.domain.ids import MemberId, SessionId
from kafila.domain.snapshot import ThisComputer
from kafila.engine.companions import Companions
from kafila.engine.door import HostDoor, Sign
from kafila.engine.events import (
    CompanionEnded,
    Event,
    Guest,
    Heard,
    LinkChanged,
    OpenDoor,
    Opened,
    OpenSession,
    Welcomed,
)
from kafila.engine.knock import Knocker
from kafila.engine.known_rendezvous import recall
from kafila.engine.ports import Endpoint, Link
from kafila.engine.stage_work import StageWork
from kafila.protocol.control import (
    Declined,
    Form,
    Message,
    Welcome,
    decode_message,
    encode_message,
)
from kafila.protocol.links import Address, Channel, LinkClosed, LinkEvent, Peer
from kafila.protocol.pairing import Introduction, Offer
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.roster import Roster, RosterKeeper
from kafila.protocol.weight_ranges import (
    RangeReply,
    RangeRequest,
    decode_reply,
    decode_request,
    encode_range,
)

if TYPE_CHECKING:
    from kafila.engine.engine import World

log = logging.getLogger(__name__)

FLUSH_PATIENCE_S = 1.5
SAMPLE_S = 0.5
LOOPBACK = "127.0.0.1"


class Session:
    """Everything of a session that has to be closed again."""

    def __init__(self, world: "World", me: ThisComputer, happened: Callable[[Event], None]) -> None:
        self._world = world
        self._me = me
        self._happened = happened
        self._tasks: asyncio.TaskGroup | None = None
        self._running: asyncio.Task[None] | None = None
        self._endpoint: Endpoint | None = None
        self._door: HostDoor | None = None
        self._knocker: Knocker | None = None
        self._folder = Path()
        self._keeper: RosterKeeper | None = None
        self._outgoing: dict[MemberId, asyncio.Queue[bytes]] = {}
        self._talking: dict[MemberId, asyncio.Task[None]] = {}
        self._links: dict[MemberId, Link] = {}
        """Those over which members are spoken with now."""
        self._host: MemberId | None = None
        self._weights = asyncio.Lock()
        self._closing = False
        self.stage = StageWork(
            world,
            me.member,
            happened=happened,
            start=self.start,
            connected=self._connected,
            read_from_host=self._read_from_host,
        )

    # Life ----------------------------------------------------------------------------------------

    async def run(self, opening: OpenSession | OpenDoor) -> None:
        """Open, and stay until closed. Raises what ends the session by accident."""
        self._running = asyncio.current_task()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                if isinstance(opening, OpenSession):
                    await self._open(opening, self._tasks)
                else:
                    await self._enter(opening, self._tasks)
                await asyncio.Event().wait()
        finally:
            await asyncio.shield(self._let_go())

    async def close(self) -> None:
        """Send what is still to be said, then end everything."""
        if self._closing:
            return
        self._closing = True
        await self._flush()
        running = self._running
        if running is not None and not running.done():
            running.cancel()
            await asyncio.wait([running])

    async def _flush(self) -> None:
        linked = [queue for member, queue in self._outgoing.items() if member in self._talking]
        try:
            async with asyncio.timeout(FLUSH_PATIENCE_S):
                for queue in linked:
                    await queue.join()
                for link in tuple(self._links.values()):
                    await link.delivered(Channel.CONTROL)
        except TimeoutError:
            log.info("somebody could not be told goodbye")

    async def _let_go(self) -> None:
        if self._knocker is not None and self._knocker.line is not None:
            await self._knocker.line.close()
        if self._door is not None:
            await self._door.close()
        if self._endpoint is not None:
            await self._endpoint.close()
        await self._world.stage.unload()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None] | None:
        """Run something as a part of the session."""
        if self._tasks is None or self._closing:
            work.close()
            return None
        return self._tasks.create_task(work)

    # Opening and entering ------------------------------------------------------------------------

    async def _open(self, opening: OpenSession, tasks: asyncio.TaskGroup) -> None:
        command = opening.command
        folder, spec = await self._world.models.prepare(command.model)
        self._folder = folder
        listen = _address(command.listen)
        # A session of this computer alone needs nobody's rendezvous.
        at = None if opening.loopback_only else self._configured(command.rendezvous)
        # The one given address is where the door listens; the ring's socket goes beside it.
        beside = Address(listen.host, 0) if listen and (at is None or command.open_port) else listen
        if opening.loopback_only:
            beside = Address(LOOPBACK, 0)
        self._endpoint = await self._world.open_endpoint(beside, self._link_event)
        self._host = self._me.member
        session = SessionId(secrets.token_hex(16))
        group = command.group or f"{self._me.machine.name}’s group"
        sign = Sign(
            me=self._introduction(),
            offer=Offer(session=session, group=group, model=spec.name),
            announce=not opening.loopback_only,
            open_port=command.open_port,
        )
        trusted = self._world.settings.value.trusted
        self._door = HostDoor(
            self._world.doors,
            self._endpoint,
            sign,
            is_known=lambda member: member in trusted,
            happened=self._happened,
        )
        await self._door.open(at, listen, tasks)
        self._happened(
            Opened(
                session=session,
                spec=spec,
                secret=secrets.token_bytes(32),
                spki_sha256=self._world.spki_sha256,
                candidates=self._endpoint.candidates(),
                sign=self._world.sign_roster,
            )
        )
        await self._door.invite()

    async def _enter(self, opening: OpenDoor, tasks: asyncio.TaskGroup) -> None:
        command = opening.command
        self._endpoint = await self._world.open_endpoint(_address(command.listen), self._link_event)
        self._knocker = Knocker(self._world.doors, self._endpoint, self._introduction(), happened=self._happened)
        entry = await self._knocker.enter(command.code, self._configured(command.rendezvous), tasks)
        self._keeper = entry.keeper
        self._host = entry.welcome.host.member
        self._happened(Welcomed(welcome=entry.welcome, host=entry.host))

    def _introduction(self) -> Introduction:
        return Introduction(spki_sha256=self._world.spki_sha256, machine=self._me.machine)

    def _configured(self, given: str | None) -> RendezvousAt | None:
        settings = self._world.settings.value
        return recall(given or settings.rendezvous, settings.certificates)

    def rendezvous(self) -> Address | None:
        """Where this session's rendezvous is, seen from here."""
        holder = self._knocker or self._door
        return None if holder is None or holder.line is None else holder.line.address

    def answer_guest(self, guest: Guest, answer: Welcome | Declined) -> None:
        """Let a guest in, or not."""
        if self._door is not None:
            self.start(self._door.answer(guest, answer))
        if isinstance(answer, Welcome):
            self._world.settings.trust(guest.member)

    def renew_invitation(self) -> None:
        """Another code."""
        if self._door is not None:
            self._door.renew()

    def close_invitation(self) -> None:
        """No code."""
        if self._door is not None:
            self._door.shut()

    def start_companions(self, link: str, count: int) -> None:
        """Start the demo's other engines."""
        companions = Companions(
            self._world.engine_command,
            ended=lambda name: self._happened(CompanionEnded(name=name)),
        )
        names = [f"{self._me.machine.name} ({number + 2})" for number in range(count)]
        self.start(companions.run(link=link, names=names))

    # Talking with members ------------------------------------------------------------------------

    def set_peers(self, peers: Sequence[Peer]) -> None:
        """Exactly these members may have a link with this one."""
        if self._endpoint is None:
            return
        wanted = {peer.member: peer for peer in peers}
        self._endpoint.set_peers(wanted)
        for member in [m for m in self._talking if m not in wanted]:
            self._talking.pop(member).cancel()
            self._outgoing.pop(member, None)
        for member in wanted:
            if member not in self._talking:
                self._queue(member)
                talk = self.start(self._talk(self._endpoint, member))
                if talk is not None:
                    self._talking[member] = talk

    def _queue(self, member: MemberId) -> asyncio.Queue[bytes]:
        return self._outgoing.setdefault(member, asyncio.Queue(maxsize=1024))

    def send(self, to: MemberId, message: Message) -> None:
        """Say something to a member, or to this computer's own other role."""
        if to == self._me.member:
            self._happened(Heard(sender=to, message=message))
            return
        try:
            self._queue(to).put_nowait(encode_message(message))
        except asyncio.QueueFull:
            log.warning("a message to %s was dropped: it does not take any", to)

    async def _talk(self, endpoint: Endpoint, member: MemberId) -> None:
        queue = self._queue(member)
        while True:
            try:
                endpoint.open_link(member)
                await self._converse(await endpoint.connected(member), queue)
            except* LinkClosed as group:
                log.info("the link with %s is over: %s", member, group.exceptions[0])
            except* PeerError as group:
                log.warning("%s broke the protocol: %s", member, group.exceptions[0])
            _stay_cancelled()
            await asyncio.sleep(SAMPLE_S)

    async def _converse(self, link: Link, queue: asyncio.Queue[bytes]) -> None:
        self._links[link.peer] = link
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._speak(link, queue))
                tasks.create_task(self._listen(link))
                if self._host == self._me.member:
                    tasks.create_task(self._give_weights(link))
        finally:
            del self._links[link.peer]

    async def _speak(self, link: Link, queue: asyncio.Queue[bytes]) -> None:
        while True:
            data = await queue.get()
            try:
                await link.send(Channel.CONTROL, data)
            finally:
                queue.task_done()

    async def _listen(self, link: Link) -> None:
        while True:
            message = decode_message(await link.receive(Channel.CONTROL))
            if isinstance(message, Form) and not is_believed(message, self._keeper):
                continue
            self._happened(Heard(sender=link.peer, message=message))

    def _link_event(self, event: LinkEvent) -> None:
        self._happened(LinkChanged(event=event))

    # Weights -------------------------------------------------------------------------------------

    async def _give_weights(self, link: Link) -> None:
        while True:
            request = decode_request(await link.receive(Channel.WEIGHTS))
            data = await self._world.models.read_range(self._folder, request.file, request.start, request.end)
            await link.send(Channel.WEIGHTS, encode_range(RangeReply(data=data)))

    async def _connected(self, member: MemberId) -> Link:
        if self._endpoint is None:
            raise LinkClosed("there is no socket")
        return await self._endpoint.connected(member)

    async def _read_from_host(self, file: str, start: int, end: int) -> bytes:
        if self._host is None:
            raise LinkClosed("there is no host")
        link = await self._connected(self._host)
        async with self._weights:
            request = RangeRequest(file=file, start=start, end=end)
            await link.send(Channel.WEIGHTS, encode_range(request))
            data = decode_reply(await link.receive(Channel.WEIGHTS))
        if data is None:
            raise UserError(
                title="The host no longer has the model",
                advice="Ask the host to check the model’s folder and to start again.",
            )
        return data


def is_believed(form: Form, keeper: RosterKeeper | None) -> bool:
    """Whether the host signed a newer roster with exactly the keys that the form names."""
    if keeper is None:
        return False
    roster = keeper.accept(form.roster)
    if not isinstance(roster, Roster):
        log.warning("a plan with a roster that does not count: %s", type(roster).__name__)
        return False
    keys = {entry.member: entry.spki_sha256 for entry in roster.entries}
    return all(keys.get(peer.member) == peer.spki_sha256 for peer in form.peers)


def _stay_cancelled() -> None:
    """Go on being cancelled: a TaskGroup forgets it where an error came at the same moment."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _address(text: str | None) -> Address | None:
    if text is None:
        return None
    try:
        return Address.parse(text)
    except ValueError:
        raise UserError(title=f"“{text}” is not an address", advice="Write it as HOST:PORT.") from None
