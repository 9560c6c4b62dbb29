"""The planner's answer: a `Plan`, or a `Refusal` that names the computer that is too small."""

from enum import StrEnum

import msgspec

from kafila.domain.ids import MemberId


class Objective(StrEnum):
    """What a division is best at."""

    BALANCED = "balanced"
    """Smallest bottleneck stage (the paper's objective)."""
    FASTEST = "fastest"
    """Largest predicted rate at the declared concurrency."""


class Tier(StrEnum):
    """Which measurements all members share, and so which cost model was used."""

    FULL = "full"
    THROUGHPUT = "throughput"
    ROOM = "room"


class PathKind(StrEnum):
    """How two neighbours of the ring reach each other."""

    DIRECT = "direct"
    RELAYED = "relayed"


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One member's blocks [first, end), and what they need and cost."""

    member: MemberId
    first: int
    end: int
    head: bool
    need_bytes: int
    room_bytes: int | None
    stage_ms: float | None
    """Predicted; None under the lower measurement tiers."""

    @property
    def blocks(self) -> int:
        """How many blocks the member holds."""
        return self.end - self.first


class PlannedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A hop of the ring as predicted, without a packet sent."""

    from_member: MemberId
    to_member: MemberId
    predicted: PathKind
    price_ms: float | None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a division costs. Times are None under the lower measurement tiers."""

    bottleneck_ms: float | None
    circuit_ms: float | None
    tokens_per_second: float | None
    """At the declared concurrency, all conversations together; an upper bound."""
    utilisation: float | None
    fits: bool


class Without(msgspec.Struct, frozen=True, kw_only=True):
    """What the rest could do if one member were not there. Never the host."""

    member: MemberId
    missing_bytes: int
    """How much room the rest lacks; 0: the model still fits."""
    figures: Figures | None
    """At the declared concurrency; None where the rest has no plan."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, tag="plan"):
    """Who holds what, in ring order from the head on."""

    objective: Objective
    tier: Tier
    tier_reason: str
    shares: tuple[Share, ...]
    edges: tuple[PlannedEdge, ...]
    figures: Figures
    tokens_per_second_alone: float | None
    """For one conversation by itself."""
    search: str
    """"exact"; "heuristic" with the gap to a lower bound in `search_note`; or "by-hand"."""
    search_note: str = ""
    uniform: Figures | None = None
    memory_proportional: Figures | None = None
    host_alone: Figures | None = None
    """The host by itself; None where the model does not fit on it."""
    without: tuple[Without, ...] = ()
    """In small rings for every member but the host; in large ones for those that cost most."""
    advice: tuple[str, ...] = ()

    @property
    def head(self) -> MemberId:
        """The member that embeds, unembeds and samples."""
        return self.shares[0].member

    def share_of(self, member: MemberId) -> Share:
        """The member's share. Raises KeyError for a member that the plan does not hold."""
        for share in self.shares:
            if share.member == member:
                return share
        raise KeyError(member)


class Remedies(msgspec.Struct, frozen=True, kw_only=True):
    """Changes each of which by itself makes the model fit; None: this one cannot help."""

    context: int | None = None
    """Longest conversations, in tokens."""
    concurrency: int | None = None
    """Most conversations at once."""
    more_room_bytes: int | None = None
    """Further room on the member that is refused."""
    new_member_bytes: int | None = None
    """Room of one more computer."""
    size_percent: int | None = None
    """The model's weights at so much of their size, for example in fewer bits."""
    leave_out: bool = False
    """The others can do it without the member that is refused."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True, tag="refusal"):
    """Why no plan is admitted. `member` is None where no single computer is at fault."""

    member: MemberId | None
    sentence: str
    needs_bytes: int
    has_bytes: int
    help: tuple[str, ...] = ()
    """Sentences about the remedies."""
    remedies: Remedies = Remedies()
    shares: tuple[Share, ...] = ()
    """The division that comes nearest to fitting, from the head on."""
