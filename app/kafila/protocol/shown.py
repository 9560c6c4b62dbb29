"""A host's view of its session, made fit to be shown by a member.

Failures are worded here. What the host's planner says is its text: it is kept to printable lines of
a bounded length, as every name is.
"""

from msgspec.structs import replace

from kafila.domain.errors import Reason
from kafila.domain.plan import Plan, Refusal
from kafila.domain.snapshot import Forming, Serving, WaitingRoom
from kafila.protocol.names import MAX_TITLE, clean_machine, clean_name
from kafila.protocol.told import in_words

MAX_SENTENCE = 300
MAX_SENTENCES = 24


def view_from_host(view: WaitingRoom | Forming | Serving) -> WaitingRoom | Forming | Serving:
    """The view as this member shows it."""
    group, model = clean_name(view.group, MAX_TITLE), clean_name(view.model, MAX_TITLE)
    match view:
        case WaitingRoom():
            return replace(
                view,
                is_host=False,
                group=group,
                model=model,
                code=None,
                link=None,
                newcomers=(),
                problem=None,
                members=tuple(replace(member, machine=clean_machine(member.machine)) for member in view.members),
                plan=_refusal(view.plan) if isinstance(view.plan, Refusal) else view.plan and _plan(view.plan),
            )
        case Forming():
            return replace(
                view,
                is_host=False,
                group=group,
                model=model,
                plan=_plan(view.plan),
                rows=tuple(replace(row, machine=clean_machine(row.machine)) for row in view.rows),
            )
        case Serving():
            ring = tuple(replace(member, machine=clean_machine(member.machine)) for member in view.ring)
            away = [member for member in ring if member.away_s is not None]
            longest = max(away, key=lambda member: member.away_s or 0.0, default=None)
            return replace(
                view,
                is_host=False,
                group=group,
                model=model,
                ring=ring,
                paused=in_words(Reason.AWAY, longest.machine.name) if longest else None,
                planned=clean_name(view.planned, MAX_SENTENCE),
            )


def _plan(plan: Plan) -> Plan:
    return replace(
        plan,
        tier_reason=clean_name(plan.tier_reason, MAX_SENTENCE),
        search=clean_name(plan.search),
        search_note=clean_name(plan.search_note, MAX_SENTENCE),
        advice=_sentences(plan.advice),
    )


def _refusal(refusal: Refusal) -> Refusal:
    return replace(refusal, sentence=clean_name(refusal.sentence, MAX_SENTENCE), help=_sentences(refusal.help))


def _sentences(sentences: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(clean_name(sentence, MAX_SENTENCE) for sentence in sentences[:MAX_SENTENCES])
