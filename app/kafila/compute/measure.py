"""What this computer can do for a model, and how much of one it has room for.

docs/measuring.md explains the figures.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from kafila.compute.cpu.library import is_usable
from kafila.compute.formats import format_of, growth
from kafila.compute.mlx_thread import MlxThread
from kafila.domain.model import ModelSpec

HEADROOM_BYTES = 1 << 30
"""Never planned with: the operating system, and what else people do with the computer."""

HEADROOM_SHARE = 0.05
"""The same for large computers, as a part of all their memory."""

RUNTIME_BYTES = 768 << 20
"""What the engine takes beside a model: its libraries, and the states of a long prompt."""

LIBRARY_RUNTIME_BYTES = 384 << 20
"""The same where the library for processors computes, which keeps little between two operations."""

TYPICAL_TOKENS = 4096
"""The conversation with which it is reckoned how 16-bit numbers grow on a CPU."""


async def measure(thread: MlxThread, spec: ModelSpec) -> tuple[float, float]:
    """Bytes of weights a second for one token, and floating-point operations a second for many.

    One block like the model's, in its format, is made up and timed. Nothing of the model has
    to be on this computer.
    """
    return await thread.run(_measure, spec)


def room_bytes(spec: ModelSpec | None = None) -> int:
    """How many bytes of a model, and of its caches, this computer can take now.

    With `spec`, in bytes of that model as it is stored: a CPU keeps 16-bit numbers in 32 bits, with
    the library for processors those of the caches only.
    """
    memory = psutil.virtual_memory()
    device = _Device()
    free = min([memory.available, *control_groups_room(), *device.room()])
    library = device.is_cpu and is_usable()
    runtime = LIBRARY_RUNTIME_BYTES if library else RUNTIME_BYTES
    room = free - max(HEADROOM_BYTES, round(HEADROOM_SHARE * memory.total)) - runtime
    if spec is not None and device.is_cpu:
        room = round(room / growth(spec, element_bytes=4, tokens=TYPICAL_TOKENS, as_stored=library))
    return max(0, room)


def _measure(spec: ModelSpec) -> tuple[float, float]:
    time_block = import_module("kafila.compute.block_timing").time_block
    by_size = sorted(range(spec.blocks), key=lambda block: spec.block_bytes[block])
    middle = by_size[spec.blocks // 2]
    flops = spec.block_flops[middle]
    decode_s, row_s = time_block(hidden=spec.hidden_size, weights=flops // 2, form=format_of(spec, middle))
    # One of many rows never costs more than a row alone; what says so is noise.
    return spec.block_bytes[middle] / decode_s, flops / min(row_s, decode_s)


class _Device:
    """What MLX computes on here, by its own account; asking starts nothing."""

    def __init__(self) -> None:
        self.is_cpu = True
        self._info: dict[str, Any] = {}
        try:
            mx = import_module("mlx.core")
        except ImportError:  # A back end whose driver is missing; that is said when it is used.
            return
        self.is_cpu = mx.default_device().type == mx.DeviceType.cpu
        self._info = mx.device_info()

    def room(self) -> Iterator[int]:
        """Bytes that the device itself allows: more than that can take a whole Mac down."""
        for bound in ("max_recommended_working_set_size", "free_memory"):
            if bound in self._info:
                yield int(self._info[bound])


def control_groups_room(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Bytes that are left in each control group that this process is in, as in a container."""
    try:
        own = membership.read_text(encoding="ascii").splitlines()[-1]
    except (OSError, IndexError):
        return
    group = root / own.rpartition(":")[2].lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            return
        try:
            limit = int((folder / "memory.max").read_text())
            used = int((folder / "memory.current").read_text())
            stat = (folder / "memory.stat").read_text().split()
        except (OSError, ValueError):  # No such group here, or one without a limit ("max").
            continue
        reclaimable = int(stat[stat.index("inactive_file") + 1]) if "inactive_file" in stat else 0
        yield limit - used + reclaimable
