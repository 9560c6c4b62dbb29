"""One long answer through everything that befalls a network: it goes on, nothing is lost, and people are told."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from end_to_end.alone import Alone
from end_to_end.engine_client import EngineClient
from helpers.processes import AT_ONCE_S, Homes
from kafila.domain.chat import AnswerDone
from kafila.domain.commands import Admission, Ask, HostSession, JoinSession, Rename, StopAnswer
from kafila.domain.snapshot import Serving, WaitingRoom
from nat.sessions import AT, PROMPT, laid_out, start_rendezvous
from natlab.lab import Lab
from natlab.rules import Nat

pytestmark = [pytest.mark.mlx, pytest.mark.timeout(400)]

# The host has a direct path to both, who reach each other over the relay alone.
HOST, ONE, OTHER = Nat.FULL_CONE, Nat.PORT_MOVED, Nat.SYMMETRIC
MANY_TOKENS = 450


class Group:
    """Three engines, one of which hosts, and an answer that is being written."""

    def __init__(self, lab: Lab, homes: Homes, model: Path) -> None:
        self.host, self.one, self.other = self.everyone = [
            lab[str(place)].call(lambda: EngineClient(homes.new(), "--ephemeral")) for place in range(3)
        ]
        self.host.do(HostSession(model=str(model), admission=Admission.ALL, start_at=3, rendezvous=AT))
        link = self.host.until(WaitingRoom, lambda room: room.link is not None).link
        assert link is not None
        for joiner, name in ((self.one, "One"), (self.other, "Other")):
            joiner.do(Rename(machine=name, owner=""))
            joiner.do(JoinSession(code=link))
        for client in self.everyone:
            client.until(Serving)
        self.question: Ask = self.host.ask("talk", PROMPT, max_tokens=MANY_TOKENS)
        self.host.begun(self.question)

    def goes_on(self, words: int = 5) -> None:
        """Wait until so many more pieces of the answer have come."""
        wanted = len(self.host.heard(self.question)) + words
        self.host.process.wait_until(lambda: len(self.host.heard(self.question)) >= wanted, "more of the answer")

    def all_wait(self, *, known_as: tuple[str, ...]) -> None:
        """Wait until everyone reads whom the ring waits for, as soon as people may expect it."""
        for client in self.everyone:
            waiting = client.until(Serving, lambda page: page.paused is not None, within_s=AT_ONCE_S)
            assert waiting.paused is not None
            assert waiting.grace_left_s is not None
            if client is self.host:
                assert waiting.paused.title.startswith(known_as)

    def nobody_waits(self) -> None:
        """Wait until everyone reads that it goes on."""
        for client in self.everyone:
            client.until(Serving, lambda page: page.paused is None)
        self.goes_on()

    def check_text(self, alone: Alone, model: Path) -> None:
        """That the answer so far is what undisturbed computers say."""
        self.host.do(StopAnswer(conversation=self.question.conversation, answer=self.question.answer))
        done = self.host.answered(self.question)
        assert isinstance(done, AnswerDone), done
        said = done.stats.token_ids
        assert 50 < len(said) < MANY_TOKENS
        expected = alone.answer(model, PROMPT, max_tokens=len(said))
        assert said == expected.token_ids
        assert expected.text.startswith(self.host.text(self.question))


@contextmanager
def leaving(group: Group) -> Generator[Group]:
    """Let all three end well."""
    yield group
    for client in group.everyone:
        assert client.leave().code == 0


def test_an_answer_survives_whatever_happens_to_the_network(
    homes: Homes, alone: Alone, tiny: Path, tmp_path: Path
) -> None:
    server, secret = homes.new(), ("--secret-file", tmp_path / "secret")
    with laid_out(HOST, ONE, OTHER) as lab:
        meeting_point = start_rendezvous(lab, server, *secret)
        with leaving(Group(lab, homes, tiny)) as group:
            # Routers that were switched off and on: what is inside appears at other ports.
            lab.routers("1")[0].nat = Nat.PORT_RESTRICTED
            for site in ("1", "2", "0"):
                lab.routers(site)[0].forget()
                group.goes_on()
            # Nothing gets through for five seconds, or until people have been told.
            lab.change("1", is_cut=True)
            group.all_wait(known_as=("One",))
            lab.change("1", is_cut=False)
            group.nobody_waits()
            # The relay goes, and comes back: the host hears both who need it all the time.
            meeting_point.send(signal.SIGKILL)
            group.all_wait(known_as=("One", "Other"))
            start_rendezvous(lab, server, *secret)
            group.nobody_waits()
            lab.change("2", loss=0.15)
            group.goes_on(20)
            lab.change("2", loss=0.0)
            group.check_text(alone, tiny)
