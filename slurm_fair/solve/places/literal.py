"""Hops' integer program as the paper writes it, with PuLP: a variable for each job and each exact place.

Slow, and what `classes` and `fast` are held to, over the same windows as theirs. With `every_start` a spread job
may begin on any server, as in the paper: that says what these windows lose. Eq. 13 of the paper leaves the sum
over the jobs out, and "R_k < S_t" has to be "<=": a job may fill a server.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pulp  # type: ignore[import-untyped]

from slurm_fair.model.columns import Ints
from slurm_fair.solve.answer import How
from slurm_fair.solve.places.problem import Picks, PlacesAnswer, PlacesLimits, PlacesProblem
from slurm_fair.solve.places.ways import Ways
from slurm_fair.solve.places.windows import levels_of

_FEASIBLE = 2  # highspy.SolutionStatus.kSolutionStatusFeasible


def literal(
    problem: PlacesProblem, limits: PlacesLimits | None = None, *, every_start: bool = False
) -> PlacesAnswer:
    """The best plan, by eq. 11-13 over every configuration of every job."""
    limits = limits or PlacesLimits()
    ways = Ways.of(problem)
    configurations = _configurations(problem, ways, every_start)
    if not len(configurations):
        return Picks.none(problem.jobs).answer(problem, 0.0, How.EXACT)
    program, chosen = _program(problem, configurations, ways.unit)
    solver = pulp.HiGHS(msg=False, threads=1, gapRel=0.0, timeLimit=limits.seconds, **_counts(limits))
    with suppress(KeyError):  # PuLP has no word for the limit of nodes; the values are there
        program.solve(solver)
    taken = configurations[[(x.value() or 0.0) > 0.5 for x in chosen]]
    return _read(problem, configurations, program, taken, ways.unit)


def _configurations(problem: PlacesProblem, ways: Ways, every_start: bool) -> Ints:
    """A row for each: its column, the first of its servers, how many."""
    first: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(ways)
    servers = np.ones(len(ways), dtype=np.int64)
    for way in np.flatnonzero(~ways.several).tolist():
        fits = (problem.kind == ways.kind[way]) & (problem.free >= ways.gpus[way])
        first[way] = np.flatnonzero(fits)
    for way in np.flatnonzero(ways.several & every_start).tolist():
        first[way], servers[way] = _every_start(problem, int(ways.kind[way]), int(ways.gpus[way]))
    used, _, levels = levels_of(problem, ways)
    for level in () if every_start else levels:
        pieces = level.pieces
        for piece, offset, many, way in zip(
            level.piece, level.offset, level.servers, level.way.tolist(), strict=True
        ):
            alike = np.flatnonzero(pieces.likeness == pieces.likeness[piece])
            first[way] = np.append(first[way], used[pieces.first[alike] + offset])
            servers[way] = many
    many = np.array([len(first[way]) for way in ways.way.tolist()], dtype=np.int64)
    places = [first[way] for way in ways.way.tolist()]
    return np.column_stack(
        [
            np.repeat(ways.columns, many),
            np.concatenate([np.zeros(0, dtype=np.int64), *places]),
            np.repeat(servers[ways.way], many),
        ]
    )


def _every_start(problem: PlacesProblem, kind: int, gpus: int) -> tuple[Ints, int]:
    """The servers from which on the fewest neighbours hold so many GPUs, each filled to its end, and how few."""
    able = (problem.kind == kind) & (problem.free > 0)
    none = len(able) + 1
    counts = np.full(len(able), none)
    for first in np.flatnonzero(able).tolist():
        end = first
        while end < len(able) and able[end] and problem.block[end] == problem.block[first]:
            end += 1
        held = problem.free[first:end].cumsum()
        if held[-1] >= gpus > held[0]:
            counts[first] = 1 + int(held.searchsorted(gpus))
    least = int(counts.min(initial=none))
    return np.flatnonzero((counts == least) & (counts < none)), least


def _program(problem: PlacesProblem, configurations: Ints, unit: float) -> tuple[Any, list[Any]]:
    """Eq. 11 (the objective), eq. 12 (one configuration a job) and eq. 13 (the GPUs of each server)."""
    program = pulp.LpProblem("hops", pulp.LpMaximize)
    chosen = [program.add_variable(f"x{i}", cat=pulp.LpBinary) for i in range(len(configurations))]
    column = configurations[:, 0]
    worth = (problem.value[column] / unit).tolist()
    program.setObjective(pulp.LpAffineExpression(list(zip(chosen, worth, strict=True))))
    of_job: dict[int, list[Any]] = {}
    on_server: dict[int, list[Any]] = {}
    for x, (at, first, many) in zip(chosen, configurations.tolist(), strict=True):
        of_job.setdefault(int(problem.job[at]), []).append((x, 1))
        left = int(problem.gpus[at])
        for server in range(first, first + many):
            consumed = min(left, int(problem.free[server]))
            on_server.setdefault(server, []).append((x, consumed))
            left -= consumed
    for terms in of_job.values():
        program.addConstraint(pulp.LpAffineExpression(terms) <= 1)
    for server, terms in on_server.items():
        program.addConstraint(pulp.LpAffineExpression(terms) <= int(problem.free[server]))
    return program, chosen


def _counts(limits: PlacesLimits) -> dict[str, Any]:
    return {
        "mip_max_nodes": limits.nodes,
        "simplex_iteration_limit": limits.iterations,
        "mip_abs_gap": 0.0,
        "random_seed": 0,
    }


def _read(
    problem: PlacesProblem, configurations: Ints, program: Any, taken: Ints, unit: float
) -> PlacesAnswer:
    """The answer by HiGHS' own account: PuLP's `status` says optimal of programs that were cut short.

    `sol_status` does not, but it says feasible where a limit came before any plan.
    """
    info = program.solverModel.getInfo()
    bound = abs(float(info.mip_dual_bound)) * unit  # PuLP maximises by minimising what is negative
    sound = _relaxed(problem, configurations)
    bound = min(sound, bound) if np.isfinite(bound) else sound
    if info.primal_solution_status != _FEASIBLE:
        return Picks.none(problem.jobs).answer(problem, bound, How.GREEDY)
    picks, jobs = Picks.none(problem.jobs), problem.job[taken[:, 0]]
    picks.column[jobs], picks.first[jobs], picks.servers[jobs] = taken.T
    exact = program.sol_status == pulp.LpSolutionOptimal
    return picks.answer(problem, bound, How.EXACT if exact else How.FEASIBLE)


def _relaxed(problem: PlacesProblem, configurations: Ints) -> float:
    """Everybody's best: a bound that needs no solver."""
    best = np.zeros(problem.jobs)
    column = configurations[:, 0]
    np.maximum.at(best, problem.job[column], problem.value[column])
    return float(best.sum())
