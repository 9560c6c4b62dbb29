"""From a question to its best division, without words: order, head, cuts, or what stands in the way."""

from dataclasses import dataclass

from kafila.domain.plan import Objective, Tier
from kafila.planner.all_orders import find_fitting_order, find_nearest_of_all
from kafila.planner.costs import TICKS_PER_MS, Costs, build_costs
from kafila.planner.nearest import Nearest, find_nearest
from kafila.planner.partition import build_chain
from kafila.planner.placement import Goal, HighestRate, Placement, ShortestBottleneck, place
from kafila.planner.question import Question
from kafila.planner.ring_heuristic import OrderSearch, search_orders
from kafila.planner.ring_order import EXACT_MEMBERS, Network, Order, build_network, find_exact_order, turn_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Workings:
    """A question with its costs and its network."""

    question: Question
    costs: Costs
    network: Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The best division, and how surely it is the best."""

    workings: Workings
    placement: Placement
    exact: bool
    note: str

    @property
    def token_ticks(self) -> int:
        """The time between two tokens of one conversation, at the declared concurrency."""
        question = self.workings.question
        rate = HighestRate(
            hop_ticks=hop_ticks(self.workings.network, self.placement.ring),
            concurrency=question.concurrency,
        )
        return rate.value(self.placement.division)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """No division fits the members' memory; `nearest` comes nearest to it."""

    workings: Workings
    nearest: Nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class TooMany:
    """There are more members than blocks, and everyone has to hold one."""

    question: Question


def hop_ticks(network: Network, ring: Order) -> int:
    """What a token spends in flight on its way round: half of every round trip."""
    return network.price_us(ring) * TICKS_PER_MS // 2000


def work_out(question: Question) -> Workings:
    """The costs and the network of a question."""
    return Workings(question=question, costs=build_costs(question), network=build_network(question))


def solve(question: Question, *, hint: bool = False) -> Solution | NoFit | TooMany:
    """The best division of the cheapest order in which any fits.

    Where the members' memory taken together is too small, a `hint` has to name the nearest
    division of the cheapest order only, not of all.
    """
    if len(question.members) > question.spec.blocks:
        return TooMany(question=question)
    workings = work_out(question)
    if workings.costs.members <= EXACT_MEMBERS:
        return _solve_small(workings, hint=hint)
    return _solve_large(workings)


def solve_along(question: Question, ring: Order) -> Solution | NoFit | TooMany:
    """The best division of one ring under one head: what is quick to know of a large ring."""
    if len(question.members) > question.spec.blocks:
        return TooMany(question=question)
    workings = work_out(question)
    division = build_goal(workings, ring).solve(build_chain(workings.costs, ring))
    if division is None:
        return NoFit(workings=workings, nearest=find_nearest(workings.costs, question.arrival, [ring]))
    placement = Placement(ring=ring, division=division)
    return Solution(workings=workings, placement=placement, exact=False, note="")


def _solve_small(workings: Workings, *, hint: bool) -> Solution | NoFit:
    costs, arrival = workings.costs, workings.question.arrival
    order = find_exact_order(workings.network)
    placement = place_order(workings, order)
    if placement is not None:
        return Solution(workings=workings, placement=placement, exact=True, note="")
    if costs.uniform or (hint and sum(costs.rooms) < costs.needs[-1] + costs.head_need):
        return NoFit(workings=workings, nearest=find_nearest(costs, arrival, turn_round(order)))
    nearest = find_nearest_of_all(costs, arrival)
    dearer = find_fitting_order(costs, workings.network) if nearest.shortfall == 0 else None
    placement = None if dearer is None else place_order(workings, dearer)
    if placement is None:
        return NoFit(workings=workings, nearest=nearest)
    note = "The cheapest order of the ring leaves no division that fits; this is the next one."
    return Solution(workings=workings, placement=placement, exact=True, note=note)


def _solve_large(workings: Workings) -> Solution | NoFit:
    """As above with the orders that the search came upon, the lightest first."""
    search = search_orders(workings.network)
    for order in search.orders[:1] if workings.costs.uniform else search.orders:
        placement = place_order(workings, order)
        if placement is not None:
            return Solution(
                workings=workings,
                placement=placement,
                exact=False,
                note=_describe_gap(workings.network, search, order),
            )
    nearest = find_nearest(workings.costs, workings.question.arrival, turn_round(search.orders[0]))
    return NoFit(workings=workings, nearest=nearest)


def place_order(workings: Workings, order: Order) -> Placement | None:
    """The best head and division for an order; below the full tier, by proportion."""
    goal = build_goal(workings, order)
    host_leads = workings.costs.tier is not Tier.FULL
    return place(workings.costs, order, goal, host_leads=host_leads)


def build_goal(workings: Workings, order: Order) -> Goal:
    """What is to be made small. Without times there is no rate, so then the proportions are."""
    question = workings.question
    if workings.costs.tier is not Tier.FULL or question.objective is Objective.BALANCED:
        return ShortestBottleneck()
    return HighestRate(hop_ticks=hop_ticks(workings.network, order), concurrency=question.concurrency)


def _describe_gap(network: Network, search: OrderSearch, order: Order) -> str:
    if network.counted:
        return (
            f"The ring has {network.relays(order)} relayed connections; no order has fewer than {search.least_relays}."
        )
    price = network.price_us(order)
    gap = 100 * (price - search.least_price_us) / price if price else 0.0
    return f"The connections' total time is at most {gap:.1f} % above the least possible."
