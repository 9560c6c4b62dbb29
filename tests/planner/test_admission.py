"""Refusals: the figures, the words, and remedies that cure."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan, Refusal
from kafila.planner.plan import Candidate, make_plan
from planner.brute_force import Fleet
from planner.samples import make_member, make_spec
from planner.strategies import fleets

GB = 10**9


def refuse(*members: Candidate, sizes: list[int], kv: int = 0, context: int = 1, concurrency: int = 1) -> Refusal:
    refusal = make_plan(make_spec(sizes, kv=kv), members, context=context, concurrency=concurrency)
    assert isinstance(refusal, Refusal)
    return refusal


def test_who_is_short_and_by_how_much() -> None:
    refusal = refuse(make_member("Desk", room=3 * GB), make_member("Attic mini", room=6 * GB), sizes=[2 * GB] * 5)
    assert refusal.member == "desk"
    assert (refusal.needs_bytes, refusal.has_bytes) == (4 * GB, 3 * GB)
    assert refusal.sentence == "Desk is 1.0 GB short."
    assert [share.blocks for share in refusal.shares] == [2, 3]


def test_of_equally_near_divisions_the_earlier_arrival_is_named() -> None:
    zoe, amy = make_member("Zoe", room=2 * GB), make_member("Amy", room=2 * GB)
    host = make_member("Host", room=4 * GB)
    assert refuse(host, zoe, amy, sizes=[2 * GB] * 5).member == "host"
    # The host's spare gigabyte makes it the nearest.
    near_host = make_member("Host", room=5 * GB)
    assert refuse(near_host, zoe, amy, sizes=[2 * GB] * 5).member == "host"
    small_host = make_member("Host", room=2 * GB)
    roomy = [replace(one, capability=msgspec.structs.replace(one.capability, room_bytes=3 * GB)) for one in (zoe, amy)]
    assert refuse(small_host, *roomy, sizes=[2 * GB] * 4).member == "zoe"
    assert refuse(small_host, *reversed(roomy), sizes=[2 * GB] * 4).member == "amy"


def test_whoever_cannot_hold_one_part_is_named_first() -> None:
    refusal = refuse(make_member("Desk", room=1 * GB), make_member("Stick", room=GB // 2), sizes=[GB] * 4)
    assert refusal.member == "stick"
    assert (refusal.needs_bytes, refusal.has_bytes) == (GB, GB // 2)
    assert refusal.sentence == "Stick is 500.0 MB short of room for even one part."


def test_more_computers_than_parts() -> None:
    refusal = refuse(*(make_member(name) for name in "ABC"), sizes=[1, 1])
    assert refusal.member is None
    assert refusal.sentence == "Toy has 2 parts and every computer holds at least one, but 3 computers are here."
    assert refusal.help == ("Start with one computer fewer.",)


def test_what_would_help_in_words() -> None:
    refusal = refuse(
        make_member("Desk", room=10 * GB),
        make_member("Attic mini", room=6 * GB),
        sizes=[GB] * 10,
        kv=50_000,
        context=8192,
        concurrency=2,
    )
    assert refusal.sentence == "Desk is 1.0 GB short, and 2.2 GB are missing in all."
    assert refusal.help == (
        "Choose shorter conversations: up to 3,600 words each would fit, which needs 3.3 GB less.",
        "Let fewer people chat at once: one conversation at a time would fit, which needs 4.1 GB less.",
        "Let in one more computer with 3.7 GB of room or more.",
        "Free 2.8 GB on Desk, by closing programs there.",
        "Choose a smaller model: this one would fit at 65 % of its size, for example in fewer bits.",
        "In all, 18.2 GB are needed and 16.0 GB are here.",
    )


def with_room(fleet: Fleet, member: MemberId, more: int) -> list[Candidate]:
    return [
        replace(
            one,
            capability=msgspec.structs.replace(one.capability, room_bytes=(one.capability.room_bytes or 0) + more),
        )
        if one.member == member
        else one
        for one in fleet.members
    ]


def is_planned(fleet: Fleet, members: list[Candidate] | None = None, *, context: int = 0, concurrency: int = 0) -> bool:
    plan = make_plan(
        fleet.spec,
        fleet.members if members is None else members,
        context=context or fleet.context,
        concurrency=concurrency or fleet.concurrency,
        pair_rtts=fleet.pair_rtts,
    )
    return isinstance(plan, Plan)


@settings(max_examples=150)
@given(fleet=st.one_of(fleets(uniform=True), fleets(uniform=False)))
def test_each_remedy_cures_and_for_equal_blocks_no_less_does(fleet: Fleet) -> None:
    refusal = make_plan(
        fleet.spec, fleet.members, context=fleet.context, concurrency=fleet.concurrency, pair_rtts=fleet.pair_rtts
    )
    assume(isinstance(refusal, Refusal))
    assert isinstance(refusal, Refusal)
    assert refusal.member is not None
    uniform = len({*zip(fleet.spec.block_bytes, fleet.spec.kv_bytes_per_token, strict=True)}) == 1
    remedies = refusal.remedies
    if remedies.concurrency is not None:
        assert is_planned(fleet, concurrency=remedies.concurrency)
    if uniform and (remedies.concurrency or 0) < fleet.concurrency - 1:
        assert not is_planned(fleet, concurrency=(remedies.concurrency or 0) + 1)
    if remedies.more_room_bytes is not None:
        assert is_planned(fleet, with_room(fleet, refusal.member, remedies.more_room_bytes))
        if uniform:
            assert not is_planned(fleet, with_room(fleet, refusal.member, remedies.more_room_bytes - 1))
    if remedies.new_member_bytes is not None:
        assert is_planned(fleet, [*fleet.members, make_member("zzz", room=remedies.new_member_bytes)])
        if uniform and remedies.new_member_bytes > 1:
            assert not is_planned(fleet, [*fleet.members, make_member("zzz", room=remedies.new_member_bytes - 1)])
    if remedies.leave_out:
        assert is_planned(fleet, [one for one in fleet.members if one.member != refusal.member])


@pytest.mark.parametrize(("room", "context", "offered"), [(867, 256, None), (868, 257, 256), (868, 4096, 256)])
def test_shorter_conversations_are_offered_in_steps_worth_naming(room: int, context: int, offered: int | None) -> None:
    refusal = refuse(make_member("Desk", room=room), sizes=[100], kv=3, context=context)
    assert refusal.remedies.context == offered


def test_a_size_that_would_fit_does() -> None:
    refusal = refuse(make_member("Desk", room=1000), make_member("Den", room=600), sizes=[100] * 20)
    assert refusal.remedies.size_percent == 75
    spec = make_spec([75] * 20)
    assert isinstance(
        make_plan(spec, [make_member("A", room=1000), make_member("B", room=600)], context=1, concurrency=1), Plan
    )
