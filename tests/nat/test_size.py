"""Datagrams of a link are as large as the way carries, and never cut in pieces."""

from pathlib import Path

import pytest

from kafila.domain.plan import PathKind
from kafila.protocol.path_size import SMALL_BYTES
from nat.meeting import serving
from nat.members import open_group, until_paths
from natlab.internet import Line
from natlab.lab import SiteSpec, open_lab
from natlab.namespaces import Computer
from natlab.rules import Nat

MESSAGE = bytes(1 << 20)


def counters(computer: Computer) -> dict[str, int]:
    """What the kernel counts of IP there."""

    def read() -> dict[str, int]:
        names, values = (line.split()[1:] for line in Path("/proc/thread-self/net/snmp").read_text().splitlines()[:2])
        return dict(zip(names, map(int, values), strict=True))

    return computer.call(read)


@pytest.mark.parametrize(("mtu", "is_large"), [(1500, True), (1300, False)])
async def test_a_way_is_used_to_the_size_that_it_carries(mtu: int, is_large: bool) -> None:  # noqa: FBT001
    homes = [SiteSpec(name=name, nat=Nat.PORT_RESTRICTED, line=Line(delay_ms=5)) for name in ("one", "other")]
    async with open_lab(*homes) as lab, serving(lab.middle), open_group(lab) as group:
        lab.routers("one")[0].namespace.ip(f"link set wan0 mtu {mtu}")
        near, far = await group.join("one", "other")
        await group.introduce((near, far))
        await until_paths({(near, far): PathKind.DIRECT})
        await near.say(far, b"up")
        assert await far.hear(near) == b"up"
        await near.say(far, MESSAGE)
        assert await far.hear(near) == MESSAGE
        before = counters(far.computer)
        await near.say(far, MESSAGE)
        assert await far.hear(near) == MESSAGE
        after = counters(far.computer)
        packets = after["InDelivers"] - before["InDelivers"]
        # Not all are full, but in so many the message only fits if most are larger than this.
        assert (packets < len(MESSAGE) / SMALL_BYTES) == is_large
        for computer in (lab["one"], lab["other"]):
            counted = counters(computer)
            assert counted["FragCreates"] == counted["ReasmReqds"] == 0
