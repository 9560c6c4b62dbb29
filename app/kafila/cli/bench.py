"""`kafila bench`: what parts of Kafila do on paper, and how long they take."""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from kafila.assets import asset
from kafila.cli.bench_cpu import add_cpu
from kafila.cli.bench_relay import add_relay
from kafila.cli.bench_transport import add_transport
from kafila.cli.plan import read_fleet
from kafila.domain.capability import Capability, Filtering, Mapping, Reachability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Figures, Objective, Plan, Refusal
from kafila.planner.fleet_file import Fleet, parse_models
from kafila.planner.plan import Candidate, make_plan

FLEETS = ("lan", "country", "continents")
PEOPLE = (1, 4)
SIZES = ((2, 40), (4, 80), (8, 80), (9, 126), (16, 126), (32, 126), (64, 126))
_ROUNDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One fleet with one model: Kafila's divisions and the others', or why there is none."""

    fleet: str
    model: str
    people: int
    refused: str | None = None
    balanced: Figures | None = None
    fastest: Figures | None = None
    uniform: Figures | None = None
    memory_proportional: Figures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one size took to plan, everything included."""

    members: int
    blocks: int
    equal_blocks_ms: float
    unequal_blocks_ms: float


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    *,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Add the command to `kafila`'s."""
    bench = commands.add_parser("bench", help="measure a part of Kafila").add_subparsers(
        title="parts", metavar="PART", required=True
    )
    planner = bench.add_parser(
        "planner",
        parents=list(parents),
        help="plan example fleets, next to an even and a memory-proportional division",
    )
    planner.add_argument("--scale", action="store_true", help="how long planning takes as fleets grow")
    planner.add_argument("--json", action="store_true", help="one JSON object on stdout")
    planner.set_defaults(run=run_planner)
    add_cpu(bench, parents)
    add_relay(bench, parents)
    add_transport(bench, parents)


def run_planner(arguments: argparse.Namespace) -> int:
    """Print the comparison, or the times."""
    if arguments.scale:
        timings = time_sizes()
        lines, rows = _draw_timings(timings), msgspec.to_builtins(timings)
    else:
        comparisons = compare_fleets()
        lines, rows = _draw_comparisons(comparisons), msgspec.to_builtins(comparisons)
    print(json.dumps({"rows": rows}) if arguments.json else "\n".join(lines))
    return 0


def compare_fleets() -> list[Comparison]:
    """Every example fleet with every example model, for one and for four people."""
    models = parse_models(asset("fleets/models.toml").read_text(encoding="utf-8"))
    fleets = {name: read_fleet(asset(f"fleets/{name}.toml")) for name in FLEETS}
    return [
        _compare(name, replace(fleet, spec=spec, concurrency=people))
        for name, fleet in fleets.items()
        for spec in models
        for people in PEOPLE
    ]


def _compare(name: str, fleet: Fleet) -> Comparison:
    case = Comparison(fleet=name, model=fleet.spec.name, people=fleet.concurrency)
    balanced, fastest = _plan(fleet, Objective.BALANCED), _plan(fleet, Objective.FASTEST)
    if isinstance(balanced, Refusal):
        return replace(case, refused=balanced.sentence)
    if isinstance(fastest, Refusal):
        return replace(case, refused=fastest.sentence)
    return replace(
        case,
        balanced=balanced.figures,
        fastest=fastest.figures,
        uniform=balanced.uniform,
        memory_proportional=balanced.memory_proportional,
    )


def _plan(fleet: Fleet, objective: Objective) -> Plan | Refusal:
    return make_plan(
        fleet.spec,
        fleet.members,
        context=fleet.context,
        concurrency=fleet.concurrency,
        objective=objective,
        pair_rtts=fleet.pair_rtts,
    )


def _draw_comparisons(cases: Sequence[Comparison]) -> list[str]:
    lines = [
        "Slowest stage in ms, share of the hardware in use, and tokens a second for all people together.",
        "Even: the same number of parts for everyone. Memory: in proportion to memory. * does not fit.",
        "",
        f"{'':33}{'slowest stage':^31}{'in use':^24}{'tokens/s, at most':^36}",
        f"{'fleet':12}{'model':16}{'for':>5}"
        f"{'balanced':>11}{'even':>10}{'memory':>10}{'balanced':>10}{'even':>7}{'memory':>7}"
        f"{'fastest':>9}{'balanced':>10}{'even':>8}{'memory':>9}",
    ]
    for case in cases:
        start = f"{case.fleet:12}{case.model:16}{case.people:5}"
        lines.append(f"{start}  {case.refused}" if case.refused is not None else start + _draw_figures(case))
    return lines


def _draw_figures(case: Comparison) -> str:
    balanced, fastest = _cells(case.balanced), _cells(case.fastest)
    even, memory = _cells(case.uniform), _cells(case.memory_proportional)
    return (
        f"{balanced[0]:>11}{even[0]:>10}{memory[0]:>10}{balanced[1]:>10}{even[1]:>7}{memory[1]:>7}"
        f"{fastest[2]:>9}{balanced[2]:>10}{even[2]:>8}{memory[2]:>9}"
    )


def _cells(figures: Figures | None) -> tuple[str, str, str]:
    if figures is None or figures.bottleneck_ms is None:
        return "–", "–", "–"
    mark = "" if figures.fits else "*"
    return (
        f"{figures.bottleneck_ms:.1f}{mark}",
        f"{figures.utilisation or 0:.2f}",
        f"{figures.tokens_per_second or 0:.2f}",
    )


def time_sizes(sizes: Sequence[tuple[int, int]] = SIZES) -> list[Timing]:
    """Plan made-up fleets of growing size, the best of a few rounds each."""
    return [
        Timing(
            members=members,
            blocks=blocks,
            equal_blocks_ms=_time(members, _make_model(blocks, unequal=False)),
            unequal_blocks_ms=_time(members, _make_model(blocks, unequal=True)),
        )
        for members, blocks in sizes
    ]


def _time(members: int, spec: ModelSpec) -> float:
    fleet = [_make_member(number) for number in range(members)]
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        make_plan(spec, fleet, context=4096, concurrency=4)
        best = min(best, time.perf_counter() - start)
    return best * 1000


def _make_model(blocks: int, *, unequal: bool) -> ModelSpec:
    """Blocks of one kind, or of two: every fourth attends over a long window and has more KV."""
    kv = tuple(16384 if unequal and block % 4 == 3 else 4096 for block in range(blocks))
    sizes = tuple(400_000_000 if unequal and block < 3 else 386_000_000 for block in range(blocks))
    return ModelSpec(
        name="made up",
        family="",
        fingerprint="",
        hidden_size=0,
        block_bytes=sizes,
        block_flops=sizes,
        kv_bytes_per_token=kv,
        head_bytes=1_240_000_000,
        head_flops=1_240_000_000,
        head_resident_bytes=2_480_000_000,
        max_context=0,
    )


def _make_member(number: int) -> Candidate:
    """Different speeds, rooms, distances and networks, in no order that helps."""
    mappings, filterings = list(Mapping), list(Filtering)
    return Candidate(
        member=MemberId(f"{number:016x}"),
        name=f"Computer {number}",
        capability=Capability(
            room_bytes=(9 + number * 7 % 23) * 10**9,
            bandwidth_bytes_s=(80 + number * 137 % 800) * 1e9,
            flops_s=(3 + number * 11 % 40) * 1e12,
            reachability=Reachability(
                mapping=mappings[number * 5 % len(mappings)],
                filtering=filterings[number * 3 % len(filterings)],
                rendezvous_rtt_ms=1 + number * 61 % 199,
            ),
        ),
    )


def _draw_timings(timings: Sequence[Timing]) -> list[str]:
    lines = [
        "Milliseconds to plan, comparisons and advice included. The order of the ring is exact up to",
        "nine members; the division is exact always. Growth: by how much the time grows for each",
        "doubling of members × blocks, from one row to the next.",
        "",
        f"{'members':>8}{'blocks':>8}{'equal blocks':>15}{'growth':>9}{'unequal blocks':>17}{'growth':>9}",
    ]
    for before, one in zip([None, *timings], timings, strict=False):
        work = math.log2(one.members * one.blocks / (before.members * before.blocks)) if before else 0.0
        equal = _growth(before and before.equal_blocks_ms, one.equal_blocks_ms, work)
        unequal = _growth(before and before.unequal_blocks_ms, one.unequal_blocks_ms, work)
        lines.append(
            f"{one.members:8}{one.blocks:8}{one.equal_blocks_ms:12.1f} ms{equal:>9}"
            f"{one.unequal_blocks_ms:14.1f} ms{unequal:>9}"
        )
    return lines


def _growth(before_ms: float | None, after_ms: float, doublings: float) -> str:
    if not before_ms or doublings <= 0:
        return ""
    return f"×{(after_ms / before_ms) ** (1 / doublings):.1f}"
