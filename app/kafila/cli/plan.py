"""`kafila plan FLEET.toml`: who would hold what, worked out without a packet sent."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafila.domain.errors import UserError
from kafila.domain.ids import MemberId
from kafila.domain.plan import Figures, Objective, PathKind, Plan, Refusal, Share
from kafila.planner.fleet_file import Fleet, parse_fleet
from kafila.planner.plan import make_plan
from kafila.planner.words import say_bytes, say_count

MALFORMED = 2
REFUSED = 3
_BAR = 24


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",  # pyright: ignore[reportPrivateUsage]
    *,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Add the command to `kafila`'s."""
    parser = commands.add_parser(
        "plan",
        parents=list(parents),
        help="divide a model among the computers of a file, on paper",
        description="Say who would hold which parts of a model, how fast the ring would be at most, "
        "and what each computer costs and brings. The file's format is in docs/planner.md.",
    )
    parser.add_argument("fleet", metavar="FLEET.toml", type=Path, help="the model and the computers")
    parser.add_argument(
        "--objective",
        type=Objective,
        choices=list(Objective),
        default=Objective.FASTEST,
        help="most tokens a second (fastest), or the shortest slowest stage (balanced)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0 for a plan, 3 for a refusal, 2 for a file that cannot be read."""
    try:
        fleet = read_fleet(arguments.fleet)
    except UserError as error:
        print(error.problem.sentence(), file=sys.stderr)
        return MALFORMED
    plan = make_plan(
        fleet.spec,
        fleet.members,
        context=fleet.context,
        concurrency=fleet.concurrency,
        objective=arguments.objective,
        pair_rtts=fleet.pair_rtts,
    )
    refused = isinstance(plan, Refusal)
    if arguments.json:
        print(json.dumps(_refusal_as_json(plan) if refused else _plan_as_json(plan), ensure_ascii=False))
    else:
        print("\n".join(_draw_refusal(plan) if refused else _draw_plan(fleet, plan)))
    return REFUSED if refused else 0


def read_fleet(path: Path) -> Fleet:
    """Read a fleet file. Raises UserError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(title=f"{path} cannot be read", advice="It has to be a text file in TOML.") from None
    return parse_fleet(text)


def _plan_as_json(plan: Plan) -> Mapping[str, object]:
    return {
        "objective": plan.objective,
        "tier": plan.tier,
        "tier_reason": plan.tier_reason,
        "order": [share.member for share in plan.shares],
        "head": plan.head,
        "blocks": {share.member: share.blocks for share in plan.shares},
        "stage_ms": {share.member: share.stage_ms for share in plan.shares},
        "need_bytes": {share.member: share.need_bytes for share in plan.shares},
        "edges": [
            {
                "from": edge.from_member,
                "to": edge.to_member,
                "predicted": edge.predicted,
                "price_ms": edge.price_ms,
            }
            for edge in plan.edges
        ],
        **_figures_as_json(plan.figures),
        "tokens_per_second_alone": plan.tokens_per_second_alone,
        "search": plan.search,
        "search_note": plan.search_note,
        "baselines": {name: {**_figures_as_json(other), "fits": other.fits} for name, other in _baselines(plan)},
        "advice": plan.advice,
    }


def _figures_as_json(figures: Figures) -> Mapping[str, float | None]:
    return {
        "bottleneck_ms": figures.bottleneck_ms,
        "circuit_ms": figures.circuit_ms,
        "tokens_per_second": figures.tokens_per_second,
        "utilisation": figures.utilisation,
    }


def _refusal_as_json(refusal: Refusal) -> Mapping[str, object]:
    return {
        "refused": {
            "member": refusal.member,
            "sentence": refusal.sentence,
            "needs_bytes": refusal.needs_bytes,
            "has_bytes": refusal.has_bytes,
            "help": refusal.help,
        }
    }


def _baselines(plan: Plan) -> list[tuple[str, Figures]]:
    named = (("uniform", plan.uniform), ("memory_proportional", plan.memory_proportional))
    return [(name, figures) for name, figures in named if figures is not None]


def _draw_plan(fleet: Fleet, plan: Plan) -> list[str]:
    names = {one.member: one.name for one in fleet.members}
    width = max(len(name) for name in names.values())
    lines = [
        f"{fleet.spec.name} in {say_count(fleet.spec.blocks, 'part')} on {say_count(len(names), 'computer')}, "
        f"{plan.objective.value} for {say_count(fleet.concurrency, 'conversation')} "
        f"of {say_count(fleet.context, 'token')}",
        "",
    ]
    most = max(share.blocks for share in plan.shares)
    lines += [_draw_share(share, names[share.member].ljust(width), most) for share in plan.shares]
    lines.append("")
    lines += [_draw_edge(names, edge.from_member, edge.to_member, edge.predicted, edge.price_ms) for edge in plan.edges]
    lines += ["", f"{'':22}{'slowest stage':>15}{'circuit':>12}{'tokens/s, up to':>17}{'in use':>9}"]
    lines.append(_draw_figures("this plan", plan.figures))
    lines += [_draw_figures(name.replace("_", " "), figures) for name, figures in _baselines(plan)]
    lines += ["", plan.tier_reason]
    if plan.search_note:
        lines.append(plan.search_note)
    return lines + list(plan.advice)


def _draw_share(share: Share, name: str, most: int) -> str:
    bar = "█" * max(1, round(_BAR * share.blocks / most))
    time = "" if share.stage_ms is None else f"{share.stage_ms:8.2f} ms"
    room = "" if share.room_bytes is None else f" of {say_bytes(share.room_bytes)}"
    leads = "  leads" if share.head else ""
    return f"{name}  {bar.ljust(_BAR)} {share.blocks:4} {time}  {say_bytes(share.need_bytes)}{room}{leads}"


def _draw_edge(
    names: Mapping[MemberId, str], one: MemberId, other: MemberId, path: PathKind, price_ms: float | None
) -> str:
    price = "not measured" if price_ms is None else f"round trip from {price_ms:.1f} ms"
    return f"{names[one]} → {names[other]}: {path.value}, {price}"


def _draw_figures(name: str, figures: Figures) -> str:
    def cell(value: float | None, form: str, width: int) -> str:
        return ("–" if value is None else format(value, form)).rjust(width)

    used = None if figures.utilisation is None else 100 * figures.utilisation
    return (
        f"{name.ljust(22)}{cell(figures.bottleneck_ms, '.2f', 12)} ms{cell(figures.circuit_ms, '.1f', 9)} ms"
        f"{cell(figures.tokens_per_second, '.2f', 17)}{cell(used, '.0f', 7)} %"
        f"{'' if figures.fits else '  does not fit'}"
    )


def _draw_refusal(refusal: Refusal) -> list[str]:
    return [refusal.sentence, *refusal.help]
