"""A member's part, as dialogues: welcomed, measured, in the ring, asking, and when the host is gone."""

import msgspec
import pytest

from helpers.sessions import FAST, NOWHERE, Play, member_id, model_spec
from kafila.domain.capability import Machine
from kafila.domain.chat import AnswerFailed, AnswerText
from kafila.domain.commands import Ask, ChatMessage, JoinSession, LeaveSession, MeetAt, Rename, StopAnswer
from kafila.domain.errors import Problem, Reason
from kafila.domain.ids import ConversationId, SessionId
from kafila.domain.plan import Figures, Objective, PathKind, Plan, Share, Tier
from kafila.domain.snapshot import (
    Ended,
    Idle,
    Joining,
    JoinStep,
    Pace,
    RingMember,
    Serving,
    ThisComputer,
)
from kafila.engine.events import (
    Broke,
    CloseSession,
    DoorStep,
    Effect,
    KeepMeetingPlace,
    KeepName,
    LoadStage,
    Measure,
    MeasuredHere,
    OpenDoor,
    Send,
    SetPeers,
    StageFailed,
    StageLoaded,
    Tell,
    Ticked,
    TurnOnce,
    Welcomed,
)
from kafila.engine.member import HOST_GRACE_S
from kafila.engine.state import State
from kafila.protocol.control import (
    AnswerBroke,
    AnswerPart,
    EdgeReport,
    End,
    Failed,
    Form,
    GiveFirstToken,
    Leaving,
    Loaded,
    Measured,
    Question,
    StopQuestion,
    View,
    Welcome,
)
from kafila.protocol.links import LinkHeard, LinkLost, LinkQuiet, LinkUp, PathChanged, Peer
from kafila.protocol.told import Told, in_words, own_failure

HOST, ME, OTHER = member_id(1), member_id(2), member_id(3)
TALK = ConversationId("talk")
OVER = Told(reason=Reason.HOST_ENDED)


def peer(number: int) -> Peer:
    return Peer(member=member_id(number), spki_sha256=bytes(32), probe_key=bytes(32), candidates=NOWHERE)


def plan(*order: int) -> Plan:
    shares = tuple(
        Share(
            member=member_id(number),
            first=4 * at,
            end=4 * at + 4,
            head=at == 0,
            need_bytes=1,
            room_bytes=2,
            stage_ms=1.0,
        )
        for at, number in enumerate(order)
    )
    return Plan(
        objective=Objective.FASTEST,
        tier=Tier.FULL,
        tier_reason="",
        shares=shares,
        edges=(),
        figures=Figures(bottleneck_ms=1.0, circuit_ms=1.0, tokens_per_second=1.0, utilisation=1.0, fits=True),
        tokens_per_second_alone=1.0,
        search="exact",
    )


def form(*order: int, epoch: int = 7) -> Form:
    return Form(epoch=epoch, tiling=bytes(8), roster=b"", plan=plan(*order), peers=(peer(1), peer(3)))


def serving() -> Serving:
    return Serving(
        is_host=False,
        group="Friends",
        model="A model",
        context=4096,
        ring=(),
        edges=(),
        pace=Pace(),
        chatting=0,
        formed_in_s=1.0,
    )


def node(number: int) -> RingMember:
    return RingMember(
        member=member_id(number),
        machine=Machine(name=f"Computer {number}"),
        first=0,
        end=1,
        head=False,
        is_host=False,
        busy=0.0,
        stage_ms=None,
        resident_weight_bytes=0,
        process_id=1,
    )


def question(answer: int = 1) -> Ask:
    return Ask(conversation=TALK, answer=answer, messages=(ChatMessage(role="user", text="Hello"),))


@pytest.fixture
def play() -> Play:
    """A computer that was let in."""
    play = Play(state=State(me=ThisComputer(member=ME, machine=Machine(name="Laptop"))))
    play.give(JoinSession(code="47-a-b-c-d"))
    welcome = Welcome(
        session=SessionId("5e" * 16),
        roster=b"",
        host=peer(1),
        model=model_spec(),
        context=4096,
        concurrency=1,
    )
    play(Welcomed(welcome=welcome, host=Machine(name="Desk")))
    return play


def in_ring(play: Play, *order: int) -> list[Effect]:
    effects = play.hear(1, form(*order))
    play.hear(1, View(view=serving()))
    return effects


def test_a_joiner_shows_how_far_it_has_come() -> None:
    play = Play()
    assert isinstance(play.give(JoinSession(code="47-a-b-c-d"))[0], OpenDoor)
    play(DoorStep(step=JoinStep.WAITING, host=Machine(name="Desk"), group="Friends", phrase=("a", "b", "c")))
    session = play.see().session
    assert isinstance(session, Joining)
    assert (session.step, session.phrase) == (JoinStep.WAITING, ("a", "b", "c"))


def test_a_joiner_that_is_refused_reads_why() -> None:
    play = Play()
    play.give(JoinSession(code="47-a-b-c-d"))
    problem = Problem(title="This code has ended", advice="Ask for a new one.")
    assert isinstance(play(Broke(problem=problem))[0], CloseSession)
    assert play.see().session == Idle(problem=problem)


def test_whoever_is_let_in_links_with_the_host_and_measures(play: Play) -> None:
    assert any(isinstance(e, SetPeers) and [p.member for p in e.peers] == [HOST] for e in play.effects)
    assert any(isinstance(e, Measure) for e in play.effects)
    assert play(MeasuredHere(capability=FAST)) == [Send(to=HOST, message=Measured(capability=FAST))]


def test_a_plan_links_the_neighbours_and_loads(play: Play) -> None:
    effects = in_ring(play, 1, 2, 3)
    assert [type(e) for e in effects] == [SetPeers, LoadStage, Send]
    loaded = play(StageLoaded(epoch=7, resident_weight_bytes=5, process_id=6))
    assert loaded == [Send(to=HOST, message=Loaded(epoch=7, resident_weight_bytes=5, process_id=6))]


def test_only_the_host_can_give_a_plan_or_end_the_session(play: Play) -> None:
    assert play.hear(3, form(1, 2, 3)) == []
    assert play.hear(3, End(told=OVER, failed=False)) == []
    assert isinstance(play.see().session, Joining)


def test_news_of_an_older_plan_is_not_told(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    assert play(StageLoaded(epoch=6, resident_weight_bytes=5, process_id=6)) == []


def reported(path: PathKind | None, *, rtt_ms: float | None = None, after_ms: float = 0.0) -> list[Effect]:
    return [Send(to=HOST, message=EdgeReport(epoch=7, path=path, rtt_ms=rtt_ms, after_ms=after_ms))]


def test_the_hop_to_the_next_member_is_reported_with_its_time(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    play.now += 0.1
    # A path that nothing travels on yet is none.
    assert play.link(PathChanged(peer=OTHER, path=PathKind.RELAYED, rtt_ms=None)) == reported(None)
    play.now += 0.15
    assert play.link(LinkUp(peer=OTHER)) == reported(PathKind.RELAYED, after_ms=250.0)
    play.now += 1.0
    again = play.link(PathChanged(peer=OTHER, path=PathKind.RELAYED, rtt_ms=5.0))
    assert again == reported(PathKind.RELAYED, rtt_ms=5.0, after_ms=250.0)
    moved = play.link(PathChanged(peer=OTHER, path=PathKind.DIRECT, rtt_ms=3.0))
    assert moved == reported(PathKind.DIRECT, rtt_ms=3.0, after_ms=1250.0)
    assert play.link(PathChanged(peer=HOST, path=PathKind.DIRECT, rtt_ms=1.0)) == []


def test_a_next_member_that_is_not_heard_is_reported_until_it_is(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    play.link(PathChanged(peer=OTHER, path=PathKind.RELAYED, rtt_ms=4.0))
    play.link(LinkUp(peer=OTHER))
    assert play.link(LinkQuiet(peer=OTHER)) == reported(None)
    assert play.link(LinkHeard(peer=OTHER)) == reported(PathKind.RELAYED, rtt_ms=4.0)
    assert play.link(LinkLost(peer=OTHER, reason="over")) == reported(None)


def test_a_link_that_is_there_already_is_an_edge_at_once(play: Play) -> None:
    play.link(PathChanged(peer=HOST, path=PathKind.DIRECT, rtt_ms=1.0))
    play.link(LinkUp(peer=HOST))
    play.now += 5.0
    effects = play.hear(1, form(2, 1, 3))
    assert effects[-1] == Send(to=HOST, message=EdgeReport(epoch=7, path=PathKind.DIRECT, rtt_ms=1.0, after_ms=0.0))


def test_a_question_goes_to_the_head_and_only_its_answer_counts(play: Play) -> None:
    in_ring(play, 3, 1, 2)
    assert play.give(question()) == [Send(to=OTHER, message=Question(ask=question()))]
    text = AnswerText(conversation=TALK, answer=1, text="Hi")
    assert play.hear(1, AnswerPart(event=text)) == []
    assert play.hear(3, AnswerPart(event=text)) == [Tell(event=text)]
    unasked = AnswerText(conversation=TALK, answer=9, text="Hi")
    assert play.hear(3, AnswerPart(event=unasked)) == []
    stop = StopAnswer(conversation=TALK, answer=1)
    assert play.give(stop) == [Send(to=OTHER, message=StopQuestion(stop=stop))]


def test_the_head_turns_the_ring_when_the_host_says_so(play: Play) -> None:
    in_ring(play, 2, 1, 3)
    assert play.hear(1, GiveFirstToken(epoch=7)) == [TurnOnce(epoch=7)]
    assert play.hear(1, GiveFirstToken(epoch=6)) == []
    assert play.hear(3, GiveFirstToken(epoch=7)) == []


def test_who_does_not_lead_answers_nothing(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    assert play.hear(3, Question(ask=question())) == []


def test_a_host_that_is_silent_pauses_and_may_come_back(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    play.link(LinkQuiet(peer=HOST))
    session = play.see().session
    assert isinstance(session, Serving)
    assert session.paused is not None
    assert "Desk" in session.paused.title
    play.link(LinkHeard(peer=HOST))
    assert play.see().session == serving()


def test_a_host_that_stays_silent_ends_the_session_and_open_answers(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    play.give(question())
    play.link(LinkQuiet(peer=HOST))
    play.now += HOST_GRACE_S + 1
    effects = play(Ticked())
    assert isinstance(effects[-1], CloseSession)
    assert [type(e.event) for e in effects if isinstance(e, Tell)] == [AnswerFailed]
    session = play.see().session
    assert isinstance(session, Ended)
    assert session.failed


def test_a_closed_connection_to_the_host_ends_the_session(play: Play) -> None:
    play.link(LinkLost(peer=HOST, reason="closed"))
    assert isinstance(play.see().session, Ended)


def test_the_hosts_goodbye_is_worded_here(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    play.hear(1, End(told=OVER, failed=False))
    assert play.see().session == Ended(reason=in_words(Reason.HOST_ENDED), failed=False)


@pytest.mark.parametrize(("number", "name"), [(1, "Desk"), (2, "This computer"), (3, "Computer 3"), (9, "A computer")])
def test_an_end_names_the_member_that_it_is_about(play: Play, number: int, name: str) -> None:
    in_ring(play, 1, 2, 3)
    play.hear(1, View(view=msgspec.structs.replace(serving(), ring=(node(2), node(3)))))
    play.hear(1, End(told=Told(reason=Reason.LEFT, about=member_id(number)), failed=True))
    assert play.see().session == Ended(reason=in_words(Reason.LEFT, name), failed=True)


def test_an_answer_that_broke_is_worded_here(play: Play) -> None:
    in_ring(play, 3, 1, 2)
    play.give(question())
    (told,) = play.hear(3, AnswerPart(event=AnswerBroke(conversation=TALK, answer=1, reason=Reason.TOO_MANY)))
    assert told == Tell(event=AnswerFailed(conversation=TALK, answer=1, problem=in_words(Reason.TOO_MANY)))
    assert play.hear(3, AnswerPart(event=AnswerText(conversation=TALK, answer=1, text="more"))) == []


def test_leaving_is_told_to_the_host(play: Play) -> None:
    effects = play.give(LeaveSession())
    assert effects == [Send(to=HOST, message=Leaving()), CloseSession()]
    assert play.see().session == Idle()


def test_a_stage_that_fails_is_told_to_the_host(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    effects = play(StageFailed(epoch=7, reason=Reason.DISK))
    assert effects == [Send(to=HOST, message=Failed(reason=Reason.DISK))]


def test_the_computer_that_failed_reads_all_about_it(play: Play) -> None:
    in_ring(play, 1, 2, 3)
    full = Problem(title="The disk is full", advice="Make room in “Models”.")
    assert play(StageFailed(epoch=6, reason=Reason.DISK, problem=full)) == []
    assert play(StageFailed(epoch=7, reason=Reason.DISK, problem=full)) == [
        Send(to=HOST, message=Failed(reason=Reason.DISK))
    ]
    play.hear(1, End(told=Told(reason=Reason.DISK, about=ME), failed=True))
    assert play.see().session == Ended(reason=own_failure(full), failed=True)


def test_where_sessions_meet_is_kept_if_it_is_an_address() -> None:
    play = Play()
    pinned = "meet.example:47470#" + "ab" * 16
    for given in ("meet.example:47470", "[2001:db8::1]:47470", pinned):
        assert play.give(MeetAt(rendezvous=f" {given} ")) == [KeepMeetingPlace(rendezvous=given)]
        assert (play.see().me.rendezvous, play.see().me.rendezvous_problem) == (given, None)
    for wrong in ("meet.example", "meet.example:47470#short", "meet.example:99999", "#"):
        assert play.give(MeetAt(rendezvous=wrong)) == []
        problem = play.see().me.rendezvous_problem
        assert problem is not None
        assert "not an address" in problem.title
        assert play.see().me.rendezvous == pinned
    assert play.give(MeetAt(rendezvous="")) == [KeepMeetingPlace(rendezvous=None)]
    assert (play.see().me.rendezvous, play.see().me.rendezvous_problem) == ("", None)


def test_a_new_name_is_shown_and_kept() -> None:
    play = Play()
    assert play.give(Rename(machine=" Attic mini ", owner="Kit")) == [KeepName(machine="Attic mini", owner="Kit")]
    assert play.see().me.machine.name == "Attic mini"
    play.give(Rename(machine="  ", owner=""))
    assert play.see().me.machine.name == "Attic mini"
