"""What the terminal promises to print, as types: an object that has less, or more, is refused."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object of the contract."""


class AnswerMember(Strict, frozen=True):
    """A member of the ring that answered."""

    name: str
    pid: int
    blocks: tuple[int, int]
    head: bool
    resident_weight_bytes: int


class AnswerEdge(Strict, frozen=True):
    """A hop of the ring that answered."""

    from_name: str = msgspec.field(name="from")
    to_name: str = msgspec.field(name="to")
    path: Literal["direct", "relayed"]
    rtt_ms: float


class Percentiles(Strict, frozen=True):
    """Of the time that a token takes round the ring."""

    p50: float
    p95: float


class Figures(Strict, frozen=True):
    """An answer, and the ring that gave it."""

    text: str
    prompt: str
    token_ids: tuple[int, ...]
    members: tuple[AnswerMember, ...]
    edges: tuple[AnswerEdge, ...]
    tokens_per_second: float
    time_to_first_token_s: float
    circuit_ms: Percentiles
    compute_ms_p50: float
    in_flight_ms_p50: float
    forming_s: float


class Coded(Strict, frozen=True, tag_field="event", tag="code"):
    """There is a way to join; without `code`, only the link can work."""

    code: str | None
    link: str


class MemberNews(Strict, frozen=True, tag_field="event", tag="member"):
    """Something about a member is new."""

    id: str
    name: str
    state: str


class Planned(Strict, frozen=True, tag_field="event", tag="plan"):
    """Who holds what."""

    blocks: dict[str, tuple[int, int]]
    head: str


class EdgeNews(Strict, frozen=True, tag_field="event", tag="edge"):
    """A hop takes this path now."""

    from_id: str = msgspec.field(name="from")
    to_id: str = msgspec.field(name="to")
    path: Literal["direct", "relayed"]
    after_ms: float


class Ready(Strict, frozen=True, tag_field="event", tag="ready"):
    """The ring serves."""

    after_ms: float


class Answered(Figures, frozen=True, tag_field="event", tag="answer"):
    """The host was answered."""


class Lost(Strict, frozen=True, tag_field="event", tag="lost"):
    """A member does not answer any more."""

    id: str


class Back(Strict, frozen=True, tag_field="event", tag="back"):
    """It does again."""

    id: str


class Over(Strict, frozen=True, tag_field="event", tag="ended"):
    """The session has ended."""

    reason: str


class Listening(Strict, frozen=True, tag_field="event", tag="listening"):
    """A rendezvous can be reached."""

    host: str
    port: int


Happening = Coded | MemberNews | Planned | EdgeNews | Ready | Answered | Lost | Back | Over | Listening


def read_answer(out: str) -> Figures:
    """The one object that `kafila demo --json` prints. Raises what msgspec does."""
    return msgspec.json.decode(out, type=Figures)


def read_events(events: Sequence[dict[str, Any]]) -> list[Happening]:
    """The objects that `host`, `join` and `rendezvous` print. Raises what msgspec does."""
    return msgspec.convert(events, type=list[Happening])


def check_ring(answer: Figures, *, blocks: int, members: int) -> None:
    """That the members hold every block once, in as many processes, and one of them leads."""
    assert len(answer.members) == members
    assert len({member.pid for member in answer.members}) == members
    assert [member.head for member in answer.members].count(True) == 1
    shares = sorted(member.blocks for member in answer.members)
    assert [first for first, _ in shares] == [0, *(end for _, end in shares[:-1])]
    assert shares[-1][1] == blocks
    assert all(first < end for first, end in shares)
    names = [member.name for member in answer.members]
    hops = {(edge.from_name, edge.to_name) for edge in answer.edges}
    assert hops == (set(zip(names, [*names[1:], *names[:1]], strict=True)) if members > 1 else set())
    assert len(answer.edges) == len(hops)
