"""The Internet of a lab: a router between TUN devices, with delay, loss and a rate to every site.

A program of its own, so that what it delays is not delayed again by the tests' Python. It is given
the devices as open files, reads a JSON line whenever the weather changes and answers with one,
and ends with its standard input. It needs nothing but the standard library, so it starts at once.
"""

import contextlib
import errno
import heapq
import ipaddress
import json
import os
import random
import selectors
import sys
import time
from dataclasses import dataclass
from typing import Any

_BATCH = 64
_PACKET_BYTES = 65536
_IPV4_SOURCE, _IPV4_TARGET, _IPV4_HEAD = slice(12, 16), slice(16, 20), 20
_IPV6_TARGET, _IPV6_HEAD = slice(24, 30), 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How a site is connected. Delay, jitter and loss hold in both directions."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    up_mbit: float = 0.0
    down_mbit: float = 0.0
    queue_ms: float = 200.0
    is_cut: bool = False


AT_ONCE = Line()


@dataclass(slots=True)
class Site:
    """A device, its line, and until when the line is taken in either direction."""

    device: int
    line: Line
    up_free_at: float = 0.0
    down_free_at: float = 0.0


class Internet:
    """Takes packets from sites and brings them to others, in time or not at all."""

    def __init__(self, seed: int) -> None:
        self._sites: list[Site] = []
        self._by_target: dict[bytes, Site] = {}
        self._under_way: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._random = random.Random(seed)  # noqa: S311 - the weather is no secret
        self.counts = {"carried": 0, "lost": 0, "queue_full": 0, "nowhere": 0}

    def add(self, device: int, networks: list[str]) -> Site:
        """A site and its public networks: IPv4 addresses, IPv6 /48s."""
        site = Site(device, AT_ONCE)
        self._sites.append(site)
        for text in networks:
            network = ipaddress.ip_network(text)
            self._by_target[network.network_address.packed[: 4 if network.version == 4 else 6]] = site
        return site

    def set_lines(self, lines: list[dict[str, Any]]) -> None:
        """How the sites are connected from now on."""
        for site, line in zip(self._sites, lines, strict=True):
            site.line = Line(**line)

    def read(self, site: Site) -> None:
        """Take what a site sends."""
        for _ in range(_BATCH):
            try:
                packet = os.read(site.device, _PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                # The device is down, or its computer is gone.
                if error.errno in (errno.EIO, errno.EBADFD):
                    return
                raise
            self._take(site, packet)

    def deliver(self, now: float) -> float | None:
        """Bring what has arrived; when the next packet will have."""
        while self._under_way and self._under_way[0][0] <= now:
            _, _, device, packet = heapq.heappop(self._under_way)
            # A full device loses the packet, like any other.
            with contextlib.suppress(OSError):
                os.write(device, packet)
        return self._under_way[0][0] if self._under_way else None

    def _take(self, source: Site, packet: bytes) -> None:
        target = self._by_target.get(_network_of(packet))
        if target is None:
            self.counts["nowhere"] += 1
            return
        up, down = source.line, target.line
        kept = (1 - up.loss) * (1 - down.loss)
        if up.is_cut or down.is_cut or (kept < 1 and self._random.random() >= kept):
            self.counts["lost"] += 1
            return
        now = time.monotonic()
        sent = _serialise(len(packet), up.up_mbit, source.up_free_at, now, up.queue_ms)
        if sent is None:
            self.counts["queue_full"] += 1
            return
        source.up_free_at = sent
        travel_ms = up.delay_ms + down.delay_ms + (up.jitter_ms + down.jitter_ms) * self._random.random()
        there = sent + travel_ms / 1000
        arrived = _serialise(len(packet), down.down_mbit, target.down_free_at, there, down.queue_ms)
        if arrived is None:
            self.counts["queue_full"] += 1
            return
        target.down_free_at = arrived
        self._count += 1
        self.counts["carried"] += 1
        heapq.heappush(self._under_way, (arrived, self._count, target.device, packet))


def _network_of(packet: bytes) -> bytes:
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= _IPV4_HEAD:
        return packet[_IPV4_TARGET]
    return packet[_IPV6_TARGET] if version == 6 and len(packet) >= _IPV6_HEAD else b""


def _serialise(size: int, mbit: float, free_at: float, now: float, queue_ms: float) -> float | None:
    """When a packet has left onto a line of this rate; None where the queue is full."""
    if not mbit:
        return now
    begin = max(free_at, now)
    if begin - now > queue_ms / 1000:
        return None
    return begin + size * 8 / (mbit * 1e6)


def main() -> None:
    """Argument: JSON with a seed and the sites' devices and networks."""
    setting = json.loads(sys.argv[1])
    internet = Internet(setting["seed"])
    with selectors.DefaultSelector() as selector:
        for site in setting["sites"]:
            selector.register(site["device"], selectors.EVENT_READ, internet.add(site["device"], site["networks"]))
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            next_at = internet.deliver(time.monotonic())
            wait_s = None if next_at is None else max(0.0, next_at - time.monotonic())
            for key, _ in selector.select(wait_s):
                if isinstance(key.data, Site):
                    internet.read(key.data)
                    continue
                order = sys.stdin.readline()
                if not order:
                    return
                internet.set_lines(json.loads(order))
                sys.stdout.write(json.dumps(internet.counts) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
