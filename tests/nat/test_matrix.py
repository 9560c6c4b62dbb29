"""Every class of router against every other: whether the path is the one that the planner predicts."""

import asyncio

import pytest

from kafila.domain.plan import PathKind
from kafila.planner.reachability import predict_path
from nat.meeting import CLASSES, PATIENCE, measure_all, serving
from nat.members import Member, differing, open_group, until_paths
from natlab.internet import Line
from natlab.lab import SiteSpec, open_lab
from natlab.rules import Nat

# A leaky router's path depends on who knocks first; there is nothing to predict.
TESTED = [nat for nat in CLASSES if nat is not Nat.LEAKY]
STAYS_S = 2.5
"""Long enough for the candidates of a relayed edge to be asked again."""


def _sites(line: Line) -> list[SiteSpec]:
    """Two sites of each class, so that every class also meets itself."""
    return [SiteSpec(name=f"{nat.name} {side}", nat=nat, line=line) for side in "ab" for nat in TESTED]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(Line(delay_ms=20), id="quiet"),
        pytest.param(Line(delay_ms=20, jitter_ms=5, loss=0.01), id="2 % loss each way"),
    ],
)
async def test_every_ordered_pair_takes_the_path_that_is_predicted(line: Line) -> None:
    names = [site.name for site in _sites(line)]
    diallers, accepters = names[: len(TESTED)], names[len(TESTED) :]
    async with open_lab(*_sites(line)) as lab, serving(lab.middle), open_group(lab) as group:
        reach = await measure_all(lab, names)
        members = dict(zip(names, await group.join(*names), strict=True))
        expected = {
            (members[one], members[other]): predict_path(reach[one], reach[other])
            for one in diallers
            for other in accepters
        }
        assert len(expected) == len(TESTED) ** 2
        assert set(expected.values()) == {PathKind.DIRECT, PathKind.RELAYED}
        await group.introduce(*expected)
        await until_paths(expected)
        await asyncio.sleep(STAYS_S)
        # Where this computer stood still for a second or two, edges are in doubt for a moment.
        await until_paths(expected)
        assert not differing(expected)


async def test_a_link_is_there_after_three_round_trips_whatever_the_path() -> None:
    line = Line(delay_ms=25)
    round_trip_s = 2 * (line.delay_ms + 5 + 5 + line.delay_ms) / 1000
    names = [site.name for site in _sites(line)]
    took: dict[str, float] = {}

    async def link(one: Member, other: Member) -> None:
        took[f"{one.computer.name} and {other.computer.name}"] = await other.time_linking(one)

    async with open_lab(*_sites(line)) as lab, serving(lab.middle), open_group(lab) as group:
        members = await group.join(*names)
        diallers, accepters = members[: len(TESTED)], members[len(TESTED) :]
        for shift in range(len(TESTED)):
            # As many at once as there are classes: more would wait for this computer's processors.
            pairs = [(one, accepters[(place + shift) % len(TESTED)]) for place, one in enumerate(diallers)]
            await group.introduce(*pairs)
            async with asyncio.TaskGroup() as tasks:
                for one, other in pairs:
                    tasks.create_task(link(one, other))
    assert len(took) == len(TESTED) ** 2
    late = {pair: s for pair, s in took.items() if s > PATIENCE * (3 * round_trip_s + 0.1)}
    assert not late
