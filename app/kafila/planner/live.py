"""A new plan from what the stages really take, once there is something to measure."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from kafila.domain.capability import Capability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Plan, Refusal, Share, Tier
from kafila.planner.by_hand import hold_to
from kafila.planner.costs import TICKS_PER_MS
from kafila.planner.plan import answer
from kafila.planner.question import FASTEST_RATE, Candidate, Question, bound_figures
from kafila.planner.solve import work_out
from kafila.planner.words import say_ms_per_word

_WORTH_CHANGING = 0.01


def replan(question: Question, plan: Plan, stage_ms: Mapping[MemberId, float]) -> Plan | Refusal:
    """The best plan if every member is as fast as its stage was measured to be.

    `question` holds the members of `plan`. The first advice says what the change is worth.
    """
    measured = calibrate(question, plan, stage_ms)
    found = answer(measured)
    if isinstance(found, Refusal) or not found.figures.tokens_per_second:
        return found
    ring = tuple(measured.place_of(share.member) for share in plan.shares)
    present = hold_to(work_out(measured), ring, [share.blocks for share in plan.shares])
    present_ms = present.token_ticks / TICKS_PER_MS
    gain_ms = present_ms - measured.concurrency * 1000 / found.figures.tokens_per_second
    worth = "The parts are divided as well as they can be."
    if gain_ms > _WORTH_CHANGING * present_ms:
        worth = f"Dividing the parts anew makes each word come {say_ms_per_word(gain_ms)} sooner."
    return msgspec.structs.replace(found, advice=(worth, *found.advice))


def calibrate(question: Question, plan: Plan, stage_ms: Mapping[MemberId, float]) -> Question:
    """The same question with the speeds that would have predicted these stages."""
    costs = work_out(question).costs

    def correct(place: int, one: Candidate) -> Candidate:
        measured_ms = stage_ms.get(one.member, 0.0)
        if not measured_ms > 0:
            return one
        share = plan.share_of(one.member)
        ticks = costs.stage_ticks(place, share.first, share.end, head=share.head)
        predicted_ms = ticks / TICKS_PER_MS if costs.tier is Tier.FULL else None
        able = _correct(question.spec, one.capability, share, predicted_ms=predicted_ms, measured_ms=measured_ms)
        return bound_figures(replace(one, capability=able))

    return replace(question, members=tuple(correct(place, one) for place, one in enumerate(question.members)))


def _correct(
    spec: ModelSpec, able: Capability, share: Share, *, predicted_ms: float | None, measured_ms: float
) -> Capability:
    bandwidth, flops = able.bandwidth_bytes_s, able.flops_s
    if predicted_ms and bandwidth is not None and flops is not None:
        faster = predicted_ms / measured_ms
        return msgspec.structs.replace(able, bandwidth_bytes_s=bandwidth * faster, flops_s=flops * faster)
    # Nothing was predicted, so all of the time is put down to reading the weights.
    read = sum(spec.block_bytes[share.first : share.end]) + (spec.head_bytes if share.head else 0)
    return msgspec.structs.replace(able, bandwidth_bytes_s=read / measured_ms * 1000, flops_s=FASTEST_RATE)
