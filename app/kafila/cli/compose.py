"""Hands the real network, weights and compute rooms to the engine's ports."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kafila.assets import asset
from kafila.cli.program import program
from kafila.compute.demo_model import DEMO_MODEL_NAME, make_demo_model
from kafila.compute.measure import measure, room_bytes
from kafila.compute.mlx_thread import MlxThread
from kafila.compute.runtime import StageRuntime
from kafila.domain.capability import Capability, Reachability
from kafila.domain.errors import PeerError, Problem, UserError
from kafila.domain.model import ModelSpec
from kafila.domain.snapshot import ModelCard, NoPort, ThisComputer
from kafila.engine.engine import World
from kafila.engine.keystore import device_key
from kafila.engine.ports import Progress, ReadRange
from kafila.engine.settings import Folders, SettingsFile, describe_machine
from kafila.network.connect_back import is_reached
from kafila.network.endpoint import Endpoint
from kafila.network.identity import DeviceIdentity
from kafila.network.lan import Announcement, find_rendezvous
from kafila.network.lan_addresses import ipv6_addresses, is_outside, lan_addresses
from kafila.network.measure import measure_network
from kafila.network.port_mapping import PortLease
from kafila.network.rendezvous_client import RendezvousClient
from kafila.network.rendezvous_server import RendezvousServer
from kafila.network.self_signed import fresh_certificate
from kafila.protocol.links import Address, LinkEvent
from kafila.protocol.rendezvous_address import RendezvousAt
from kafila.protocol.rendezvous_session import SignallingEvent
from kafila.protocol.roster import sign_roster
from kafila.protocol.words import WordList
from kafila.weights.model_folder import read_model
from kafila.weights.source import ModelSource
from kafila.weights.store import ModelStore

DEMO = "demo"
DEMO_FOLDER = "smollm2-135m-instruct-q4"
DEMO_CARD = ModelCard(
    id=DEMO,
    name=DEMO_MODEL_NAME,
    good_at="Small and quick to try; short answers, and it is sometimes wrong",
    tags=("Chat", "Light"),
    size_bytes=115_000_000,
    kv_bytes_per_token=46_080,
    max_context=8192,
    licence="Apache 2.0",
    fits_here=True,
)
MOST_IPV4, MOST_IPV6 = 4, 2
"""How many addresses of a computer stand in an invitation, which people copy."""
ALL_IPV6_INTERFACES = "::"
ALL_INTERFACES, LOOPBACK = "0.0.0.0", "127.0.0.1"  # noqa: S104  # people on the network are to reach it


class ModelShelf:
    """The models of this computer, and those that it was told of."""

    def __init__(self, store: ModelStore, thread: MlxThread) -> None:
        self._store = store
        self._thread = thread
        self._whole: dict[str, Path] = {}
        self._sources: dict[Path, ModelSource] = {}

    def cards(self) -> tuple[ModelCard, ...]:
        """What can be picked without a folder of one's own."""
        return (DEMO_CARD,)

    async def prepare(self, model: str) -> tuple[Path, ModelSpec]:
        """The demo's model, or that of a folder. Raises UserError."""
        if model == DEMO:
            folder = await make_demo_model(self._thread, self._store.folder(DEMO_FOLDER))
            spec = await asyncio.to_thread(lambda: read_model(folder, name=DEMO_MODEL_NAME))
        else:
            folder = await asyncio.to_thread(Path(model).expanduser)
            spec = await asyncio.to_thread(read_model, folder)
        self._whole[spec.fingerprint] = folder
        return folder, spec

    async def read_range(self, folder: Path, file: str, start: int, end: int) -> bytes | None:
        """Bytes of a model's file for a member; None for what is no part of the model."""
        try:
            return await asyncio.to_thread(self._read, folder, file, start, end)
        except (PeerError, UserError, OSError):
            return None

    def _read(self, folder: Path, file: str, start: int, end: int) -> bytes:
        source = self._sources.get(folder)
        if source is None:
            source = self._sources[folder] = ModelSource(folder)
        return source.read(file, start, end)

    async def folder_for(
        self, spec: ModelSpec, *, first: int, end: int, head: bool, read: ReadRange, progress: Progress
    ) -> Path:
        """Where the tensors of a share are, once they are on this computer."""
        if spec.name == DEMO_MODEL_NAME:
            # Every installation carries it: nothing has to be fetched. Where it does not, fetch.
            with contextlib.suppress(UserError):
                await self.prepare(DEMO)
        whole = self._whole.get(spec.fingerprint)
        if whole is not None:
            return whole
        return await self._store.folder_for(spec, first=first, end=end, head=head, read=read, progress=progress)


class NetworkDoors:
    """Sessions found and entered over the real network."""

    def __init__(self) -> None:
        self.words = WordList.from_text(asset("words.txt").read_text(encoding="utf-8"))

    async def serve(self, listen: Address | None, *, loopback_only: bool) -> RendezvousServer:
        """A rendezvous in this process."""
        certificate = fresh_certificate()
        if listen is not None:
            return await RendezvousServer.open([listen], certificate)
        if loopback_only:
            return await RendezvousServer.open_in_app(certificate, LOOPBACK)
        if ipv6_addresses(0):
            with contextlib.suppress(UserError):
                return await RendezvousServer.open_in_app(certificate, ALL_INTERFACES, ALL_IPV6_INTERFACES)
        return await RendezvousServer.open_in_app(certificate, ALL_INTERFACES)

    async def line(
        self, at: RendezvousAt, *, tasks: asyncio.TaskGroup, on_event: Callable[[SignallingEvent], None]
    ) -> RendezvousClient:
        """A connection to a rendezvous."""
        return await RendezvousClient.connect(at, tasks=tasks, on_event=on_event)

    async def find(self, nameplate: int) -> tuple[RendezvousAt, ...]:
        """Look on this computer and on its network."""
        return await find_rendezvous(nameplate)

    def lan_addresses(self, port: int) -> tuple[Address, ...]:
        """Where this network reaches a port of this computer, and by IPv6 perhaps anybody."""
        # Computers have many IPv6 addresses; any of them will do.
        return (*lan_addresses(port)[:MOST_IPV4], *ipv6_addresses(port)[:MOST_IPV6])

    async def announce(self, nameplate: int, port: int, fingerprint: bytes) -> Announcement:
        """Make a session known on this network."""
        return await Announcement.start(nameplate, port, fingerprint)

    def is_outside(self, host: str) -> bool:
        """By this computer's own addresses."""
        return is_outside(host)

    async def is_reached(self, here: Address, witness: RendezvousAt) -> bool | None:
        """Ask the other rendezvous."""
        return await is_reached(here, witness)

    async def open_port(self, port: int) -> PortLease | NoPort:
        """Ask the router."""
        return await PortLease.ask(port)


async def open_endpoint(
    identity: DeviceIdentity, listen: Address | None, on_event: Callable[[LinkEvent], None]
) -> Endpoint:
    """The UDP socket of a session."""
    return await Endpoint.open(identity, listen, on_event)


def engine_command(profile: str | None = None) -> list[str]:
    """How an engine is started as a process of its own."""
    return [*program(), "engine", *(("--profile", profile) if profile else ())]


@asynccontextmanager
async def open_world(profile: str | None, *, ephemeral: bool) -> AsyncGenerator[World]:
    """Everything that an engine needs; let go of afterwards.

    An ephemeral engine has a key for this once, and keeps no settings.
    """
    folders = Folders.of(profile)
    settings = SettingsFile(folders.config, kept=not ephemeral)
    identity, notice = await _identity(folders, profile, ephemeral=ephemeral)
    signing_key = Ed25519PrivateKey.from_private_bytes(identity.to_bytes())
    thread = MlxThread(folders.models.parent / "kernels")

    async def capability(spec: ModelSpec, rendezvous: Address | None) -> Capability:
        async with asyncio.TaskGroup() as tasks:
            network = tasks.create_task(_look_around(rendezvous))
            room = await asyncio.to_thread(room_bytes, spec)
            # A block that does not fit would take the process down when it is made up to be timed.
            fits = max(spec.block_bytes) <= room
            bandwidth, flops = await measure(thread, spec) if fits else (None, None)
        return Capability(
            room_bytes=room,
            bandwidth_bytes_s=bandwidth,
            flops_s=flops,
            reachability=network.result(),
        )

    me = ThisComputer(
        member=identity.member,
        machine=describe_machine(settings.value),
        room_bytes=await asyncio.to_thread(room_bytes),
        notices=(notice,) if notice else (),
        rendezvous=settings.value.rendezvous or "",
    )
    try:
        yield World(
            me=me,
            spki_sha256=identity.spki_sha256,
            sign_roster=lambda roster: sign_roster(signing_key, roster),
            settings=settings,
            models=ModelShelf(ModelStore(folders.models), thread),
            doors=NetworkDoors(),
            open_endpoint=lambda listen, on_event: open_endpoint(identity, listen, on_event),
            stage=StageRuntime(thread),
            measure=capability,
            engine_command=engine_command(),
        )
    finally:
        await thread.close()


async def _look_around(rendezvous: Address | None) -> Reachability:
    """What the network lets through; nothing to learn where the rendezvous is on this computer."""
    if rendezvous is None or rendezvous.host == LOOPBACK:
        return Reachability()
    return (await measure_network([rendezvous])).reachability()


async def _identity(folders: Folders, profile: str | None, *, ephemeral: bool) -> tuple[DeviceIdentity, Problem | None]:
    if ephemeral:
        return DeviceIdentity.generate(), None
    key, notice = await device_key(
        folders.config,
        account=f"device-key-{profile or 'default'}",
        new_key=lambda: DeviceIdentity.generate().to_bytes(),
    )
    return DeviceIdentity.from_bytes(key), notice
