"""The head's answers: who is next, what is said, and when it is enough."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafila.domain.chat import (
    AnswerDone,
    AnswerQueued,
    AnswerStats,
    AnswerText,
)
from kafila.domain.commands import Ask, StopAnswer
from kafila.domain.errors import Reason, UserError
from kafila.domain.ids import ConversationId, MemberId, RequestId
from kafila.domain.snapshot import Pace
from kafila.engine.meters import Circuits, HeadMeter
from kafila.engine.ports import Sampled, Stage
from kafila.engine.ring import CachedSequence, Circuit, RingRefusedError, StoppedError
from kafila.protocol.control import AnswerBroke, AnswerEvent

log = logging.getLogger(__name__)

MAX_WAITING = 32
"""Questions that may wait in line."""

KEPT_SEQUENCES = 32
"""Conversations whose caches the head counts on; stages keep as many as they have room for."""

AnswerKey = tuple[MemberId, ConversationId, int]
Say = Callable[[MemberId, AnswerEvent], None]


@dataclass(slots=True)
class _Running:
    asker: MemberId
    ask: Ask
    asked_at: float
    writing: "_Writing | None" = None
    """None while it waits for its turn."""
    stopped: bool = False


class Head:
    """Answers questions, as many at a time as the session was planned for."""

    def __init__(
        self,
        stage: Stage,
        circuit: Circuit,
        *,
        context: int,
        concurrency: int,
        digest_key: bytes,
        say: Say,
    ) -> None:
        self._stage = stage
        self._circuit = circuit
        self._context = context
        self._slots = asyncio.Semaphore(concurrency)
        self._digest_key = digest_key
        self._say = say
        self._meter = HeadMeter()
        self._running: dict[AnswerKey, _Running] = {}
        self._sequences: OrderedDict[tuple[MemberId, ConversationId], CachedSequence] = OrderedDict()
        self._next_request = 1

    # What the session asks of it ------------------------------------------------------------------

    def pace(self, now: float) -> Pace:
        """Where the time of a token goes."""
        return self._meter.pace(now)

    def chatting(self) -> int:
        """How many answers are being written or wait."""
        return len(self._running)

    async def turn_once(self) -> None:
        """Send one token round the ring, so that "ready" means that it has worked."""
        sequence = self._new_sequence()
        async with sequence.lock:
            frame = await self._circuit.feed(sequence, (0,), 0)
            await self._stage.begin_text(sequence.request)
            await self._stage.sample(frame, temperature=0.0, top_p=1.0)
            await self._circuit.release(sequence)

    def stop(self, asker: MemberId, wanted: StopAnswer) -> None:
        """Enough of an answer: nothing more of it is said. What is in flight comes home unheard."""
        running = self._running.get((asker, wanted.conversation, wanted.answer))
        if running is None or running.stopped:
            return
        running.stopped = True
        writing = running.writing or _Writing(running, (), reused=0)
        self._say_done(running, writing, "stopped")

    async def answer(self, asker: MemberId, ask: Ask) -> None:
        """Answer one question; returns when the last of it was said and nothing is in flight."""
        key = (asker, ask.conversation, ask.answer)
        if key in self._running:
            return
        if sum(running.writing is None for running in self._running.values()) >= MAX_WAITING:
            self._fail(asker, ask, Reason.TOO_MANY)
            return
        running = _Running(asker, ask, asyncio.get_running_loop().time())
        self._running[key] = running
        try:
            await self._take_turn(running)
        except UserError as error:
            log.info("no answer: %s", error.problem.title)
            self._fail(asker, ask, Reason.NOT_ANSWERED if error.reason is Reason.FAILED else error.reason)
        except asyncio.CancelledError:
            if not running.stopped:
                self._fail(asker, ask, Reason.DIVIDED_ANEW)
            raise
        except StoppedError:
            log.info("an answer was stopped on its way")
        except RingRefusedError:
            log.warning("the ring refused a sequence from its start")
            self._fail(asker, ask, Reason.LOST_PLACE)
        finally:
            del self._running[key]

    # Taking turns --------------------------------------------------------------------------------

    async def _take_turn(self, running: _Running) -> None:
        if self._slots.locked():
            self._tell_places()
        async with self._slots:
            running.writing = _Writing(running, (), reused=0)
            self._tell_places()
            sequence = self._sequence(running.asker, running.ask.conversation)
            async with sequence.lock:
                if not running.stopped:
                    await self._generate(running, sequence)
        await self._forget_oldest()

    def _tell_places(self) -> None:
        waiting = [running for running in self._running.values() if running.writing is None and not running.stopped]
        for ahead, running in enumerate(waiting):
            ask = running.ask
            event = AnswerQueued(conversation=ask.conversation, answer=ask.answer, ahead=ahead + 1)
            self._say(running.asker, event)

    def _new_sequence(self) -> CachedSequence:
        request, self._next_request = RequestId(self._next_request), self._next_request + 1
        return CachedSequence(request, self._digest_key)

    def _sequence(self, asker: MemberId, conversation: ConversationId) -> CachedSequence:
        key = (asker, conversation)
        sequence = self._sequences.get(key)
        if sequence is None:
            sequence = self._sequences[key] = self._new_sequence()
        self._sequences.move_to_end(key)
        return sequence

    async def _forget_oldest(self) -> None:
        while len(self._sequences) > KEPT_SEQUENCES:
            key, sequence = next(iter(self._sequences.items()))
            if sequence.lock.locked():
                return
            del self._sequences[key]
            await self._circuit.release(sequence)

    # Generating ----------------------------------------------------------------------------------

    async def _generate(self, running: _Running, sequence: CachedSequence) -> None:
        ask = running.ask
        prompt = await self._stage.prompt_ids(ask.messages)
        room = self._context - len(prompt)
        if room < 1:
            self._fail(running.asker, ask, Reason.TOO_LONG)
            return
        writing = running.writing = _Writing(running, prompt, reused=sequence.reusable(prompt))
        await self._stage.begin_text(sequence.request)
        limit = min(ask.max_tokens, room)
        ids = list(prompt)
        position = writing.reused
        finish = ""
        while not finish and not running.stopped:
            sampled = await self._next(sequence, ids, position, writing)
            position = len(ids)
            ids.append(sampled.token_id)
            if not running.stopped:
                self._speak(running, writing, sampled)
            if sampled.ended or len(writing.tokens) >= limit:
                finish = "stop" if sampled.ended else "length"
        rest = await self._stage.end_text(sequence.request)
        if not running.stopped:
            self._say_text(running, rest)
            self._say_done(running, writing, finish)

    async def _next(self, sequence: CachedSequence, ids: Sequence[int], position: int, writing: "_Writing") -> Sampled:
        loop = asyncio.get_running_loop()
        began = loop.time()
        frame = await self._circuit.feed(sequence, ids, position, lambda: writing.running.stopped)
        ask = writing.running.ask
        sampled = await self._stage.sample(frame, temperature=ask.temperature, top_p=ask.top_p)
        now = loop.time()
        if writing.tokens:
            self._circuit.meter.also(sampled.span_us, now=now)
            circuit_ms = (now - began) * 1e3
            compute_ms = (sum(frame.spans_us) + sampled.span_us) / 1e3
            for circuits in (writing.circuits, self._meter):
                circuits.add(circuit_ms=circuit_ms, compute_ms=compute_ms)
        return sampled

    def _speak(self, running: _Running, writing: "_Writing", sampled: Sampled) -> None:
        now = asyncio.get_running_loop().time()
        writing.add(sampled.token_id, now)
        self._meter.said(sampled.text, now)
        self._say_text(running, sampled.text)

    def _say_text(self, running: _Running, text: str) -> None:
        if text:
            ask = running.ask
            self._say(running.asker, AnswerText(conversation=ask.conversation, answer=ask.answer, text=text))

    def _say_done(self, running: _Running, writing: "_Writing", finish: str) -> None:
        ask = running.ask
        stats = writing.stats(asyncio.get_running_loop().time())
        done = AnswerDone(conversation=ask.conversation, answer=ask.answer, finish=finish, stats=stats)
        self._say(running.asker, done)

    def _fail(self, asker: MemberId, ask: Ask, reason: Reason) -> None:
        self._say(asker, AnswerBroke(conversation=ask.conversation, answer=ask.answer, reason=reason))


class _Writing:
    """An answer so far, and its times."""

    def __init__(self, running: _Running, prompt: Sequence[int], *, reused: int) -> None:
        self.running = running
        self.prompt_tokens = len(prompt)
        self.reused = reused
        self.tokens: list[int] = []
        self.circuits = Circuits(recent=None)
        self._first_at = 0.0

    def add(self, token_id: int, now: float) -> None:
        if not self.tokens:
            self._first_at = now
        self.tokens.append(token_id)

    def stats(self, now: float) -> AnswerStats:
        decoded = len(self.tokens) - 1
        span_s = now - self._first_at
        return AnswerStats(
            prompt_tokens=self.prompt_tokens,
            reused_tokens=self.reused,
            token_ids=tuple(self.tokens),
            time_to_first_token_s=self._first_at - self.running.asked_at if self.tokens else 0.0,
            tokens_per_second=decoded / span_s if decoded > 0 and span_s > 0 else 0.0,
            circuit_ms_p50=self.circuits.circuit_p50(),
            circuit_ms_p95=self.circuits.circuit_p95(),
            compute_ms_p50=self.circuits.compute_p50(),
            in_flight_ms_p50=self.circuits.in_flight_p50(),
        )
