"""What the planner is asked: a model, the computers that are in, and what they will be used for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec

from kafila.domain.capability import Capability
from kafila.domain.ids import MemberId
from kafila.domain.model import ModelSpec
from kafila.domain.plan import Objective

SLOWEST_RATE = 1e-9
FASTEST_RATE = 1e18
LONGEST_RTT_MS = 86_400_000.0
LARGEST_ROOM = 1 << 63
NOT_MEASURED: Mapping[frozenset[MemberId], float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A computer that was let in, by the name that sentences call it."""

    member: MemberId
    name: str
    capability: Capability


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that a plan depends on.

    `members` begins with the host; the others follow by id, so that the order in which they came
    changes nothing. `arrival[i]` is where `members[i]` stood before that.
    """

    spec: ModelSpec
    members: tuple[Candidate, ...]
    arrival: tuple[int, ...]
    context: int
    concurrency: int
    objective: Objective
    pair_rtts: Mapping[frozenset[MemberId], float]
    """Measured round trips between two members, in milliseconds."""

    def place_of(self, member: MemberId) -> int:
        """Where the member stands in `members`."""
        return next(place for place, one in enumerate(self.members) if one.member == member)

    def name_of(self, member: MemberId) -> str:
        """What people call the member."""
        return self.members[self.place_of(member)].name


def ask(
    spec: ModelSpec,
    members: Sequence[Candidate],
    *,
    context: int,
    concurrency: int,
    objective: Objective = Objective.FASTEST,
    pair_rtts: Mapping[frozenset[MemberId], float] = NOT_MEASURED,
) -> Question:
    """Put a question, with the host as the first member.

    Raises ValueError for no members, two of the same id, or a context or concurrency below one.
    """
    if context < 1 or concurrency < 1:
        message = "context and concurrency are at least one"
        raise ValueError(message)
    if not members:
        message = "a plan needs at least the host"
        raise ValueError(message)
    if len({one.member for one in members}) != len(members):
        message = "two members have the same id"
        raise ValueError(message)
    places = [0, *sorted(range(1, len(members)), key=lambda place: members[place].member)]
    return Question(
        spec=spec,
        members=tuple(bound_figures(members[place]) for place in places),
        arrival=tuple(places),
        context=context,
        concurrency=concurrency,
        objective=objective,
        pair_rtts={
            pair: rtt for pair, rtt_ms in pair_rtts.items() if (rtt := _within(rtt_ms, 0.0, LONGEST_RTT_MS)) is not None
        },
    )


def bound_figures(one: Candidate) -> Candidate:
    """Figures that no computer has, which another computer may well send, count as not measured."""
    able = one.capability
    room = able.room_bytes
    reach = msgspec.structs.replace(
        able.reachability,
        rendezvous_rtt_ms=_within(able.reachability.rendezvous_rtt_ms, 0.0, LONGEST_RTT_MS),
    )
    able = msgspec.structs.replace(
        able,
        room_bytes=None if room is None else min(max(room, 0), LARGEST_ROOM),
        bandwidth_bytes_s=_within(able.bandwidth_bytes_s, SLOWEST_RATE, FASTEST_RATE),
        flops_s=_within(able.flops_s, SLOWEST_RATE, FASTEST_RATE),
        reachability=reach,
    )
    return replace(one, capability=able)


def _within(value: float | None, least: float, most: float) -> float | None:
    return value if value is not None and least <= value <= most else None
