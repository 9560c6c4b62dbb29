"""Orders for rings of more than nine members: good ones, and how far from the best they can be.

Several starts are improved by turning stretches round (2-opt) and moving short stretches
elsewhere (Or-opt) until nothing helps. Nothing is drawn by chance: the same network gives the
same orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from kafila.domain.plan import PathKind
from kafila.planner.reachability import NatClass, count_fewest_relays
from kafila.planner.ring_order import Network, Order

_LONGEST_MOVE = 3
# The ascent to the bound: tuned on rings of mixed networks, where the gap came down to 1 or 2 %.
_ASCENT_STEPS = 250
_PATIENCE = 5
_SLOWING = 0.8
_TURN = 0.7
"""The part of a step that follows the present tree; the rest follows the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSearch:
    """What the search came upon."""

    orders: tuple[Order, ...]
    """Each begins with the host, in both directions, the lightest first."""
    least_price_us: int
    """No ring is cheaper than this."""
    least_relays: int
    """No ring has fewer relayed edges than this."""


def search_orders(network: Network) -> OrderSearch:
    """Good orders of a ring of at least five members, and bounds below all orders."""
    starts = (_nearest_next(network), _insert_cheapest(network), _alternate(network))
    found = {_from_host(_improve(network.weights, list(start))) for start in starts}
    both_ways = found | {(0, *reversed(order[1:])) for order in found}
    orders = tuple(sorted(both_ways, key=lambda order: (network.weigh(order), order)))
    return OrderSearch(
        orders=orders,
        least_price_us=_bound_price(network, network.price_us(orders[0])),
        least_relays=_bound_relays(network),
    )


def _from_host(order: Sequence[int]) -> Order:
    host = order.index(0)
    return (*order[host:], *order[:host])


def _nearest_next(network: Network) -> list[int]:
    order, left = [0], set(range(1, network.members))
    while left:
        row = network.weights[order[-1]]
        order.append(min(left, key=lambda member: (row[member], member)))
        left.remove(order[-1])
    return order


def _insert_cheapest(network: Network) -> list[int]:
    weights = network.weights
    order = [0]
    for member in range(1, network.members):
        gaps = zip(order, (*order[1:], order[0]), strict=True)
        costs = [weights[one][member] + weights[member][other] - weights[one][other] for one, other in gaps]
        order.insert(costs.index(min(costs)) + 1, member)
    return order


def _alternate(network: Network) -> list[int]:
    """Permissive and restrictive members in turn, then everyone else.

    This is the ring without relays wherever the counting pass says that there is one.
    """
    groups: dict[NatClass, list[int]] = {kind: [] for kind in NatClass}
    for member, kind in enumerate(network.classes):
        groups[kind].append(member)
    permissive, restrictive = groups[NatClass.PERMISSIVE], groups[NatClass.RESTRICTIVE]
    pairs = min(len(permissive), len(restrictive))
    order: list[int] = []
    for one, other in zip(permissive, restrictive, strict=False):
        order += (one, other)
    return [
        *order,
        *permissive[pairs:],
        *groups[NatClass.ORDINARY],
        *groups[NatClass.BLOCKED],
        *restrictive[pairs:],
    ]


def _improve(weights: Sequence[Sequence[int]], order: list[int]) -> list[int]:
    while _turn_stretch(weights, order) or _move_stretch(weights, order):
        pass
    return order


def _turn_stretch(weights: Sequence[Sequence[int]], order: list[int]) -> bool:
    """2-opt: wherever it helps, run through a stretch of the ring the other way."""
    size = len(order)
    helped = False
    for first in range(size - 1):
        for last in range(first + 2, size - (first == 0)):
            one, two = order[first], order[first + 1]
            three, four = order[last], order[(last + 1) % size]
            before = weights[one][two] + weights[three][four]
            if weights[one][three] + weights[two][four] < before:
                order[first + 1 : last + 1] = order[last:first:-1]
                helped = True
    return helped


def _move_stretch(weights: Sequence[Sequence[int]], order: list[int]) -> bool:
    """Or-opt: put the first stretch of up to three members for which it helps elsewhere."""
    for length in range(1, _LONGEST_MOVE + 1):
        for _ in range(len(order)):
            order.append(order.pop(0))
            better = _find_place(weights, order[:length], order[length:])
            if better is not None:
                order[:] = better
                return True
    return False


def _find_place(weights: Sequence[Sequence[int]], stretch: list[int], rest: list[int]) -> list[int] | None:
    """A lighter ring with the stretch inside the rest, either way round."""
    first, last = weights[stretch[0]], weights[stretch[-1]]
    gain = first[rest[-1]] + last[rest[0]] - weights[rest[-1]][rest[0]]
    for gap, (one, other) in enumerate(pairwise(rest), start=1):
        room = gain + weights[one][other]
        if first[one] + last[other] < room:
            return [*rest[:gap], *stretch, *rest[gap:]]
        if last[one] + first[other] < room:
            return [*rest[:gap], *reversed(stretch), *rest[gap:]]
    return None


def _bound_relays(network: Network) -> int:
    """What the counting pass says where it applies, and half of what single members lack."""
    places = range(network.members)
    lacking = 0
    plain = NatClass.BLOCKED not in network.classes
    for one in places:
        direct = 0
        for other in places:
            if one != other and network.edges[one][other].path is PathKind.DIRECT:
                direct += 1
                pair = {network.classes[one], network.classes[other]}
                plain &= NatClass.RESTRICTIVE not in pair or NatClass.PERMISSIVE in pair
        lacking += max(0, 2 - direct)
    counted = count_fewest_relays(
        permissive=network.classes.count(NatClass.PERMISSIVE),
        ordinary=network.classes.count(NatClass.ORDINARY),
        restrictive=network.classes.count(NatClass.RESTRICTIVE),
    )
    return max(counted if plain else 0, (lacking + 1) // 2)


def _bound_price(network: Network, reached: int) -> int:
    """A bound below the price of every ring (Held and Karp's 1-trees, with subgradient steps).

    A ring is a tree on all members but one, with two edges to that one. Raising the price of a
    member's edges by a penalty changes every ring alike, but not every tree. Penalties add up to
    nothing, as such a tree has as many edges as there are members, so prices need no correction.
    """
    prices = [[float(edge.price_us or 0) for edge in row] for row in network.edges]
    penalties = [0.0] * network.members
    before = [0] * network.members
    best, pace, waited = 0.0, 1.0, 0
    for _ in range(_ASCENT_STEPS):
        total, degrees = _grow_tree(prices, penalties)
        excess = [degree - 2 for degree in degrees]
        square = sum(value * value for value in excess)
        waited = 0 if total > best else waited + 1
        best = max(best, total)
        if square == 0 or best >= reached:
            break
        if waited == _PATIENCE:
            pace, waited = pace * _SLOWING, 0
        step = pace * (reached - total) / square
        penalties = [
            penalty + step * (_TURN * now + (1 - _TURN) * then)
            for penalty, now, then in zip(penalties, excess, before, strict=True)
        ]
        before = excess
    # A thousandth of a microsecond per member covers the rounding of the sums above.
    return max(0, min(reached, ceil(best - network.members / 1000)))


def _grow_tree(prices: Sequence[Sequence[float]], penalties: Sequence[float]) -> tuple[float, list[int]]:
    """The least tree on all members but the first, with the two least edges to the first."""
    size = len(prices)
    degrees = [0] * size
    near = [prices[1][other] + penalties[1] + penalties[other] for other in range(size)]
    parent = [1] * size
    left = set(range(2, size))
    total = 0.0
    while left:
        nearest = min(left, key=near.__getitem__)
        left.remove(nearest)
        total += near[nearest]
        degrees[nearest] += 1
        degrees[parent[nearest]] += 1
        row, penalty = prices[nearest], penalties[nearest]
        for other in left:
            price = row[other] + penalty + penalties[other]
            if price < near[other]:
                near[other], parent[other] = price, nearest
    ends = sorted((prices[0][other] + penalties[0] + penalties[other], other) for other in range(1, size))
    for price, other in ends[:2]:
        total += price
        degrees[0] += 1
        degrees[other] += 1
    return total, degrees
