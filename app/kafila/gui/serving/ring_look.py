"""What the ring says about a snapshot: every word and figure on it, before anything is drawn.

Two equal looks are the same picture, so the ring is redrawn only when its look changes.
"""

from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from kafila.domain.ids import MemberId
from kafila.domain.plan import PathKind
from kafila.domain.snapshot import RingEdge, RingMember, Serving
from kafila.gui.machines import icon_of
from kafila.gui.serving import figures
from kafila.gui.serving.series import SeriesBook
from kafila.gui.theme import Icon


class NodeState(StrEnum):
    """What a computer is doing."""

    WORKS = "works"
    WAITS = "waits"
    AWAY = "away"


class EdgeState(StrEnum):
    """How a hop is drawn."""

    DIRECT = "direct"
    RELAYED = "relayed"
    CONNECTING = "connecting"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLook:
    """One computer. `lines` stand under its name: parts, then its time for a token or its state."""

    member: MemberId
    name: str
    icon: Icon
    series: int
    blocks: int
    busy: float
    head: bool
    state: NodeState
    lines: tuple[str, ...]
    said: str
    """For a screen reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLook:
    """One hop; `label` is the round trip, or the word for its state. Empty: nothing to say."""

    state: EdgeState
    label: str
    hint: str
    """Who sends how much to whom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CentreLook:
    """The middle of the ring: a number with a line above and below, or a word of state."""

    above: str
    main: str
    below: str
    below_short: str
    figure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RingLook:
    """The whole ring."""

    nodes: tuple[NodeLook, ...]
    edges: tuple[EdgeLook, ...]
    centre: CentreLook
    dim: bool = False
    """The session is over."""

    @property
    def paused(self) -> bool:
        """Whether a computer is away."""
        return any(node.state is not NodeState.WORKS for node in self.nodes)


def look(serving: Serving, book: SeriesBook, *, over: bool = False) -> RingLook:
    """Put a snapshot into words."""
    book.meet(one.member for one in serving.ring)
    names = {one.member: one.machine.name for one in serving.ring}
    away = {one.member for one in serving.ring if one.away_s is not None}
    arriving = {edge.to_member: edge for edge in serving.edges}
    return RingLook(
        nodes=tuple(_node(one, serving, book.place(one.member), arriving.get(one.member)) for one in serving.ring),
        edges=tuple(_edge(edge, names, away) for edge in _in_order(serving)),
        centre=_over() if over else _centre(serving),
        dim=over,
    )


def connection_word(edge: RingEdge | None, *, away: bool = False) -> str:
    """How a computer hears from the one before it, in a word."""
    if away:
        return QCoreApplication.translate("Ring", "Away")
    if edge is None:
        return ""
    match edge.path:
        case PathKind.DIRECT:
            return QCoreApplication.translate("Ring", "Direct")
        case PathKind.RELAYED:
            return QCoreApplication.translate("Ring", "Relayed")
        case None:
            return QCoreApplication.translate("Ring", "Connecting")


def _in_order(serving: Serving) -> tuple[RingEdge, ...]:
    """One hop for each computer, in ring order. A hop nobody told of yet is connecting."""
    if len(serving.ring) < 2:
        return ()
    leaving = {edge.from_member: edge for edge in serving.edges}
    members = [one.member for one in serving.ring]
    return tuple(
        leaving.get(here) or RingEdge(from_member=here, to_member=there, path=None, rtt_ms=None, after_ms=0.0)
        for here, there in zip(members, (*members[1:], members[0]), strict=True)
    )


def _state(one: RingMember, serving: Serving) -> NodeState:
    if one.away_s is not None:
        return NodeState.AWAY
    return NodeState.WORKS if serving.paused is None else NodeState.WAITS


def _node(one: RingMember, serving: Serving, series: int, arriving: RingEdge | None) -> NodeLook:
    state = _state(one, serving)
    blocks = one.end - one.first
    return NodeLook(
        member=one.member,
        name=one.machine.name,
        icon=icon_of(one.machine) if state is not NodeState.AWAY else Icon.UNPLUG,
        series=series,
        blocks=blocks,
        busy=min(max(one.busy, 0.0), 1.0) if state is NodeState.WORKS else 0.0,
        head=one.head,
        state=state,
        lines=_lines(one, state),
        said=_said(one, state, arriving),
    )


def _lines(one: RingMember, state: NodeState) -> tuple[str, ...]:
    parts = figures.parts(one.end - one.first)
    match state:
        case NodeState.AWAY:
            away = QCoreApplication.translate("Ring", "away for")
            return (away, figures.seconds(one.away_s or 0.0))
        case NodeState.WAITS:
            return (parts, QCoreApplication.translate("Ring", "waits"))
        case NodeState.WORKS:
            return (parts,) if one.stage_ms is None else (parts, figures.milliseconds(one.stage_ms))


def _said(one: RingMember, state: NodeState, arriving: RingEdge | None) -> str:
    parts = [one.machine.name]
    if one.head:
        parts.append(QCoreApplication.translate("Ring", "leads"))
    parts.append(figures.parts(one.end - one.first))
    match state:
        case NodeState.WORKS:
            busy = QCoreApplication.translate("Ring", "busy {number} percent")
            parts.append(busy.format(number=figures.number(one.busy * 100, 0)))
        case NodeState.WAITS:
            parts.append(QCoreApplication.translate("Ring", "waits"))
        case NodeState.AWAY:
            away = QCoreApplication.translate("Ring", "away for {time}")
            parts.append(away.format(time=figures.seconds(one.away_s or 0.0)))
    if state is not NodeState.AWAY and (word := connection_word(arriving)):
        parts.append(word.lower())
    return ", ".join(parts)


def _edge(edge: RingEdge, names: dict[MemberId, str], away: set[MemberId]) -> EdgeLook:
    trip = "" if edge.rtt_ms is None else figures.milliseconds(edge.rtt_ms)
    word = connection_word(edge)
    match edge.path:
        case PathKind.DIRECT:
            state, label = EdgeState.DIRECT, trip
        case PathKind.RELAYED:
            state, label = EdgeState.RELAYED, f"{word} · {trip}" if trip else word
        case None if {edge.from_member, edge.to_member} & away:
            word = QCoreApplication.translate("Ring", "No answer")
            # One word is enough for the two hops of a computer that is away.
            state, label = EdgeState.LOST, word if edge.to_member in away else ""
        case None:
            state, label = EdgeState.CONNECTING, word
    hint = QCoreApplication.translate("Ring", "{sender} to {receiver}: {word}").format(
        sender=names.get(edge.from_member, ""),
        receiver=names.get(edge.to_member, ""),
        word=", ".join(
            part for part in (word, trip, figures.bytes_per_second(edge.bytes_per_s) if trip else "") if part
        ),
    )
    return EdgeLook(state=state, label=label, hint=hint)


def _centre(serving: Serving) -> CentreLook:
    if serving.paused is not None:
        longest = max((one.away_s or 0.0 for one in serving.ring), default=0.0)
        waited = QCoreApplication.translate("Ring", "for {time}")
        return _word(
            QCoreApplication.translate("Ring", "Paused"),
            waited.format(time=figures.seconds(longest)) if longest else "",
        )
    pace = serving.pace
    above = _chatting(serving.chatting)
    if pace.words_per_second is not None:
        return CentreLook(
            above=above,
            main=figures.rate(pace.words_per_second),
            below=QCoreApplication.translate("Ring", "words a second"),
            below_short=QCoreApplication.translate("Ring", "words/s"),
            figure=True,
        )
    if pace.tokens_per_second is not None:
        return CentreLook(
            above=above,
            main=figures.rate(pace.tokens_per_second),
            below=QCoreApplication.translate("Ring", "tokens a second"),
            below_short=QCoreApplication.translate("Ring", "tokens/s"),
            figure=True,
        )
    return _word(
        QCoreApplication.translate("Ring", "Ready"),
        QCoreApplication.translate("Ring", "ask it something"),
    )


def _over() -> CentreLook:
    return _word(QCoreApplication.translate("Ring", "Ended"), "")


def _word(main: str, below: str) -> CentreLook:
    return CentreLook(above="", main=main, below=below, below_short=below, figure=False)


def _chatting(count: int) -> str:
    if count <= 0:
        return ""
    if count == 1:
        return QCoreApplication.translate("Ring", "1 person is chatting")
    text = QCoreApplication.translate("Ring", "{number} people are chatting")
    return text.format(number=figures.number(count, 0))
