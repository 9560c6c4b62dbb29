"""What the terminal prints as a session goes on: sentences, or one JSON object a line."""

import json
import sys
from collections.abc import Mapping
from typing import TextIO

from kafila.domain.chat import AnswerDone
from kafila.domain.ids import MemberId
from kafila.domain.plan import Plan
from kafila.domain.reach import reach_in_words
from kafila.domain.snapshot import (
    Ended,
    Forming,
    FormStep,
    Joining,
    JoinStep,
    Newcomer,
    Preparing,
    RingEdge,
    Serving,
    Snapshot,
    WaitingRoom,
)

JOIN_STEPS = {
    JoinStep.FINDING: "Looking for the session …",
    JoinStep.SPEAKING: "Speaking to the host …",
    JoinStep.WAITING: "Waiting for the host to let you in.",
    JoinStep.MEASURING: "You are in. Looking at what this computer can do …",
}
FORM_STEPS = {
    FormStep.MEASURE: "is being measured",
    FormStep.FETCH: "fetches its parts",
    FormStep.LOAD: "loads its parts",
    FormStep.CONNECT: "connects",
    FormStep.FIRST_TOKEN: "waits for the first word",
    FormStep.READY: "is ready",
}


class Reporter:
    """Prints what has changed from one snapshot to the next."""

    def __init__(self, out: TextIO, *, as_json: bool) -> None:
        self.out = out
        self.as_json = as_json
        self.silent_events = False
        self._said: set[str] = set()
        self._states: dict[MemberId, str] = {}
        self._names: dict[MemberId, str] = {}
        self._paths: dict[tuple[MemberId, MemberId], str] = {}
        self._away: set[MemberId] = set()
        self._knocked: set[tuple[str, ...]] = set()

    # Saying ----------------------------------------------------------------------------------------

    def event(self, kind: str, /, **fields: object) -> None:
        """One JSON object, where JSON is wanted and events are part of it."""
        if self.as_json and not self.silent_events:
            print(json.dumps({"event": kind, **fields}, ensure_ascii=False), file=self.out)
            self.out.flush()

    def object(self, value: Mapping[str, object]) -> None:
        """A JSON object that is no event."""
        print(json.dumps(value, ensure_ascii=False), file=self.out, flush=True)

    def tell(self, sentence: str) -> None:
        """A sentence for the person; on standard error where standard output is JSON."""
        print(sentence, file=sys.stderr if self.as_json else self.out, flush=True)

    def text(self, text: str) -> None:
        """More of an answer."""
        if not self.as_json:
            self.out.write(text)
            self.out.flush()

    def _once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.tell(sentence)

    # Snapshots -------------------------------------------------------------------------------------

    def show(self, snapshot: Snapshot) -> None:
        """Print what is new."""
        for notice in snapshot.me.notices:
            self._once(notice.sentence())
        match snapshot.session:
            case Preparing(doing=doing):
                self._once(doing)
            case WaitingRoom() as room:
                self._waiting_room(room)
            case Joining() as joining:
                self._joining(joining)
            case Forming() as forming:
                self._forming(forming)
            case Serving() as serving:
                self._serving(serving)
            case Ended(reason=reason):
                if "ended" not in self._said:
                    self._said.add("ended")
                    self.event("ended", reason=reason.sentence())
                    self.tell(reason.sentence())
            case _:
                pass

    def _waiting_room(self, room: WaitingRoom) -> None:
        if room.link is not None and room.link not in self._said:
            self._said.add(room.link)
            self.event("code", code=room.code, link=room.link)
            if room.code is not None:
                self.tell(f"Code: {room.code}")
            self.tell(f"Invitation link: {room.link}")
        if room.is_host and room.link is not None and (reach := reach_in_words(room.reach, room.no_port)) is not None:
            self._once(reach.sentence())
        for newcomer in room.newcomers:
            self._newcomer(newcomer)
        self._knocked &= {newcomer.phrase for newcomer in room.newcomers}
        for member in room.members:
            self._names[member.member] = member.machine.name
            self._state(member.member, "measured" if member.capability else "admitted")
        if room.problem is not None:
            self._once(room.problem.sentence())

    def _newcomer(self, newcomer: Newcomer) -> None:
        self._names[newcomer.member] = newcomer.machine.name
        # The words are others each time that the same computer asks.
        if newcomer.phrase not in self._knocked:
            self._knocked.add(newcomer.phrase)
            self._states.pop(newcomer.member, None)
            self._state(newcomer.member, "asks")
            self.tell(f"{newcomer.machine.name} asks to join. Check the words with them: {' '.join(newcomer.phrase)}")

    def _state(self, member: MemberId, state: str) -> None:
        if self._states.get(member) != state:
            self._states[member] = state
            self.event("member", id=member, name=self._names[member], state=state)

    def _joining(self, joining: Joining) -> None:
        self._once(JOIN_STEPS[joining.step])
        if joining.phrase:
            self._once(f"Do you both see these words? {' '.join(joining.phrase)}")

    def _forming(self, forming: Forming) -> None:
        self._plan(forming.plan, {row.member: row.machine.name for row in forming.rows})
        for row in forming.rows:
            self._names[row.member] = row.machine.name
            if self._states.get(row.member) != row.step.value:
                self.tell(f"{row.machine.name} {FORM_STEPS[row.step]}.")
            self._state(row.member, row.step.value)
        for edge in forming.edges:
            self._edge(edge)

    def _plan(self, plan: Plan, names: Mapping[MemberId, str]) -> None:
        key = f"plan {[(s.member, s.first, s.end) for s in plan.shares]}"
        if key in self._said:
            return
        self._said.add(key)
        blocks = {share.member: [share.first, share.end] for share in plan.shares}
        self.event("plan", blocks=blocks, head=plan.head)
        for share in plan.shares:
            leads = ", leads" if share.head else ""
            self.tell(f"  {names[share.member]}: {share.blocks} parts{leads}")

    def _serving(self, serving: Serving) -> None:
        self._names.update({m.member: m.machine.name for m in serving.ring})
        for member in serving.ring:
            self._state(member.member, "ready")
        for edge in serving.edges:
            self._edge(edge)
        if "ready" not in self._said:
            self._said.add("ready")
            self.event("ready", after_ms=round(serving.formed_in_s * 1e3, 1))
            self.tell(f"The ring serves, {serving.formed_in_s:.1f} s after the start.")
        away = {m.member for m in serving.ring if m.away_s is not None}
        for member in away - self._away:
            self.event("lost", id=member)
            self.tell(f"{self._names[member]} stopped answering. Waiting for it.")
        for member in self._away - away:
            self.event("back", id=member)
            self.tell(f"{self._names[member]} is back. Going on where it was.")
        self._away = away
        if serving.paused is not None:
            self._once(serving.paused.sentence())

    def _edge(self, edge: RingEdge) -> None:
        key = (edge.from_member, edge.to_member)
        if edge.path is None or self._paths.get(key) == edge.path.value:
            return
        self._paths[key] = edge.path.value
        self.event(
            "edge",
            **{"from": edge.from_member, "to": edge.to_member},
            path=edge.path.value,
            after_ms=round(edge.after_ms, 1),
        )


def answer_object(*, prompt: str, text: str, done: AnswerDone, serving: Serving) -> dict[str, object]:
    """An answer with the ring that gave it, as the terminal's contract says."""
    stats = done.stats
    names = {member.member: member.machine.name for member in serving.ring}
    return {
        "text": text,
        "prompt": prompt,
        "token_ids": list(stats.token_ids),
        "members": [
            {
                "name": member.machine.name,
                "pid": member.process_id,
                "blocks": [member.first, member.end],
                "head": member.head,
                "resident_weight_bytes": member.resident_weight_bytes,
            }
            for member in serving.ring
        ],
        "edges": [
            {
                "from": names[edge.from_member],
                "to": names[edge.to_member],
                "path": edge.path.value if edge.path else None,
                "rtt_ms": _rounded(edge.rtt_ms),
            }
            for edge in serving.edges
        ],
        "tokens_per_second": _rounded(stats.tokens_per_second),
        "time_to_first_token_s": _rounded(stats.time_to_first_token_s),
        "circuit_ms": {
            "p50": _rounded(stats.circuit_ms_p50),
            "p95": _rounded(stats.circuit_ms_p95),
        },
        "compute_ms_p50": _rounded(stats.compute_ms_p50),
        "in_flight_ms_p50": _rounded(stats.in_flight_ms_p50),
        "forming_s": _rounded(serving.formed_in_s),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
