"""However a process ends, the others hear of it in words, and nothing hangs."""

import signal
from pathlib import Path

import psutil
import pytest

from end_to_end.alone import Alone
from end_to_end.contract import Answered, Back, Lost, Over, check_ring, read_events
from end_to_end.sessions import form_ring, link_of, start_host, start_joiner, start_session
from helpers.processes import AT_ONCE_S, Home, Homes, Process
from kafila.network.identity import DeviceIdentity

pytestmark = [pytest.mark.loopback, pytest.mark.mlx, pytest.mark.slow, pytest.mark.timeout(300)]

LONG = ("--prompt", "Hello there", "--max-tokens", 400)


def check_end(process: Process, *, code: int, sentence: str, within_s: float = AT_ONCE_S) -> None:
    """That it ends by itself, with a sentence that says why, and without a traceback."""
    process.sentence(sentence, within_s=within_s)
    ended = process.finish(within_s=within_s)
    assert ended.code == code, ended.said
    assert "Traceback" not in ended.said
    assert isinstance(read_events(ended.events())[-1], Over)


def check_wait(process: Process, *, sentence: str) -> None:
    """That it says who is missing and waits; and that it can be ended while it does."""
    process.sentence(sentence, within_s=AT_ONCE_S)
    process.send(signal.SIGINT)
    ended = process.finish(within_s=AT_ONCE_S)
    assert "Traceback" not in ended.said


class TestServing:
    def test_members_wait_for_a_host_that_was_killed(self, homes: Homes, tiny: Path) -> None:
        session = form_ring(homes, tiny, members=3)
        (lost,) = [member for member, process in session.members().items() if process is session.host]
        session.host.send(signal.SIGKILL)
        for joiner in session.joiners:
            joiner.event("lost", within_s=AT_ONCE_S, id=lost)
            check_wait(joiner, sentence="stopped answering")

    def test_others_wait_for_a_member_that_was_killed(self, homes: Homes, tiny: Path) -> None:
        session = form_ring(homes, tiny, members=3)
        members, head = session.members(), session.plan()["head"]
        # The head, where it is not the host itself, whose end has a test of its own.
        lost = next(member for member in (head, *members) if members[member] is not session.host)
        killed = members[lost]
        (other,) = [joiner for joiner in session.joiners if joiner is not killed]
        killed.send(signal.SIGKILL)
        for process in (session.host, other):
            process.event("lost", within_s=AT_ONCE_S, id=lost)
        check_wait(other, sentence="stopped answering")
        check_end(session.host, code=1, sentence="left the session")

    def test_a_member_that_comes_back_goes_on_where_it_was(self, homes: Homes, alone: Alone, tiny: Path) -> None:
        session = form_ring(homes, tiny, *LONG)
        (joiner,) = session.joiners
        (away,) = [member for member, process in session.members().items() if process is joiner]
        joiner.send(signal.SIGSTOP)
        session.host.event("lost", id=away)
        joiner.send(signal.SIGCONT)
        session.host.event("back", id=away)
        ended = session.host.finish()
        assert (ended.code, joiner.finish().code) == (0, 0), ended.said
        events = read_events(ended.events())
        kinds = [type(event) for event in events if isinstance(event, Lost | Back | Answered | Over)]
        assert kinds == [Lost, Back, Answered, Over]
        (answer,) = [event for event in events if isinstance(event, Answered)]
        assert answer.token_ids == alone.answer(tiny, answer.prompt, max_tokens=400).token_ids
        check_ring(answer, blocks=4, members=2)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
    def test_a_host_that_is_asked_to_stop_ends_it_for_everyone(
        self, homes: Homes, tiny: Path, number: signal.Signals
    ) -> None:
        session = form_ring(homes, tiny)
        session.host.send(number)
        for process in session.processes:
            check_end(process, code=0, sentence="The host ended the session")

    def test_a_joiner_that_is_asked_to_stop_says_goodbye(self, homes: Homes, tiny: Path) -> None:
        session = form_ring(homes, tiny)
        session.joiners[0].send(signal.SIGTERM)
        assert session.joiners[0].finish(within_s=AT_ONCE_S).code == 0
        check_end(session.host, code=1, sentence="left the session")


class TestForming:
    @pytest.mark.parametrize("victim", [0, 1])
    def test_everyone_hears_of_a_member_that_was_killed(self, homes: Homes, tiny: Path, victim: int) -> None:
        """Killed at the first moment that there is a plan, when others may already be further."""
        session = start_session(homes, tiny, members=3)
        killed = session.processes[victim]
        session.host.event("plan")
        killed.send(signal.SIGKILL)
        for process in session.processes:
            if process is not killed:
                process.sentence("stopped answering", within_s=AT_ONCE_S)


class TestGathering:
    def test_a_joiner_hears_of_a_host_that_was_killed(self, homes: Homes, tiny: Path) -> None:
        host = start_host(homes.new(), tiny, "--admit", "ask")
        joiner = start_joiner(homes.new(), host)
        joiner.sentence("Do you both see these words?")
        host.send(signal.SIGKILL)
        ended = joiner.finish(within_s=AT_ONCE_S)
        assert ended.code == 1
        assert "Traceback" not in ended.err
        assert "broke off" in ended.err

    def test_a_host_that_waits_can_be_stopped(self, home: Home, tiny: Path) -> None:
        host = start_host(home, tiny)
        link_of(host)
        host.send(signal.SIGINT)
        check_end(host, code=0, sentence="The host ended the session")


class TestComingAgain:
    @pytest.mark.parametrize(("dials", "first_is"), [("host", "there"), ("joiner", "gone")])
    def test_a_computer_that_joins_again_takes_its_place(
        self, homes: Homes, tiny: Path, dials: str, first_is: str
    ) -> None:
        """Whichever of the two makes the link, and whether the first process is gone or still there."""
        places = [homes.new(), homes.new()]
        keys = sorted((DeviceIdentity.generate() for _ in places), key=lambda identity: identity.member)
        for place, identity in zip(places, keys if dials == "host" else reversed(keys), strict=True):
            place.put_key(identity.to_bytes())
        host = start_host(places[0], tiny, members=3)
        first = start_joiner(places[1], host, "--name", "first")
        host.event("member", name="first", state="measured")
        if first_is == "gone":
            first.send(signal.SIGKILL)
        start_joiner(places[1], host, "--name", "again")
        host.event("member", name="again", state="measured")
        if first_is == "there":
            check_end(first, code=1, sentence="The connection to the host ended")
        start_joiner(homes.new(), host, "--name", "other")
        host.event("ready")
        assert len(host.event("plan")["blocks"]) == 3


class TestDemo:
    @pytest.fixture
    def companions(self, demo_home: Home) -> tuple[Process, list[psutil.Process]]:
        """A demo, and the engines that it has started."""
        demo = demo_home.start("demo", "--headless", "--json", "--members", 3)
        demo.sentence("loads its parts")
        return demo, psutil.Process(demo.pid).children(recursive=True)

    def test_takes_its_engines_with_it(self, companions: tuple[Process, list[psutil.Process]]) -> None:
        demo, engines = companions
        assert len(engines) == 2
        demo.send(signal.SIGKILL)
        gone, left = psutil.wait_procs(engines, timeout=AT_ONCE_S)
        assert (len(gone), left) == (2, [])

    def test_ends_when_one_of_its_engines_dies(self, companions: tuple[Process, list[psutil.Process]]) -> None:
        demo, engines = companions
        engines[0].kill()
        ended = demo.finish(within_s=AT_ONCE_S)
        assert ended.code == 1
        assert "stopped answering" in ended.err
        assert ended.out == ""
        assert "Traceback" not in ended.err
        assert psutil.wait_procs(engines, timeout=AT_ONCE_S)[1] == []
