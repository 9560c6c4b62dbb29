"""What the engine needs of the world, as Protocols; `kafila.cli.compose` hands in the real ones."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kafila.domain.commands import ChatMessage
from kafila.domain.ids import MemberId, RequestId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import ModelCard
from kafila.protocol.frames import ActivationFrame, RefusalFrame
from kafila.protocol.links import Address, Candidates, Channel, LinkEvent, Peer, RelaySeat
from kafila.protocol.roster import Roster

ReadRange = Callable[[str, int, int], Awaitable[bytes]]
"""File of a model, first byte, end: those bytes, wherever they lie."""


class Identity(Protocol):
    """This device's key, of which only the engine's adapters see the private half."""

    @property
    def member(self) -> MemberId: ...
    @property
    def spki_sha256(self) -> bytes: ...
    @property
    def public_key(self) -> bytes: ...
    def sign_roster(self, roster: Roster) -> bytes: ...


class Link(Protocol):
    """One authenticated connection to a member."""

    @property
    def peer(self) -> MemberId: ...
    @property
    def path(self) -> PathKind: ...
    @property
    def rtt_ms(self) -> float | None: ...
    @property
    def sent_bytes(self) -> int: ...
    async def send(self, channel: Channel, data: bytes) -> None: ...
    async def receive(self, channel: Channel) -> bytes: ...


class Endpoint(Protocol):
    """The one UDP socket, and the links over it."""

    def candidates(self) -> Candidates: ...
    def take_seat(self, seat: RelaySeat) -> None: ...
    def set_peers(self, peers: Mapping[MemberId, Peer]) -> None: ...
    def open_link(self, member: MemberId) -> None: ...
    async def connected(self, member: MemberId) -> Link: ...
    async def close(self) -> None: ...


class Sampled(Protocol):
    """A token as the head chose it."""

    @property
    def token_id(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def ended(self) -> bool: ...


class Stage(Protocol):
    """This computer's blocks, on the one thread that owns MLX."""

    async def load(
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
        progress: Callable[[int, int], None],
    ) -> int: ...
    async def unload(self) -> None: ...
    async def forward(self, frame: ActivationFrame) -> ActivationFrame | RefusalFrame: ...
    async def release(self, request: RequestId) -> None: ...
    async def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]: ...
    async def begin_text(self, request: RequestId) -> None: ...
    async def end_text(self, request: RequestId) -> str: ...
    async def begin(
        self,
        request: RequestId,
        position: int,
        ids: Sequence[int],
        *,
        digests: bytes,
        last_only: bool,
    ) -> ActivationFrame | RefusalFrame: ...
    async def sample(
        self, frame: ActivationFrame, *, temperature: float, top_p: float
    ) -> Sampled: ...


class Models(Protocol):
    """The models that can be picked, and where their files are."""

    def cards(self) -> tuple[ModelCard, ...]: ...
    async def prepare(self, model: str) -> tuple[Path, ModelSpec]: ...
    async def read_range(self, folder: Path, file: str, start: int, end: int) -> bytes | None: ...
    async def folder_for(
        self,
        spec: ModelSpec,
        *,
        first: int,
        end: int,
        head: bool,
        read: ReadRange,
        progress: Callable[[int, int], None],
    ) -> Path: ...


OpenEndpoint = Callable[
    [Address | None, Callable[[LinkEvent], None]], Awaitable[Endpoint]
]
