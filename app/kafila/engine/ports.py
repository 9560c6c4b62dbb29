"""What the engine needs of the world, as Protocols; `kafila.cli.compose` hands in the real ones."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kafila.domain.commands import ChatMessage
from kafila.domain.ids import MemberId, RequestId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import ModelCard, NoPort
from kafila.protocol.frames import ActivationFrame, RefusalFrame
from kafila.protocol.links import Address, Candidates, Channel, LinkEvent, Peer, RelaySeat
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import HostSeat, SignallingEvent
from kafila.protocol.trust import Trust
from kafila.protocol.words import WordList

ReadRange = Callable[[str, int, int], Awaitable[bytes]]
"""File of a model, first byte, end: those bytes, wherever they lie."""

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


class Link(Protocol):
    """One authenticated connection to a member. Raises LinkClosed once it is over."""

    @property
    def peer(self) -> MemberId:
        """Who is at the other end."""
        ...

    @property
    def path(self) -> PathKind:
        """The path it takes now."""
        ...

    @property
    def rtt_ms(self) -> float | None:
        """The newest round trip."""
        ...

    @property
    def tx_bytes(self) -> int:
        """Bytes of messages sent so far."""
        ...

    async def send(self, channel: Channel, message: bytes) -> None:
        """Send one message; waits while too much is under way."""
        ...

    async def delivered(self, channel: Channel) -> None:
        """Wait until the other has all that was sent on the channel, or the link is over."""
        ...

    async def receive(self, channel: Channel) -> bytes:
        """The next message of the channel, in order."""
        ...


class Endpoint(Protocol):
    """The one UDP socket, and the links over it."""

    def candidates(self) -> Candidates:
        """Where this computer may be reached."""
        ...

    async def take_seat(self, seat: RelaySeat) -> bool:
        """Use this place at a relay from now on; whether the relay answers already."""
        ...

    def set_peers(self, peers: Mapping[MemberId, Peer]) -> None:
        """Exactly these members may have a link with this one."""
        ...

    def open_link(self, member: MemberId) -> None:
        """Begin a link with one of the peers."""
        ...

    async def connected(self, member: MemberId) -> Link:
        """The link, once both sides have checked each other."""
        ...

    async def close(self) -> None:
        """End every link and let go of the socket."""
        ...


OpenEndpoint = Callable[[Address | None, Callable[[LinkEvent], None]], Awaitable[Endpoint]]


class Exchange(Protocol):
    """A conversation with a computer that is not a member yet, through the rendezvous."""

    @property
    def remote(self) -> str:
        """The same for calls from the same address, and says nothing else of it."""
        ...

    async def say(self, body: bytes) -> None:
        """Send. Raises ExchangeClosedError."""
        ...

    async def hear(self) -> bytes:
        """The next thing said. Raises ExchangeClosedError."""
        ...

    def hang_up(self) -> None:
        """End it for both sides."""
        ...


class Line(Protocol):
    """A connection to a rendezvous, which comes back by itself when it breaks."""

    @property
    def address(self) -> Address:
        """Where the rendezvous is."""
        ...

    @property
    def trust(self) -> Trust:
        """Which certificate counts there: of a connection that was made, the one that was shown."""
        ...

    async def open_session(self, nameplate: int | None = None) -> HostSeat:
        """As a host: a session with a nameplate. Raises UserError."""
        ...

    async def new_nameplate(self) -> int:
        """As a host: another nameplate. Raises UserError."""
        ...

    def close_nameplate(self) -> None:
        """As a host: nobody can call any more."""
        ...

    def incoming(self) -> AsyncIterator[Exchange]:
        """As a host: those who call."""
        ...

    async def call(self, nameplate: int) -> tuple[Exchange, RelaySeat]:
        """As a joiner: reach a host. Raises UserError."""
        ...

    async def close(self) -> None:
        """Leave the rendezvous."""
        ...


class Rendezvous(Protocol):
    """A rendezvous that runs inside this process."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens."""
        ...

    def watch(self, came: Callable[[str], None]) -> None:
        """From now on say which addresses signalling connections come from."""
        ...

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of its certificate, which is as old as the session."""
        ...

    async def close(self) -> None:
        """Stop."""
        ...


class Announcement(Protocol):
    """A session made known on this network."""

    async def update(self, nameplate: int) -> None:
        """The session answers to another nameplate now."""
        ...

    async def stop(self) -> None:
        """Make it known no longer."""
        ...


class OpenPort(Protocol):
    """A port that the router keeps open."""

    @property
    def outside(self) -> Address:
        """Where it is reached from the Internet."""
        ...

    async def lost(self) -> None:
        """Wait until the router keeps it open no longer, which may never be."""
        ...

    async def close(self) -> None:
        """Give it back."""
        ...


class Doors(Protocol):
    """How sessions are found and entered."""

    words: WordList
    """The words that codes and phrases are made of."""

    async def serve(self, listen: Address | None, *, loopback_only: bool) -> Rendezvous:
        """Run a rendezvous here; None: where a joiner on this computer will look."""
        ...

    async def line(
        self, at: RendezvousAt, *, tasks: asyncio.TaskGroup, on_event: Callable[[SignallingEvent], None]
    ) -> Line:
        """Connect to a rendezvous. Raises UserError."""
        ...

    async def find(self, nameplate: int) -> tuple[RendezvousAt, ...]:
        """Rendezvous on this computer and on its network that know a nameplate, closest first."""
        ...

    def lan_addresses(self, port: int) -> tuple[Address, ...]:
        """Where others on this network reach a port of this computer; none: there is no network."""
        ...

    async def announce(self, nameplate: int, port: int, fingerprint: bytes) -> Announcement:
        """Make a session known on this network, where it can carry that, and the rendezvous's certificate."""
        ...

    def is_outside(self, host: str) -> bool:
        """Whether whoever has this address is neither on this computer nor on its networks."""
        ...

    async def is_reached(self, here: Address, witness: RendezvousAt) -> bool | None:
        """Have a rendezvous elsewhere try to connect here; None: it cannot tell."""
        ...

    async def open_port(self, port: int) -> OpenPort | NoPort:
        """Ask the router to open a port for as long as it is needed; else why it does not."""
        ...


class Sampled(Protocol):
    """A token as the head chose it."""

    @property
    def token_id(self) -> int:
        """Its number in the vocabulary."""
        ...

    @property
    def text(self) -> str:
        """What it adds to the answer; whole characters only."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the model ends its turn with it."""
        ...

    @property
    def span_us(self) -> int:
        """Microseconds that unembedding and sampling took."""
        ...


class Stage(Protocol):
    """This computer's blocks, on the one thread that owns MLX."""

    async def load(  # noqa: PLR0913  # a plan's share, its bounds and where its files are
        self,
        folder: Path,
        spec: ModelSpec,
        *,
        first: int,
        end: int,
        head: bool,
        epoch: int,
        tiling: bytes,
        last: bool,
        context: int,
        concurrency: int,
        progress: Progress,
    ) -> int:
        """Load blocks [first, end), and the head's tensors; the bytes that are in memory then."""
        ...

    async def unload(self) -> None:
        """Drop the blocks and all caches."""
        ...

    async def forward(self, frame: ActivationFrame) -> ActivationFrame | RefusalFrame:
        """The frame behind this member's blocks, or why it was refused."""
        ...

    async def release(self, request: RequestId) -> None:
        """Free the caches of a sequence."""
        ...

    async def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        """As the head: a conversation as token ids."""
        ...

    async def begin_text(self, request: RequestId) -> None:
        """As the head: a new answer begins."""
        ...

    async def end_text(self, request: RequestId) -> str:
        """As the head: the answer is over; the text that was still held back."""
        ...

    async def begin(
        self, request: RequestId, position: int, ids: Sequence[int], *, digests: bytes, last_only: bool
    ) -> ActivationFrame | RefusalFrame:
        """As the head: embed tokens and run the own blocks on them."""
        ...

    async def sample(self, frame: ActivationFrame, *, temperature: float | None, top_p: float | None) -> Sampled:
        """As the head: the next token of a sequence whose frame came round; None: as the model's makers advise."""
        ...


class Models(Protocol):
    """The models that can be picked, and where their files are."""

    def cards(self) -> tuple[ModelCard, ...]:
        """What can be picked here."""
        ...

    async def prepare(self, model: str) -> tuple[Path, ModelSpec]:
        """A model's folder and costs. Raises UserError."""
        ...

    async def read_range(self, folder: Path, file: str, start: int, end: int) -> bytes | None:
        """For a member without the model: bytes of one of its files, if they may be given."""
        ...

    async def folder_for(
        self, spec: ModelSpec, *, first: int, end: int, head: bool, read: ReadRange, progress: Progress
    ) -> Path:
        """A folder with the tensors of a share, fetched where they are not here. Raises UserError."""
        ...
