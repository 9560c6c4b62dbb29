"""An engine's side of a chat, as far as a page can see it."""

from kafila.domain.chat import AnswerDone, AnswerFailed, AnswerQueued, AnswerStats, AnswerText
from kafila.domain.commands import Ask, Command
from kafila.domain.errors import Problem
from kafila.gui.serving.page import ServingPage

STATS = AnswerStats(
    prompt_tokens=12,
    reused_tokens=4,
    token_ids=(1, 2, 3),
    time_to_first_token_s=0.5,
    tokens_per_second=8.0,
    circuit_ms_p50=120.0,
    circuit_ms_p95=150.0,
    compute_ms_p50=80.0,
    in_flight_ms_p50=40.0,
)


class Engine:
    """Answers the last question that was sent."""

    def __init__(self, page: ServingPage, sent: list[Command]) -> None:
        self._page = page
        self._sent = sent

    @property
    def asked(self) -> Ask:
        return [command for command in self._sent if isinstance(command, Ask)][-1]

    def queue(self, ahead: int) -> None:
        ask = self.asked
        self._page.chat_event(AnswerQueued(conversation=ask.conversation, answer=ask.answer, ahead=ahead))

    def say(self, *pieces: str) -> None:
        ask = self.asked
        for piece in pieces:
            self._page.chat_event(AnswerText(conversation=ask.conversation, answer=ask.answer, text=piece))

    def finish(self, finish: str = "stop") -> None:
        ask = self.asked
        self._page.chat_event(AnswerDone(conversation=ask.conversation, answer=ask.answer, finish=finish, stats=STATS))

    def fail(self, title: str, advice: str) -> None:
        ask = self.asked
        problem = Problem(title=title, advice=advice)
        self._page.chat_event(AnswerFailed(conversation=ask.conversation, answer=ask.answer, problem=problem))
