"""The best plan by counting servers that look alike: one integer program whose size knows no number of servers."""

from __future__ import annotations

import numpy as np

from slurm_fair.solve.answer import How
from slurm_fair.solve.linear import Effort, solve
from slurm_fair.solve.places.fleet import Fleet
from slurm_fair.solve.places.flow import Flow
from slurm_fair.solve.places.lay import lay
from slurm_fair.solve.places.packing import packed
from slurm_fair.solve.places.prices import linear
from slurm_fair.solve.places.problem import Picks, PlacesAnswer, PlacesLimits, PlacesProblem


def classes(problem: PlacesProblem, limits: PlacesLimits | None = None) -> PlacesAnswer:
    """The optimum of `literal` over the same configurations; what packing finds where the limits are short."""
    limits = limits or PlacesLimits()
    fleet = Fleet.of(problem)
    if not len(fleet.ways.job):
        return Picks.none(problem.jobs).answer(problem, 0.0, How.EXACT)
    prices = linear(fleet, limits.prices)
    packing = packed(problem, fleet, prices.way)
    flow = Flow.of(fleet)
    effort = Effort(limits.nodes, limits.iterations, 0.0)
    found = solve(flow.program(whole=True), limits.left(0.0), effort)
    bound = min(prices.bound, found.bound * fleet.ways.unit) if np.isfinite(found.bound) else prices.bound
    if not found.found:
        return packing.answer(problem, bound, How.GREEDY)
    x, arcs, windows = flow.parts(found.x)
    picks = lay(problem, fleet, np.flatnonzero(x > 0.5), arcs, windows)
    if picks.worth(problem) < packing.worth(problem):
        return packing.answer(problem, bound, How.GREEDY)
    return picks.answer(problem, bound, found.how)
