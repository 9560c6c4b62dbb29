"""`kafila host` and `kafila join`: two processes, each with a home of its own, and one code."""

import base64
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from end_to_end.contract import (
    Answered,
    Coded,
    EdgeNews,
    Happening,
    MemberNews,
    Over,
    Planned,
    Ready,
    check_ring,
    read_events,
)
from end_to_end.sessions import Session, name_of, start_host, start_session
from helpers.processes import Finished, Home, Homes, homes_in
from kafila.assets import asset
from kafila.protocol.invitation import CODE_ENTROPY_BYTES, Invitation, make_code, parse_invitation
from kafila.protocol.words import WordList

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(300)]

PROMPTS = ("Hello there", "What else?")
TOKENS = 40
BLOCKS = 4


@pytest.fixture(scope="module")
def session(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A host that is asked two things and then ends; its friend has no copy of the model."""
    with homes_in(tmp_path_factory.mktemp("homes")) as homes:
        prompts = [word for prompt in PROMPTS for word in ("--prompt", prompt)]
        yield start_session(homes, tiny, *prompts, "--max-tokens", TOKENS)


@pytest.fixture(scope="module")
def ended(session: Session) -> tuple[Finished, Finished]:
    """How the host and the joiner ended."""
    host, joiner = (process.finish() for process in session.processes)
    return host, joiner


@pytest.fixture(scope="module")
def told(ended: tuple[Finished, Finished]) -> tuple[list[Happening], list[Happening]]:
    """What the host and the joiner said."""
    host, joiner = (read_events(finished.events()) for finished in ended)
    return host, joiner


class TestSession:
    def test_ends_well_for_both(self, ended: tuple[Finished, Finished]) -> None:
        for finished in ended:
            assert finished.code == 0, finished.said
            assert "Traceback" not in finished.err

    def test_answers_as_one_process_does(
        self, told: tuple[list[Happening], list[Happening]], alone: Alone, tiny: Path
    ) -> None:
        answers = [event for event in told[0] if isinstance(event, Answered)]
        assert [answer.prompt for answer in answers] == list(PROMPTS)
        for answer in answers:
            expected = alone.answer(tiny, answer.prompt, max_tokens=TOKENS)
            assert answer.token_ids == expected.token_ids
            # Half a character at the end is not shown.
            assert answer.text == expected.text.rstrip("\ufffd")

    def test_is_held_by_both(self, session: Session, told: tuple[list[Happening], list[Happening]]) -> None:
        for answer in (event for event in told[0] if isinstance(event, Answered)):
            check_ring(answer, blocks=BLOCKS, members=2)
            assert {member.pid for member in answer.members} == {process.pid for process in session.processes}
            assert name_of(0) in {member.name for member in answer.members}

    def test_is_told_in_order(self, told: tuple[list[Happening], list[Happening]]) -> None:
        for events in told:
            order = [type(event) for event in events if not isinstance(event, MemberNews | EdgeNews)]
            assert order == [
                *([Coded] if events is told[0] else []),
                Planned,
                Ready,
                *([Answered, Answered] if events is told[0] else []),
                Over,
            ]

    def test_tells_of_every_member(self, told: tuple[list[Happening], list[Happening]]) -> None:
        host, joiner = told
        (plan,) = [event for event in host if isinstance(event, Planned)]
        for events in told:
            news = [event for event in events if isinstance(event, MemberNews)]
            assert {event.id for event in news} == plan.blocks.keys()
            assert plan.head in plan.blocks
            for member in plan.blocks:
                states = [event.state for event in news if event.id == member]
                assert states[-1] == "ready"
                assert len(states) == len(set(states))
        assert plan in joiner
        (newcomer,) = {event.id for event in host if isinstance(event, MemberNews) and event.name == name_of(0)}
        states = [event.state for event in host if isinstance(event, MemberNews) and event.id == newcomer]
        assert states[0] == "admitted"

    def test_tells_of_every_hop(self, told: tuple[list[Happening], list[Happening]]) -> None:
        (plan,) = [event for event in told[0] if isinstance(event, Planned)]
        one, other = plan.blocks
        for events in told:
            hops = [event for event in events if isinstance(event, EdgeNews)]
            assert {(hop.from_id, hop.to_id) for hop in hops} == {(one, other), (other, one)}
            # A hop that was there before the plan took no time.
            assert all(hop.after_ms >= 0 for hop in hops)
            assert hops[-1].path == "direct"

    def test_gives_the_joiner_its_own_blocks_and_no_others(
        self, session: Session, told: tuple[list[Happening], list[Happening]]
    ) -> None:
        (plan,) = [event for event in told[0] if isinstance(event, Planned)]
        (newcomer,) = {event.id for event in told[0] if isinstance(event, MemberNews) and event.name == name_of(0)}
        first, end = plan.blocks[newcomer]
        (share,) = session.homes[1].models.iterdir()
        fetched = {file.name for file in share.glob("*.safetensors")}
        head = {"model-head.safetensors"} if plan.head == newcomer else set[str]()
        assert fetched == {f"model-block-{block:05}.safetensors" for block in range(first, end)} | head
        assert not session.homes[0].models.exists()


WHISPER = "Whisper it: aubergine."


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Two instances on one computer and in one home, in words rather than JSON, and talkative."""

    home: Home
    code: str
    host: Finished
    joiner: Finished


@pytest.fixture(scope="module")
def spoken(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spoken]:
    with homes_in(tmp_path_factory.mktemp("spoken")) as homes:
        home = homes.new()
        who = ("--members", 2, "--admit", "all", "--profile", "one", "--verbose")
        host = home.start("host", "--model", tiny, *who, "--prompt", WHISPER, "--max-tokens", 8)
        code = host.sentence("Code: ").removeprefix("Code: ")
        joiner = home.run("join", code, "--profile", "two", "--verbose")
        assert joiner.code == 0, joiner.said
        yield Spoken(home=home, code=code, host=host.finish(), joiner=joiner)


class TestSpokenCode:
    def test_is_enough_on_one_computer(self, spoken: Spoken, alone: Alone, tiny: Path) -> None:
        assert spoken.host.code == 0, spoken.host.said
        assert alone.answer(tiny, WHISPER, max_tokens=8).text.rstrip("\ufffd") in spoken.host.out

    def test_profiles_keep_their_keys_apart(self, spoken: Spoken) -> None:
        keys = device_keys(spoken.home)
        assert keys.keys() == {"one", "two"}
        assert keys["one"].read_bytes() != keys["two"].read_bytes()
        assert [key.stat().st_mode & 0o077 for key in keys.values()] == [0, 0]

    def test_nothing_secret_is_logged(self, spoken: Spoken) -> None:
        assert " INFO kafila." in spoken.host.err
        assert " INFO kafila." in spoken.joiner.err
        shown = [line for line in spoken.host.out.splitlines() if not line.startswith(("Code: ", "Invitation link: "))]
        logs = "\n".join((*shown, spoken.host.err, spoken.joiner.said))
        assert not words_of(spoken.code, logs)
        assert "aubergine" not in logs
        for file in device_keys(spoken.home).values():
            key = file.read_bytes()
            for written in (key.hex(), base64.b64encode(key).decode(), repr(key)):
                assert written not in logs


def test_the_host_is_asked_at_a_rendezvous_of_the_group(homes: Homes, alone: Alone, tiny: Path) -> None:
    meeting_point = homes.new().start("rendezvous", "--listen", "127.0.0.1:0", "--json", "--verbose")
    listening = meeting_point.event("listening")
    at = ("--rendezvous", f"{listening['host']}:{listening['port']}")
    host = start_host(homes.new("host"), tiny, *at, "--admit", "ask", "--prompt", PROMPTS[0], "--max-tokens", 8)
    invited = host.event("code")
    guest = homes.new("guest")

    wrong = guest.run("join", _another_code(invited["link"]), *at, "--json")
    assert wrong.code == 1
    assert "This code does not open the session" in wrong.err, wrong.err

    refused = guest.start("join", invited["code"], *at, "--name", "first", "--json")
    asked = host.sentence("first asks to join").split()
    phrase = refused.sentence("Do you both see these words?").split()[-3:]
    assert asked[-3:] == phrase
    host.say("no")
    turned_away = refused.finish()
    assert turned_away.code == 1
    assert "did not let this computer in" in turned_away.err
    assert read_events(turned_away.events()) == []

    joiner = guest.start("join", invited["code"], *at, "--name", "second", "--json")
    host.sentence("Let second in?")
    host.say("yes")
    ended, joined = host.finish(), joiner.finish()
    assert (ended.code, joined.code) == (0, 0), ended.err + joined.err
    (answer,) = [event for event in read_events(ended.events()) if isinstance(event, Answered)]
    assert answer.token_ids == alone.answer(tiny, PROMPTS[0], max_tokens=8).token_ids
    names = {event.name for event in read_events(ended.events()) if isinstance(event, MemberNews)}
    assert {"first", "second"} < names

    meeting_point.send(signal.SIGTERM)
    stopped = meeting_point.finish()
    assert stopped.code == 0
    assert len(stopped.events()) == 1
    assert "Traceback" not in stopped.err
    assert not words_of(invited["code"], stopped.said)


def device_keys(home: Home) -> dict[str, Path]:
    """The files of the devices' keys, by profile."""
    return {key.parent.name: key for key in home.folder.rglob("device.key")}


def words_of(code: str, text: str) -> list[str]:
    """Where a text has two of a code's words one after the other; alone, they are words like others."""
    _, *words = code.split("-")
    return [pair[0] for one, other in pairwise(words) for pair in re.finditer(rf"{one}\W+{other}", text)]


def _another_code(link: str) -> str:
    """A code that is well formed, leads to the same session, and has other words."""
    words = WordList.from_text(asset("words.txt").read_text(encoding="utf-8"))
    invitation = parse_invitation(link, words)
    assert isinstance(invitation, Invitation)
    return make_code(invitation.code.nameplate, os.urandom(CODE_ENTROPY_BYTES), words).spoken()
