"""What another computer says of failures: a reason, worded here; and its names and sentences, made fit to show."""

import msgspec
import pytest

from helpers import snapshots
from helpers.sessions import member_id
from kafila.domain.capability import Machine
from kafila.domain.errors import PeerError, Problem, Reason
from kafila.domain.plan import Plan, Refusal
from kafila.domain.snapshot import Forming, Serving, WaitingRoom
from kafila.protocol.control import End, decode_message, encode_message
from kafila.protocol.shown import MAX_SENTENCE, MAX_SENTENCES, view_from_host
from kafila.protocol.told import Told, in_words

DIRTY = "Up\ndown\u202e\x1b[31m " + "x" * 5000
THEIRS = Problem(title="Pay the host", advice="Now.")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason: Reason) -> None:
    problem = in_words(reason, "Desk")
    assert problem.title
    assert not problem.title.endswith(".")
    assert problem.advice.endswith(".")
    assert "{" not in problem.sentence()


def test_an_end_carries_a_reason_and_nothing_else() -> None:
    end = End(told=Told(reason=Reason.LEFT, about=member_id(3)), failed=True)
    assert decode_message(encode_message(end)) == end
    words = msgspec.msgpack.encode({"type": "end", "told": {"reason": "Pay the host", "about": None}, "failed": True})
    with pytest.raises(PeerError):
        decode_message(words)


def _fit(text: str) -> bool:
    return text.isprintable() and len(text) <= MAX_SENTENCE


def test_a_waiting_room_keeps_no_text_of_the_host_that_is_not_fit_to_show() -> None:
    machine = Machine(name=DIRTY, owner=DIRTY, system=DIRTY)
    room = snapshots.waiting_room().session
    assert isinstance(room, WaitingRoom)
    assert isinstance(room.plan, Plan)
    plan = msgspec.structs.replace(room.plan, advice=(DIRTY,) * 100, tier_reason=DIRTY, search_note=DIRTY, search=DIRTY)
    members = tuple(msgspec.structs.replace(member, machine=machine) for member in room.members)
    shown = view_from_host(
        msgspec.structs.replace(room, group=DIRTY, model=DIRTY, members=members, plan=plan, problem=THEIRS)
    )
    assert isinstance(shown, WaitingRoom)
    assert isinstance(shown.plan, Plan)
    assert (shown.code, shown.link, shown.newcomers, shown.problem, shown.is_host) == (None, None, (), None, False)
    assert len(shown.plan.advice) == MAX_SENTENCES
    names = [text for member in shown.members for text in (member.machine.name, member.machine.owner)]
    texts = [shown.group, shown.model, *names, *shown.plan.advice, shown.plan.tier_reason, shown.plan.search_note]
    assert all(map(_fit, texts))


def test_a_refusal_is_kept_to_lines() -> None:
    refusal = Refusal(member=None, sentence=DIRTY, needs_bytes=1, has_bytes=1, help=(DIRTY,) * 100)
    room = snapshots.waiting_room(plan=refusal).session
    assert isinstance(room, WaitingRoom)
    shown = view_from_host(room)
    assert isinstance(shown, WaitingRoom)
    assert isinstance(shown.plan, Refusal)
    assert all(map(_fit, (shown.plan.sentence, *shown.plan.help)))
    assert len(shown.plan.help) == MAX_SENTENCES


def test_the_forming_ring_has_clean_names() -> None:
    forming = snapshots.forming().session
    assert isinstance(forming, Forming)
    row = msgspec.structs.replace(forming.rows[0], machine=Machine(name=DIRTY))
    shown = view_from_host(msgspec.structs.replace(forming, rows=(row,), group=DIRTY))
    assert isinstance(shown, Forming)
    assert all(map(_fit, (shown.group, shown.rows[0].machine.name)))


def test_why_a_ring_is_paused_is_worded_here() -> None:
    serving = snapshots.serving().session
    assert isinstance(serving, Serving)
    shown = view_from_host(msgspec.structs.replace(serving, paused=THEIRS, planned=DIRTY))
    assert isinstance(shown, Serving)
    assert shown.paused is None
    assert _fit(shown.planned)
    first, second, *rest = serving.ring
    ring = (msgspec.structs.replace(first, away_s=2.0), msgspec.structs.replace(second, away_s=9.0), *rest)
    shown = view_from_host(msgspec.structs.replace(serving, ring=ring, paused=THEIRS))
    assert isinstance(shown, Serving)
    assert shown.paused == in_words(Reason.AWAY, second.machine.name)
