"""The host's part, as dialogues: who is in, when the ring forms, serves, pauses and ends."""

from dataclasses import replace

from helpers.sessions import FAST, HOST, Play, guest, member_id
from kafila.domain.capability import Capability, Machine
from kafila.domain.commands import (
    Admission,
    Admit,
    Ask,
    ChatMessage,
    Decline,
    DivideByHand,
    HostSession,
    LeaveSession,
    PlanAnew,
    Remove,
    StartRing,
    TryDemo,
)
from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import ConversationId, MemberId
from kafila.domain.plan import Objective, PathKind, Plan, Refusal
from kafila.domain.snapshot import Ended, Forming, Idle, Serving, WaitingRoom
from kafila.engine.events import (
    AnswerGuest,
    Broke,
    CloseInvitation,
    CloseSession,
    CompanionEnded,
    Effect,
    GuestCame,
    LoadStage,
    MeasuredHere,
    Send,
    SetPeers,
    StageFailed,
    StageLoaded,
    StartAnswer,
    Ticked,
    TurnOnce,
)
from kafila.engine.host import GRACE_S
from kafila.protocol.control import (
    Declined,
    EdgeReport,
    End,
    Failed,
    FirstToken,
    Form,
    GiveFirstToken,
    Leaving,
    Loaded,
    StageReport,
    View,
    Welcome,
)
from kafila.protocol.links import LinkHeard, LinkLost, LinkQuiet
from kafila.protocol.told import Told, in_words, own_failure


def sent(effects: list[Effect], kind: type, to: MemberId | None = None) -> list[Send]:
    return [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind) and (to is None or e.to == to)]


def forming(play: Play, others: int = 2) -> list[Effect]:
    """A session with so many others, started."""
    play.open(admission=Admission.ALL, start_at=others + 1)
    effects: list[Effect] = []
    for number in range(1, others + 1):
        effects = play.arrive(number)
    return effects


def serving(play: Play, others: int = 2) -> None:
    """A session with so many others whose ring has turned."""
    forming(play, others)
    session = play.see().session
    assert isinstance(session, Forming)
    epoch = _epoch(play)
    for share in session.plan.shares:
        number = int(share.member, 16)
        play.hear(number, Loaded(epoch=epoch, resident_weight_bytes=1000, process_id=1))
        play.hear(number, EdgeReport(epoch=epoch, path=PathKind.DIRECT, rtt_ms=1.0, after_ms=5.0))
    play.hear(int(session.plan.head, 16), FirstToken(epoch=epoch))
    assert isinstance(play.see().session, Serving)


def _epoch(play: Play) -> int:
    return next(e.message.epoch for e in reversed(play.effects) if isinstance(e, Send) and isinstance(e.message, Form))


def test_a_session_opens_with_a_code_and_a_plan_for_the_host_alone() -> None:
    play = Play()
    play.open()
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert (room.code, room.group) == ("47-a-b-c-d", "Friends")
    assert isinstance(room.plan, Plan)
    assert room.plan.head == HOST


def test_the_demo_starts_by_itself_with_alike_shares_for_its_engines() -> None:
    play = Play()
    play.open_by(TryDemo(members=3))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert room.starts_at == 3
    assert play.arrive(1)
    play.arrive(2)
    session = play.see().session
    assert isinstance(session, Forming)
    assert session.plan.objective is Objective.BALANCED
    counts = [share.end - share.first for share in session.plan.shares]
    assert max(counts) - min(counts) <= 1


def test_the_hosts_own_failure_is_told_to_all_and_read_in_full_here() -> None:
    play = Play()
    forming(play)
    full = Problem(title="The disk is full", advice="Make room in “Models”.")
    effects = play(StageFailed(epoch=_epoch(play), reason=Reason.DISK, problem=full))
    ends = [effect.message for effect in sent(effects, End)]
    assert ends == [End(told=Told(reason=Reason.DISK, about=HOST), failed=True)] * 2
    assert play.see().session == Ended(reason=own_failure(full), failed=True)


def test_a_members_failure_ends_the_session_with_its_name() -> None:
    play = Play()
    forming(play)
    play.hear(1, Failed(reason=Reason.DISK))
    assert play.see().session == Ended(reason=in_words(Reason.DISK, "Computer 1"), failed=True)


def test_a_session_that_cannot_be_opened_says_why() -> None:
    play = Play()
    play.give(HostSession(model="gone"))
    play(Broke(problem=Problem(title="There is no such folder", advice="Choose another.")))
    assert play.see().session == Idle(problem=Problem(title="There is no such folder", advice="Choose another."))


def test_a_newcomer_waits_for_the_host() -> None:
    play = Play()
    play.open()
    assert play(GuestCame(guest=guest(1))) == []
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert [n.phrase for n in room.newcomers] == [("amber", "heron", "cloud")]
    effects = play.give(Admit(member=member_id(1)))
    answers = [e.answer for e in effects if isinstance(e, AnswerGuest)]
    assert len(answers) == 1
    assert isinstance(answers[0], Welcome)
    assert answers[0].host.member == HOST
    assert [p.member for e in effects if isinstance(e, SetPeers) for p in e.peers] == [member_id(1)]


def test_a_newcomer_may_be_declined() -> None:
    play = Play()
    play.open()
    play(GuestCame(guest=guest(1)))
    effects = play.give(Decline(member=member_id(1)))
    assert [e.answer for e in effects if isinstance(e, AnswerGuest)] == [Declined()]
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert room.newcomers == ()
    assert play.give(Admit(member=member_id(1))) == []


def test_a_known_computer_is_let_in_by_itself() -> None:
    play = Play()
    play.open()
    effects = play(GuestCame(guest=guest(1, known=True)))
    assert any(isinstance(e, AnswerGuest) and isinstance(e.answer, Welcome) for e in effects)


def test_the_probe_key_of_a_pair_is_its_own() -> None:
    play = Play()
    forming(play, others=3)
    forms = {e.to: e.message for e in play.effects if isinstance(e, Send) and isinstance(e.message, Form)}
    keys: dict[frozenset[str], set[bytes]] = {}
    for member, form in forms.items():
        for peer in form.peers:
            keys.setdefault(frozenset((member, peer.member)), set()).add(peer.probe_key)
    assert all(len(found) == 1 for found in keys.values())
    assert len({key for found in keys.values() for key in found}) == len(keys)


def test_everyone_gets_their_blocks_once_enough_are_measured() -> None:
    play = Play()
    effects = forming(play)
    assert [e.to for e in sent(effects, Form)] != []
    assert any(isinstance(e, CloseInvitation) for e in effects)
    assert any(isinstance(e, LoadStage) for e in effects)
    session = play.see().session
    assert isinstance(session, Forming)
    assert sum(share.blocks for share in session.plan.shares) == 12


def test_the_first_token_waits_for_every_stage_and_every_edge() -> None:
    play = Play()
    forming(play)
    epoch = _epoch(play)
    play(StageLoaded(epoch=epoch, resident_weight_bytes=1, process_id=1))
    for number in (1, 2):
        effects = play.hear(number, Loaded(epoch=epoch, resident_weight_bytes=1, process_id=1))
        assert sent(effects, GiveFirstToken) == []
    for number in (0, 1):
        play.hear(number, EdgeReport(epoch=epoch, path=PathKind.DIRECT, rtt_ms=1.0, after_ms=1.0))
    effects = play.hear(2, EdgeReport(epoch=epoch, path=PathKind.RELAYED, rtt_ms=1.0, after_ms=1.0))
    assert len(sent(effects, GiveFirstToken)) == 1
    assert any(isinstance(e, TurnOnce) for e in effects) == (sent(effects, GiveFirstToken)[0].to == HOST)


def test_reports_of_an_older_ring_do_not_count() -> None:
    play = Play()
    forming(play)
    epoch = _epoch(play)
    for number in (0, 1, 2):
        play.hear(number, Loaded(epoch=epoch - 1, resident_weight_bytes=1, process_id=1))
        effects = play.hear(number, EdgeReport(epoch=epoch - 1, path=PathKind.DIRECT, rtt_ms=1.0, after_ms=1.0))
        assert sent(effects, GiveFirstToken) == []


def test_a_plan_that_does_not_fit_does_not_start() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1, Capability(room_bytes=1000, bandwidth_bytes_s=1e9, flops_s=1e9))
    effects = play.give(StartRing())
    assert sent(effects, Form) == []
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert isinstance(room.plan, Refusal)
    assert room.plan.member == member_id(1)


def test_a_member_taken_out_is_told_and_the_plan_follows() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    effects = play.give(Remove(member=member_id(1)))
    assert len(sent(effects, End, member_id(1))) == 1
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert [m.member for m in room.members] == [HOST]
    assert isinstance(room.plan, Plan)


def test_members_see_the_room_without_the_code() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    effects = play(Ticked())
    views = [e.message.view for e in sent(effects, View, member_id(1)) if isinstance(e.message, View)]
    assert len(views) == 1
    assert isinstance(views[0], WaitingRoom)
    assert (views[0].code, views[0].link, views[0].is_host) == (None, None, False)


def test_a_silent_member_pauses_the_ring_and_may_come_back() -> None:
    play = Play()
    serving(play)
    effects = play.link(LinkQuiet(peer=member_id(2)))
    session = play.see().session
    assert isinstance(session, Serving)
    assert session.paused is not None
    assert "Computer 2" in session.paused.title
    assert len(sent(effects, View, member_id(1))) == 1  # told at once, not at the next tick
    play.now += GRACE_S / 2
    play(Ticked())
    play.link(LinkHeard(peer=member_id(2)))
    session = play.see().session
    assert isinstance(session, Serving)
    assert session.paused is None


def _hop(play: Play, number: int, path: PathKind | None) -> None:
    play.hear(number, EdgeReport(epoch=_epoch(play), path=path, rtt_ms=1.0, after_ms=0.0))


def _neighbours(play: Play) -> tuple[int, int]:
    """A member that is not the host, and the next, which is not either."""
    session = play.see().session
    assert isinstance(session, Serving)
    ring = [int(each.member, 16) for each in session.ring]
    return next(pair for pair in zip(ring, [*ring[1:], *ring[:1]], strict=True) if 0 not in pair)


def _paused(play: Play) -> str | None:
    session = play.see().session
    assert isinstance(session, Serving)
    return None if session.paused is None else session.paused.title


def test_the_ring_waits_for_a_member_that_only_its_neighbour_does_not_hear() -> None:
    play = Play()
    serving(play)
    one, other = _neighbours(play)
    _hop(play, one, None)
    assert _paused(play) is None
    play.now += 1.5
    effects = play(Ticked())
    assert f"Computer {other}" in (_paused(play) or "")
    assert len(sent(effects, View, member_id(one))) == 1
    _hop(play, one, PathKind.RELAYED)
    assert _paused(play) is None
    _hop(play, one, None)
    play.now += GRACE_S + 1
    play(Ticked())
    session = play.see().session
    assert isinstance(session, Ended)
    assert f"Computer {other}" in session.reason.title


def test_old_news_of_a_computer_that_is_back_makes_nobody_wait() -> None:
    play = Play()
    serving(play)
    one, _ = _neighbours(play)
    play.link(LinkQuiet(peer=member_id(one)))
    play.now += 2.0
    assert f"Computer {one}" in (_paused(play) or "")
    play.link(LinkHeard(peer=member_id(one)))
    # What it has to say of its neighbour was said while it was away itself.
    _hop(play, one, None)
    play.now += 0.3
    assert _paused(play) is None
    _hop(play, one, PathKind.DIRECT)
    play.now += 2.0
    assert _paused(play) is None


def test_an_edge_counts_from_the_start_not_from_when_its_member_heard_of_it() -> None:
    play = Play()
    forming(play)
    epoch = _epoch(play)
    play.hear(1, EdgeReport(epoch=epoch, path=PathKind.RELAYED, rtt_ms=9.0, after_ms=80.0))
    play.hear(2, EdgeReport(epoch=epoch, path=PathKind.DIRECT, rtt_ms=9.0, after_ms=0.0))
    session = play.see().session
    assert isinstance(session, Forming)
    after_ms = {edge.from_member: edge.after_ms for edge in session.edges}
    # The host's round trip to each is 2 ms. What was there before the start was there at once.
    assert (after_ms[member_id(1)], after_ms[member_id(2)]) == (81.0, 0.0)


def test_a_member_that_stays_away_ends_the_session_with_a_sentence_for_all() -> None:
    play = Play()
    serving(play)
    play.link(LinkQuiet(peer=member_id(2)))
    play.now += GRACE_S + 1
    effects = play(Ticked())
    assert {e.to for e in sent(effects, End)} == {member_id(1), member_id(2)}
    assert isinstance(effects[-1], CloseSession)
    session = play.see().session
    assert isinstance(session, Ended)
    assert session.failed


def test_a_member_that_leaves_ends_the_ring() -> None:
    play = Play()
    serving(play)
    effects = play.hear(1, Leaving())
    assert len(sent(effects, End, member_id(2))) == 1
    session = play.see().session
    assert isinstance(session, Ended)
    assert "Computer 1 left" in session.reason.title


def test_a_member_lost_while_gathering_only_loses_its_seat() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    play.link(LinkLost(peer=member_id(1), reason="gone"))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert len(room.members) == 1


def test_a_computer_that_comes_again_takes_its_old_seat() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    play.arrive(1)
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert [m.member for m in room.members] == [HOST, member_id(1)]


def test_a_stopped_demo_engine_ends_the_demo() -> None:
    play = Play()
    serving(play)
    play(CompanionEnded(name="Desk (2)"))
    assert isinstance(play.see().session, Ended)


def test_the_host_ends_the_session_for_everyone() -> None:
    play = Play()
    serving(play)
    effects = play.give(LeaveSession())
    assert {e.to for e in sent(effects, End)} == {member_id(1), member_id(2)}
    session = play.see().session
    assert isinstance(session, Ended)
    assert not session.failed


def test_a_ring_of_one_needs_no_edge() -> None:
    play = Play()
    play.open(start_at=1)
    effects = play(MeasuredHere(capability=FAST))
    epoch = _epoch(play)
    effects = play(StageLoaded(epoch=epoch, resident_weight_bytes=1, process_id=1))
    assert any(isinstance(e, TurnOnce) for e in effects)


def test_a_question_before_serving_is_answered_with_a_sentence() -> None:
    play = Play()
    play.open()
    ask = Ask(conversation=ConversationId("c"), answer=1, messages=(ChatMessage(role="user", text="Hello"),))
    effects = play.give(ask)
    assert not any(isinstance(e, StartAnswer) for e in effects)
    assert len(effects) == 1


def test_a_person_may_divide_the_parts_and_admission_still_guards() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    play.give(DivideByHand(blocks=((member_id(1), 5), (HOST, 7))))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert isinstance(room.plan, Plan)
    assert [(s.member, s.first, s.end) for s in room.plan.shares] == [(member_id(1), 0, 5), (HOST, 5, 12)]
    play.give(DivideByHand(blocks=((member_id(1), 5), (HOST, 8))))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert isinstance(room.plan, Plan)
    assert room.plan.search != "by-hand"  # counts that are not those of all blocks count for nothing


def test_a_division_by_hand_ends_when_somebody_comes() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    play.arrive(1)
    play.give(DivideByHand(blocks=((HOST, 1), (member_id(1), 11))))
    play.arrive(2)
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert isinstance(room.plan, Plan)
    assert len(room.plan.shares) == 3


def test_the_ring_is_divided_anew_by_what_its_stages_take() -> None:
    play = Play()
    serving(play)
    play.give(PlanAnew())
    session = play.see().session
    assert isinstance(session, Serving)
    assert "Ask something first" in session.planned
    epoch = _epoch(play)
    slow = session.ring[-1].member
    for member in session.ring:
        stage_ms = 900.0 if member.member == slow else 3.0
        play.hear(int(member.member, 16), StageReport(epoch=epoch, busy=0.5, stage_ms=stage_ms, bytes_per_s=0.0))
    effects = play.give(PlanAnew())
    assert {e.to for e in sent(effects, Form)} == {m.member for m in session.ring}
    forming_again = play.see().session
    assert isinstance(forming_again, Forming)
    assert _epoch(play) > epoch
    assert forming_again.plan.share_of(slow).blocks == 1


def test_computers_of_the_same_name_are_told_apart() -> None:
    play = Play()
    play.open(admission=Admission.ALL)
    for number in (1, 2, 3):
        twin = replace(guest(number), machine=Machine(name="Desk"))
        play(GuestCame(guest=twin))
    room = play.see().session
    assert isinstance(room, WaitingRoom)
    assert [member.machine.name for member in room.members] == ["Desk", "Desk (2)", "Desk (3)", "Desk (4)"]
