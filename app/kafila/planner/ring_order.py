"""In which order the members stand in the ring: the one of least total edge price.

An order is a tuple of places in `Question.members` that begins with the host. Exact up to nine
members; the search for larger rings is in `ring_heuristic`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kafila.domain.plan import PathKind
from kafila.planner.question import Question
from kafila.planner.reachability import NatClass, classify, predict_path

EXACT_MEMBERS = 9
_FIELD = 48
"""Bits for one criterion in a weight: more than any sum of microseconds."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What is predicted of a pair of members."""

    path: PathKind
    price_us: int | None
    """Its round trip: measured, or the least it can be. None: no way to know."""
    apart_us: int
    """How different the two distances to the rendezvous are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Every pair of members; `edges[a][b]` is `edges[b][a]`."""

    edges: tuple[tuple[Edge, ...], ...]
    weights: tuple[tuple[int, ...], ...]
    """What the ring's order makes least. First the price; where some price is not known, first
    the number of relays, then the prices that are. Then likeness of distances: where everything
    must be relayed and costs the same, neighbours that may yet connect directly are near."""
    counted: bool
    """Some price is not known, so relays are counted first."""
    classes: tuple[NatClass, ...]

    @property
    def members(self) -> int:
        """How many computers there are."""
        return len(self.edges)

    def weigh(self, order: Sequence[int]) -> int:
        """The weight of a whole ring."""
        return sum(self.weights[one][other] for one, other in hops(order))

    def price_us(self, order: Sequence[int]) -> int:
        """The price of a whole ring; an edge without one counts nothing."""
        return sum(self.edges[one][other].price_us or 0 for one, other in hops(order))

    def relays(self, order: Sequence[int]) -> int:
        """How many edges of a ring are predicted to be relayed."""
        return sum(self.edges[one][other].path is PathKind.RELAYED for one, other in hops(order))


def hops(order: Sequence[int]) -> list[tuple[int, int]]:
    """The edges of the ring: none for one member, two for two."""
    if len(order) < 2:
        return []
    return list(zip(order, (*order[1:], order[0]), strict=True))


def turn_round(order: Order) -> list[Order]:
    """The same ring read from each of its members on."""
    return [(*order[turn:], *order[:turn]) for turn in range(len(order))]


def build_network(question: Question) -> Network:
    """Predict and price every pair, by arithmetic alone."""
    places = range(len(question.members))
    below = [[_edge(question, one, other) for other in range(one + 1)] for one in places]
    edges = tuple(tuple(below[max(one, other)][min(one, other)] for other in places) for one in places)
    counted = any(edges[one][other].price_us is None for one in places for other in places if one != other)
    weights = tuple(tuple(_weight(edge, counted=counted) for edge in row) for row in edges)
    classes = tuple(classify(one.capability.reachability) for one in question.members)
    return Network(edges=edges, weights=weights, counted=counted, classes=classes)


def _edge(question: Question, one: int, other: int) -> Edge:
    a, b = question.members[one], question.members[other]
    path = predict_path(a.capability.reachability, b.capability.reachability)
    near = a.capability.reachability.rendezvous_rtt_ms
    far = b.capability.reachability.rendezvous_rtt_ms
    apart = None if near is None or far is None else round(abs(near - far) * 1000)
    around = None if near is None or far is None else round((near + far) * 1000)
    measured = question.pair_rtts.get(frozenset((a.member, b.member)))
    straight = apart if measured is None else round(measured * 1000)
    return Edge(
        path=path,
        price_us=straight if path is PathKind.DIRECT else around,
        apart_us=apart or 0,
    )


def _weight(edge: Edge, *, counted: bool) -> int:
    relays = int(counted and edge.path is PathKind.RELAYED)
    return (((relays << _FIELD) + (edge.price_us or 0)) << _FIELD) + edge.apart_us


def find_exact_order(network: Network) -> Order:
    """The order of least weight; of several, the first when ids are compared from the host on."""
    others = network.members - 1
    if others == 0:
        return (0,)
    weights = network.weights
    # rest[s][v]: the least way from member v through all members of the set s back to the host.
    rest = [[0] * network.members for _ in range(1 << others)]
    for v in range(network.members):
        rest[0][v] = weights[v][0]
    for s in range(1, 1 << others):
        inside = [u for u in range(1, network.members) if s >> (u - 1) & 1]
        for v in range(network.members):
            if v == 0 or not s >> (v - 1) & 1:
                row = weights[v]
                rest[s][v] = min(row[u] + rest[s ^ (1 << (u - 1))][u] for u in inside)
    order = [0]
    left = (1 << others) - 1
    while left:
        here = order[-1]
        order.append(
            next(
                u
                for u in range(1, network.members)
                if left >> (u - 1) & 1 and weights[here][u] + rest[left ^ (1 << (u - 1))][u] == rest[left][here]
            )
        )
        left ^= 1 << (order[-1] - 1)
    return tuple(order)
