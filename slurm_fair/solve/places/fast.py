"""A plan within a proven gap, quickly: prices, a small linear program, packing; an integer one where need be.

Each step gives a plan and a bound by itself, the first without any solver, so that something stands whenever the
limits end the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.answer import How
from slurm_fair.solve.linear import Effort, Solution, solve
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.flow import Flow
from slurm_fair.solve.places.lay import lay
from slurm_fair.solve.places.packing import packed, packed_with
from slurm_fair.solve.places.prices import Prices, best_uses, linear, priced, starts
from slurm_fair.solve.places.problem import Picks, PlacesAnswer, PlacesLimits, PlacesProblem

_CONTESTED, _FEWEST = 0.25, 150  # the part of the jobs, and how many at least, whose choice is open at first
_NEAR = 0.35  # of a way's price: how much worse than its job's best a use may be and stay open
_LOOSEST = (25, 75)  # jobs whose choice the integer program opens: of the prices' choices, of the plan's
_FEW = 80  # jobs up to which it opens all
_EQUAL = 1e-7  # a gap that is none


def fast(problem: PlacesProblem, limits: PlacesLimits | None = None) -> PlacesAnswer:
    """The first plan whose proven gap is no more than `limits.gap`, or the best that the limits allow."""
    limits = limits or PlacesLimits()
    fleet = Fleet.of(problem)
    if not len(fleet.ways.job):
        return Picks.none(problem.jobs).answer(problem, 0.0, How.EXACT)
    prices = linear(fleet, limits.prices)
    best = _Best(problem, fleet, limits, prices, packed(problem, fleet, prices.way), prices.bound)
    for step in (_contested, _pruned, _all, _integer):
        if best.enough:
            break
        best = step(best)
    return best.answer()


@dataclass(frozen=True, slots=True)
class _Best:
    """The best plan so far, the least bound, and the prices that proved it."""

    problem: PlacesProblem
    fleet: Fleet
    limits: PlacesLimits
    prices: Prices
    picks: Picks
    bound: float
    seconds: float = 0.0  # of the solver

    @property
    def worth(self) -> float:
        return self.picks.worth(self.problem)

    @property
    def enough(self) -> bool:
        """True where the gap is small enough, or where there is no time left."""
        return self.left <= 0 or self.worth >= (1.0 - max(self.limits.gap, _EQUAL)) * self.bound

    @property
    def left(self) -> float:
        """Seconds that the solver has left."""
        return self.limits.left(self.seconds)

    def answer(self) -> PlacesAnswer:
        """The plan with the bound that is proven."""
        how = How.EXACT if self.worth >= (1.0 - _EQUAL) * self.bound else How.FEASIBLE
        return self.picks.answer(self.problem, self.bound, how)

    def with_plan(self, picks: Picks) -> _Best:
        """The better of two plans."""
        return replace(self, picks=picks) if picks.worth(self.problem) > self.worth else self

    def with_prices(self, way: Floats) -> _Best:
        """The better of two bounds."""
        prices = priced(self.fleet, way)
        if prices.bound >= self.prices.bound:
            return self
        return replace(self, prices=prices, bound=min(self.bound, prices.bound))


def _contested(best: _Best) -> _Best:
    """Jobs whose two best uses are close choose anew among what is near the best; all others keep theirs."""
    fleet, ways = best.fleet, best.fleet.ways
    chosen, surplus = best_uses(fleet, best.prices.way)
    opened = _opened(best, chosen, surplus, max(_FEWEST, int(_CONTESTED * len(chosen))))
    kept = chosen[(surplus > 0) & ~opened[ways.job[chosen]]]
    return _linear(best, np.flatnonzero(opened[ways.job] & _near(best)), kept)


def _opened(best: _Best, chosen: Ints, surplus: Floats, count: int) -> Bools:
    """So many jobs whose choice hangs on least at these prices."""
    margin = _margins(best.fleet, best.prices.way, chosen, surplus)
    opened = np.zeros(best.problem.jobs, dtype=bool)
    opened[best.fleet.ways.job[chosen[np.argsort(margin, kind="stable")[:count]]]] = True
    return opened


def _margins(fleet: Fleet, way: Floats, chosen: Ints, surplus: Floats) -> Floats:
    """The difference between the best and the second best use, nothing among them, over the best one's price."""
    ways = fleet.ways
    others = ways.value - way[ways.way]
    others[chosen] = -np.inf
    second = np.maximum.reduceat(others, starts(fleet))
    margin: Floats = np.abs(np.maximum(surplus, 0.0) - np.maximum(second, 0.0))
    margin = np.where(surplus > 0, margin, -surplus)
    return margin / np.maximum(way[ways.way[chosen]], 1e-300)


def _near(best: _Best) -> Bools:
    """Uses that are not much worse than their job's best."""
    fleet, way = best.fleet, best.prices.way
    ways = fleet.ways
    surplus, first = ways.value - way[ways.way], starts(fleet)
    top = np.maximum(np.maximum.reduceat(surplus, first), 0.0)
    most = np.repeat(top, np.diff(np.append(first, len(surplus))))
    return surplus >= most - _NEAR * way[ways.way]


def _pruned(best: _Best) -> _Best:
    """All jobs choose among what is near their best."""
    return _linear(best, np.flatnonzero(_near(best)), np.zeros(0, dtype=np.int64))


def _all(best: _Best) -> _Best:
    """All jobs choose among everything."""
    return _linear(best, np.arange(len(best.fleet.ways.job)), np.zeros(0, dtype=np.int64))


def _linear(best: _Best, uses: Ints, kept: Ints) -> _Best:
    """The linear program's prices for the bound; its whole choices and those that were kept are packed."""
    fleet = best.fleet
    flow = Flow.of(fleet, uses, kept)
    found = solve(flow.program(whole=False), best.left, Effort(iterations=best.limits.iterations))
    best = replace(best, seconds=best.seconds + found.seconds)
    if not len(found.price):
        return best
    way = flow.way_prices(found.price)
    best = best.with_prices(way)
    x = flow.parts(found.x)[0]
    whole = np.append(uses[x > 1.0 - 1e-6], kept)
    best = best.with_plan(packed_with(best.problem, fleet, way, whole))
    return best if best.enough else best.with_plan(packed(best.problem, fleet, way))


def _integer(best: _Best) -> _Best:
    """The integer program: of all jobs where they are few, else of those whose choice hangs on least."""
    if len(starts(best.fleet)) <= _FEW:
        flow = Flow.of(best.fleet)
        effort = Effort(best.limits.nodes, best.limits.iterations, best.limits.gap)
        found = solve(flow.program(whole=True), best.left, effort)
        if np.isfinite(found.bound):
            best = replace(best, bound=min(best.bound, found.bound * best.fleet.ways.unit))
        return _with_solution(best, flow, found, flow.uses[:0])
    for count, choice in zip(_LOOSEST, (_by_price, _by_plan), strict=True):
        if not best.enough:
            uses, kept = _loosest(best, count, choice(best))
            flow = Flow.of(best.fleet, uses, kept)
            effort = Effort(best.limits.nodes, best.limits.iterations, best.limits.gap / 2, _target(best))
            found = solve(flow.program(whole=True), best.left, effort)
            best = _with_solution(best, flow, found, kept)
    return best


def _by_price(best: _Best) -> Ints:
    """The uses that are best for jobs at these prices; there may be no room for all."""
    chosen, surplus = best_uses(best.fleet, best.prices.way)
    return chosen[surplus > 0]


def _by_plan(best: _Best) -> Ints:
    """The uses that jobs have in the plan."""
    return np.flatnonzero(np.isin(best.fleet.ways.columns, best.picks.column))


def _target(best: _Best) -> float:
    """An objective that is good enough, in the program's unit."""
    return (1.0 - best.limits.gap / 2) * best.bound / best.fleet.ways.unit


def _with_solution(best: _Best, flow: Flow, found: Solution, kept: Ints) -> _Best:
    best = replace(best, seconds=best.seconds + found.seconds)
    if not found.found:
        return best
    x, arcs, windows = flow.parts(found.x)
    chosen = np.append(flow.uses[x > 0.5], kept)
    return best.with_plan(lay(best.problem, best.fleet, chosen, arcs, windows))


def _loosest(best: _Best, count: int, given: Ints) -> tuple[Ints, Ints]:
    """The uses of the jobs whose choice hangs on least at these prices, and what is given to all others."""
    ways = best.fleet.ways
    opened = _opened(best, *best_uses(best.fleet, best.prices.way), count)
    return np.flatnonzero(opened[ways.job] & _near(best)), given[~opened[ways.job[given]]]
