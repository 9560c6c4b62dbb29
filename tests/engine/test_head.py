"""The head and the ring's data plane, with toy stages over queues: turns, stops, edits, refusals, places."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from helpers.toy_stage import EPOCH, TILING, ToyStage, expected
from kafila.domain.chat import AnswerDone, AnswerQueued, AnswerText
from kafila.domain.commands import Ask, ChatMessage, StopAnswer
from kafila.domain.ids import ConversationId, MemberId, RequestId
from kafila.domain.plan import PathKind
from kafila.engine.head import KEPT_SEQUENCES, MAX_WAITING, Head
from kafila.engine.meters import StageMeter
from kafila.engine.ring import PREFILL_ROWS, Circuit, run_stage
from kafila.protocol.control import AnswerBroke, AnswerEvent
from kafila.protocol.frames import Refused
from kafila.protocol.links import Channel

ME = MemberId("00" * 8)
TALK = ConversationId("talk")


class Wire:
    """A link as two neighbours see it: what one sends the other receives, channel by channel."""

    peer = ME
    path = PathKind.DIRECT
    rtt_ms = 1.0
    tx_bytes = 0

    def __init__(self) -> None:
        self._queues = {channel: asyncio.Queue[bytes]() for channel in Channel}
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, channel: Channel, message: bytes) -> None:
        await self.open.wait()
        self._queues[channel].put_nowait(message)

    async def delivered(self, channel: Channel) -> None:
        del channel

    async def receive(self, channel: Channel) -> bytes:
        return await self._queues[channel].get()


@dataclass
class Ring:
    """A head, and what it said."""

    head: Head
    stages: list[ToyStage]
    wires: list[Wire]
    tasks: asyncio.TaskGroup
    said: list[AnswerEvent] = field(default_factory=list[AnswerEvent])

    async def ask(self, answer: int, *texts: str, tokens: int = 6, talk: ConversationId = TALK) -> str:
        """Ask and wait; the text of the answer."""
        await self.head.answer(ME, question(answer, *texts, tokens=tokens, talk=talk))
        return self.text(answer, talk)

    def text(self, answer: int, talk: ConversationId = TALK) -> str:
        return "".join(
            e.text for e in self.said if isinstance(e, AnswerText) and (e.answer, e.conversation) == (answer, talk)
        )

    def done(self, answer: int) -> AnswerDone:
        return next(e for e in self.said if isinstance(e, AnswerDone) and e.answer == answer)


def question(answer: int, *texts: str, tokens: int = 6, talk: ConversationId = TALK) -> Ask:
    roles = ("user", "assistant")
    messages = tuple(ChatMessage(role=roles[at % 2], text=text) for at, text in enumerate(texts))
    return Ask(conversation=talk, answer=answer, messages=messages, max_tokens=tokens, temperature=0.0)


def fresh(*texts: str, tokens: int = 6) -> str:
    """What a process that has just started would answer."""
    prompt = [ord(c) % 90 for c in "|".join(texts)]
    return "".join(f"{token} " for token in expected(prompt, tokens))


class RingClosedError(Exception):
    """Ends the ring's tasks."""


async def close_ring() -> None:
    raise RingClosedError


@asynccontextmanager
async def ring(members: int = 3, *, concurrency: int = 1, context: int = 2000) -> AsyncGenerator[Ring]:
    stages = [ToyStage() for _ in range(members)]
    wires = [Wire() for _ in range(members)]
    links = (wires[0], wires[-1]) if members > 1 else None
    circuit = Circuit(stages[0], epoch=EPOCH, tiling=TILING, meter=StageMeter(), links=links)
    said: list[AnswerEvent] = []
    head = Head(
        stages[0],
        circuit,
        context=context,
        concurrency=concurrency,
        digest_key=bytes(32),
        say=lambda _, event: said.append(event),
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(circuit.run())
            for at in range(1, members):
                tasks.create_task(
                    run_stage(stages[at], predecessor=wires[at - 1], successor=wires[at], meter=StageMeter())
                )
            yield Ring(head, stages, wires, tasks, said)
            tasks.create_task(close_ring())
    except* RingClosedError:
        pass


@pytest.mark.parametrize("members", [1, 2, 4])
async def test_an_answer_is_what_a_fresh_process_says(members: int) -> None:
    async with ring(members) as r:
        assert await r.ask(1, "Hello") == fresh("Hello")
        assert r.done(1).finish == "length"
        assert len(r.done(1).stats.token_ids) == 6


async def test_the_next_turn_feeds_only_what_is_new() -> None:
    async with ring() as r:
        first = await r.ask(1, "Hello")
        assert await r.ask(2, "Hello", first, "And then?") == fresh("Hello", first, "And then?")
        assert r.done(2).stats.reused_tokens >= len("Hello")


async def test_an_edited_question_continues_from_the_right_text() -> None:
    async with ring() as r:
        await r.ask(1, "Tell me of Rome")
        assert await r.ask(2, "Tell me of Oslo") == fresh("Tell me of Oslo")
        assert r.done(2).stats.reused_tokens == len("Tell me of ")


async def test_a_long_prompt_goes_in_chunks() -> None:
    async with ring() as r:
        text = "x" * (3 * PREFILL_ROWS + 5)
        assert await r.ask(1, text, tokens=2) == fresh(text, tokens=2)
        assert r.stages[0].fed[:4] == [(0, 128), (128, 128), (256, 128), (384, 5)]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("reason", list(Refused))
async def test_a_refusal_anywhere_starts_the_sequence_anew(at: int, reason: Refused) -> None:
    async with ring() as r:
        await r.ask(1, "Hello")
        r.stages[at].refuse_next.append(reason)
        assert await r.ask(2, "Hello there") == fresh("Hello there")


async def test_a_stage_that_forgot_a_conversation_is_fed_again() -> None:
    async with ring() as r:
        await r.ask(1, "Hello")
        r.stages[1].held.clear()
        assert await r.ask(2, "Hello there") == fresh("Hello there")


async def test_a_ring_that_refuses_even_the_start_is_told_and_does_not_hang() -> None:
    async with ring() as r:
        r.stages[1].refuse_next += [Refused.OTHER_PLAN] * 2
        await r.ask(1, "Hello")
        assert [type(event) for event in r.said] == [AnswerBroke]


async def test_two_conversations_do_not_meet() -> None:
    async with ring(concurrency=2) as r:
        other = ConversationId("other")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(r.ask(1, "One", tokens=20))
            tasks.create_task(r.ask(1, "Two", tokens=20, talk=other))
        assert r.text(1) == fresh("One", tokens=20)
        assert r.text(1, other) == fresh("Two", tokens=20)


async def test_a_stopped_answer_is_over_at_once_and_the_next_is_right() -> None:
    async with ring() as r:
        answering = r.tasks.create_task(r.head.answer(ME, question(1, "Hello", tokens=500)))
        while len(r.text(1).split()) < 3:  # noqa: ASYNC110 - one step of the ring at a time
            await asyncio.sleep(0)
        r.wires[1].open.clear()  # a token is under way and does not come home
        await asyncio.sleep(0)
        r.head.stop(ME, StopAnswer(conversation=TALK, answer=1))
        assert r.done(1).finish == "stopped"
        said = r.text(1)
        r.wires[1].open.set()
        assert await r.ask(2, "Something else") == fresh("Something else")
        await answering
        assert r.text(1) == said
        assert sum(isinstance(e, AnswerDone) and e.answer == 1 for e in r.said) == 1


async def test_a_question_that_waits_has_a_place_and_can_be_stopped() -> None:
    async with ring() as r:
        r.wires[1].open.clear()
        first = r.tasks.create_task(r.head.answer(ME, question(1, "One")))
        await asyncio.sleep(0)
        second = r.tasks.create_task(r.head.answer(ME, question(2, "Two", talk=ConversationId("b"))))
        third = r.tasks.create_task(r.head.answer(ME, question(3, "Three", talk=ConversationId("c"))))
        await asyncio.sleep(0.01)
        assert [(e.answer, e.ahead) for e in r.said if isinstance(e, AnswerQueued)][-2:] == [(2, 1), (3, 2)]
        r.head.stop(ME, StopAnswer(conversation=ConversationId("b"), answer=2))
        assert r.done(2).finish == "stopped"
        r.wires[1].open.set()
        for task in (first, second, third):
            await task
        assert r.text(2, ConversationId("b")) == ""
        assert r.text(3, ConversationId("c")) == fresh("Three")


async def test_too_many_questions_are_turned_away() -> None:
    async with ring() as r:
        r.wires[1].open.clear()
        for answer in range(MAX_WAITING + 2):
            r.tasks.create_task(r.head.answer(ME, question(answer, "Hello", talk=ConversationId(str(answer)))))
        await asyncio.sleep(0.01)
        assert sum(isinstance(event, AnswerBroke) for event in r.said) == 1


async def test_a_conversation_that_has_become_too_long_says_so() -> None:
    async with ring(context=10) as r:
        await r.ask(1, "far too long a question")
        assert isinstance(r.said[-1], AnswerBroke)
        await r.ask(2, "12345678", tokens=50)
        assert r.done(2).finish == "length"
        assert len(r.done(2).stats.token_ids) == 2


async def test_old_conversations_are_released_on_every_stage() -> None:
    async with ring() as r:
        for number in range(KEPT_SEQUENCES + 1):
            await r.ask(1, f"Talk {number}", tokens=1, talk=ConversationId(str(number)))
        await asyncio.sleep(0.01)
        assert [RequestId(1) in stage.held for stage in r.stages] == [False] * 3
        assert await r.ask(2, "Talk 0", tokens=1, talk=ConversationId("0")) == fresh("Talk 0", tokens=1)


async def test_the_first_token_leaves_nothing_behind() -> None:
    async with ring() as r:
        await r.head.turn_once()
        await asyncio.sleep(0.01)
        assert [stage.held for stage in r.stages] == [{}, {}, {}]
