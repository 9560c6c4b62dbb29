"""Where everything on the ring lies. Pure: numbers in, numbers out, no Qt.

Angles are *turns*: degrees from the top in the ring's own direction, which is clockwise, and
anticlockwise where the interface runs right to left. So mirroring changes one sign and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import asin, ceil, cos, degrees, floor, radians, sin, sqrt

LEAST_NODE_RADIUS = 24.0
MOST_NODE_RADIUS = 40.0
BAND_RADIUS = 0.6
BAND_GAP_DEGREES = 4.4
LABEL_GAP = 13.0
LEAST_SLOT_DEGREES = 48.0
ROOMY_MEMBERS = 6
"""Up to this many members the slots follow the shares; beyond it they are all equal."""

LABEL_WIDTH = 104.0
"""Names are elided at this width."""
DOT_ROOM = 14.0
"""For the coloured dot beside a name."""

_FULL_RADIUS = 140.0
"""The ring radius from which nodes have their full size."""
_MOST_RADIUS = 230.0
_BREATHING_ROOM = 20.0
_EDGE_SHARE = 0.28
"""Of the way between neighbours that stays free, so that an edge can be seen."""
_ARC_CLEARANCE = 9.0
_LABEL_CLEARANCE = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The far side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The lower side."""
        return self.y + self.height

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share any area."""
        return self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One computer's disc."""

    turn: float
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """A piece of a circle round the ring's centre, from `turn` on over `span` degrees."""

    turn: float
    span: float
    radius: float

    @property
    def middle(self) -> float:
        """The turn half way along."""
        return self.turn + self.span / 2

    @property
    def length(self) -> float:
        """Along the curve."""
        return radians(max(0.0, self.span)) * self.radius


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Where a node's name goes. `align` is -1 (text ends here), 0 (centred) or 1 (begins here)."""

    x: float
    y: float
    align: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A ring laid out in a rectangle. Nodes, band and edges are in ring order, from the head on.

    `edges[i]` leads from node i to the next one; a ring of one has none.
    """

    width: float
    height: float
    x: float
    y: float
    radius: float
    mirrored: bool
    nodes: tuple[Node, ...]
    band: tuple[Arc, ...]
    edges: tuple[Arc, ...]

    def point(self, turn: float, radius: float) -> tuple[float, float]:
        """The point at a turn and a distance from the centre."""
        sideways = -1.0 if self.mirrored else 1.0
        return (
            self.x + sideways * radius * sin(radians(turn)),
            self.y - radius * cos(radians(turn)),
        )

    def sideways(self, turn: float) -> float:
        """How far a turn points to the right, -1 to 1."""
        return sin(radians(turn)) * (-1.0 if self.mirrored else 1.0)


def slots(blocks: Sequence[int]) -> tuple[float, ...]:
    """How many degrees of the ring belong to each member: its share, but never too few."""
    count = len(blocks)
    if count > ROOMY_MEMBERS or sum(blocks) <= 0:
        return (360.0 / count,) * count
    narrow: set[int] = set()
    while True:
        left = 360.0 - LEAST_SLOT_DEGREES * len(narrow)
        total = sum(blocks[i] for i in range(count) if i not in narrow)
        found = {i for i in range(count) if i not in narrow and left * blocks[i] / total < LEAST_SLOT_DEGREES}
        if not found:
            break
        narrow |= found
    return tuple(LEAST_SLOT_DEGREES if i in narrow else left * blocks[i] / total for i in range(count))


def lay_out(width: float, height: float, blocks: Sequence[int], *, labels: bool, mirrored: bool) -> Ring:
    """Place a ring of `len(blocks)` members, the head first and at the top."""
    degrees_each = slots(blocks)
    turns: list[float] = []
    begins = -degrees_each[0] / 2
    for span in degrees_each:
        turns.append(begins + span / 2)
        begins += span
    largest = max(*blocks, 1)
    wanted = [
        LEAST_NODE_RADIUS + (MOST_NODE_RADIUS - LEAST_NODE_RADIUS) * sqrt(max(0, share) / largest) for share in blocks
    ]
    radius, scale = _fit(width, height, turns, wanted, labels=labels)
    ring = Ring(
        width=width,
        height=height,
        x=width / 2,
        y=height / 2,
        radius=radius,
        mirrored=mirrored,
        nodes=(),
        band=(),
        edges=(),
    )
    nodes: list[Node] = []
    for turn, size in zip(turns, wanted, strict=True):
        x, y = ring.point(turn, radius)
        nodes.append(Node(turn=turn, x=x, y=y, radius=size * scale))
    return Ring(
        width=width,
        height=height,
        x=ring.x,
        y=ring.y,
        radius=radius,
        mirrored=mirrored,
        nodes=tuple(nodes),
        band=_band(turns, degrees_each, radius * BAND_RADIUS),
        edges=_edges(nodes, radius),
    )


def node_label(ring: Ring, node: Node, *, lines: int, line_height: float) -> Label:
    """Where a node's label goes: above or below it, or beside it when the node is at a side.

    `y` is the top of the first line.
    """
    sideways = ring.sideways(node.turn)
    reach = node.radius + LABEL_GAP
    if beside(ring, node):
        right = sideways > 0
        return Label(
            x=node.x + (reach if right else -reach),
            y=node.y - line_height * (lines - 0.4) / 2,
            align=1 if right else -1,
        )
    above = node.y < ring.y
    top = node.y - reach - lines * line_height + 6 if above else node.y + reach - 6
    return Label(x=node.x, y=top, align=0)


def beside(ring: Ring, node: Node) -> bool:
    """Whether the node's label stands beside it rather than above or below."""
    return abs(ring.sideways(node.turn)) > 0.42


def edge_label(ring: Ring, edge: Arc, width: float, height: float) -> Box:
    """A box of this size just outside the middle of an edge."""
    turn = edge.middle
    away = edge.radius + _LABEL_CLEARANCE + abs(sin(radians(turn))) * width / 2 + abs(cos(radians(turn))) * height / 2
    x, y = ring.point(turn, away)
    x = min(max(x, width / 2), max(ring.width - width / 2, width / 2))
    return Box(x=x - width / 2, y=y - height / 2, width=width, height=height)


def arrow(ring: Ring, edge: Arc, size: float) -> tuple[tuple[float, float], ...]:
    """The three points of the arrow head at the receiver's end of an edge."""
    tip_turn = edge.turn + edge.span
    tip = ring.point(tip_turn, edge.radius)
    # The chord over the last `size` pixels points the way the eye expects; the tangent does not.
    back_turn = tip_turn - degrees(size / edge.radius)
    back = ring.point(back_turn, edge.radius)
    along = (tip[0] - back[0], tip[1] - back[1])
    across = (-along[1] * 0.62, along[0] * 0.62)
    return (
        (back[0] + across[0], back[1] + across[1]),
        tip,
        (back[0] - across[0], back[1] - across[1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """One dot of a pulse."""

    x: float
    y: float
    radius: float
    opacity: float


def pulse(ring: Ring, phase: float, dots: int) -> tuple[Light, ...]:
    """A light at `phase` (0 to 1 once round, from the head) and its followers, last one first."""
    lights: list[Light] = []
    for n in range(dots - 1, -1, -1):
        turn = 360.0 * phase - degrees(n * 6.0 / ring.radius)
        x, y = ring.point(turn, ring.radius)
        lights.append(Light(x=x, y=y, radius=6.5 if n == 0 else 5.2 - 0.55 * n, opacity=1.0 - n * 0.16))
    return tuple(lights)


def bounds(lights: Sequence[Light], margin: float) -> Box:
    """The least box of whole pixels round some lights, with room for their glow."""
    left = floor(min(light.x - light.radius for light in lights) - margin)
    top = floor(min(light.y - light.radius for light in lights) - margin)
    right = ceil(max(light.x + light.radius for light in lights) + margin)
    bottom = ceil(max(light.y + light.radius for light in lights) + margin)
    return Box(x=left, y=top, width=right - left, height=bottom - top)


def neighbour(count: int, at: int, *, step: int) -> int:
    """The node that an arrow key leads to."""
    return (at + step) % count


def _fit(
    width: float, height: float, turns: Sequence[float], wanted: Sequence[float], *, labels: bool
) -> tuple[float, float]:
    """The largest ring radius that the rectangle allows, and the scale of its nodes."""
    beside_room = LABEL_GAP + LABEL_WIDTH + DOT_ROOM if labels else _BREATHING_ROOM
    above_room = _BREATHING_ROOM + (LABEL_GAP + 34 if labels else 0)
    scale = 1.0
    radius = 1.0
    # Smaller nodes leave room for a larger ring, which asks for other nodes: this settles fast.
    for _ in range(4):
        node = max(wanted) * scale
        across = width / 2 - max(beside_room, _BREATHING_ROOM) - node
        down = height / 2 - above_room - node
        radius = max(1.0, min(across, down, _MOST_RADIUS))
        scale = min(1.0, radius / _FULL_RADIUS)
    return radius, min(scale, *_neighbour_scales(turns, wanted, radius), _inner_scale(wanted, radius))


def _neighbour_scales(turns: Sequence[float], wanted: Sequence[float], radius: float) -> tuple[float, ...]:
    """For each pair of neighbours, how much smaller they must be to leave room for an edge."""
    count = len(turns)
    if count == 1:
        return (1.0,)
    scales: list[float] = []
    for i in range(count):
        j = (i + 1) % count
        gap = (turns[j] - turns[i]) % 360 or 360.0
        chord = 2 * radius * sin(radians(min(gap, 360 - gap)) / 2)
        scales.append(chord * (1 - _EDGE_SHARE) / (wanted[i] + wanted[j]))
    return tuple(scales)


def _inner_scale(wanted: Sequence[float], radius: float) -> float:
    """Nodes must not touch the band inside the ring."""
    return radius * (1 - BAND_RADIUS) * 0.82 / max(wanted)


def _band(turns: Sequence[float], spans: Sequence[float], radius: float) -> tuple[Arc, ...]:
    if len(turns) == 1:
        return (Arc(turn=0.0, span=360.0, radius=radius),)
    return tuple(
        Arc(turn=turn - span / 2 + BAND_GAP_DEGREES / 2, span=span - BAND_GAP_DEGREES, radius=radius)
        for turn, span in zip(turns, spans, strict=True)
    )


def _edges(nodes: Sequence[Node], radius: float) -> tuple[Arc, ...]:
    count = len(nodes)
    if count == 1:
        return ()
    arcs: list[Arc] = []
    for i, node in enumerate(nodes):
        to = nodes[(i + 1) % count]
        turn = (to.turn - node.turn) % 360 or 360.0
        chord = 2 * radius * sin(radians(min(turn, 360 - turn)) / 2)
        air = min(_ARC_CLEARANCE, (chord - node.radius - to.radius) / 4)
        begins = node.turn + _half_angle(node.radius + air, radius)
        ends = node.turn + turn - _half_angle(to.radius + air, radius)
        arcs.append(Arc(turn=begins, span=ends - begins, radius=radius))
    return tuple(arcs)


def _half_angle(reach: float, radius: float) -> float:
    """The angle between a point of the ring and another one at this distance from it."""
    return degrees(2 * asin(min(1.0, reach / (2 * radius))))


def qt_degrees(ring: Ring, arc: Arc) -> tuple[float, float]:
    """An arc as start and span in degrees anticlockwise from three o'clock, for a painter."""
    sign = 1.0 if ring.mirrored else -1.0
    return 90.0 + sign * arc.turn, sign * arc.span
