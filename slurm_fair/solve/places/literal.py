"""Hops' integer program as the paper writes it, with PuLP: a variable for each job and each exact place.

Slow, and what `classes` and `fast` are held to. Eq. 13 of the paper leaves the sum over the jobs out, and "R_k <
S_t" has to be "<=": a job may fill a server.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pulp  # type: ignore[import-untyped]

from slurm_fair.model.columns import Ints
from slurm_fair.solve.answer import How
from slurm_fair.solve.places.problem import Picks, PlacesAnswer, PlacesLimits, PlacesProblem
from slurm_fair.solve.places.ways import Ways
from slurm_fair.solve.places.windows import levels_of


def literal(problem: PlacesProblem, limits: PlacesLimits | None = None) -> PlacesAnswer:
    """The best plan, by eq. 11-13 over every configuration of every job."""
    limits = limits or PlacesLimits()
    ways = Ways.of(problem)
    configurations = _configurations(problem, ways)
    if not len(configurations):
        return Picks.none(problem.jobs).answer(problem, 0.0, How.EXACT)
    program, chosen = _program(problem, configurations)
    program.solve(pulp.HiGHS(msg=False, threads=1, gapRel=0.0, timeLimit=limits.seconds, **_counts(limits)))
    return _read(problem, configurations, program, chosen)


def _configurations(problem: PlacesProblem, ways: Ways) -> Ints:
    """A row for each: its column, the first of its servers, how many."""
    first: list[Ints] = [np.zeros(0, dtype=np.int64)] * len(ways)
    servers = np.ones(len(ways), dtype=np.int64)
    for way in np.flatnonzero(~ways.spread).tolist():
        fits = (problem.kind == ways.kind[way]) & (problem.free >= ways.gpus[way])
        first[way] = np.flatnonzero(fits)
    used, _, levels = levels_of(problem, ways)
    for level in levels:
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


def _program(problem: PlacesProblem, configurations: Ints) -> tuple[Any, list[Any]]:
    """Eq. 11 (the objective), eq. 12 (one configuration a job) and eq. 13 (the GPUs of each server)."""
    program = pulp.LpProblem("hops", pulp.LpMaximize)
    chosen = [program.add_variable(f"x{i}", cat=pulp.LpBinary) for i in range(len(configurations))]
    column = configurations[:, 0]
    worth = problem.value[column].tolist()
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


def _read(problem: PlacesProblem, configurations: Ints, program: Any, chosen: list[Any]) -> PlacesAnswer:
    """Whatever PuLP calls it: `status` says optimal of programs that were cut short, `sol_status` does not."""
    info = program.solverModel.getInfo()
    bound = float(info.mip_dual_bound)
    sound = _relaxed(problem, configurations)
    if program.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return Picks.none(problem.jobs).answer(problem, sound, How.GREEDY)
    taken = configurations[[(x.value() or 0.0) > 0.5 for x in chosen]]
    picks, jobs = Picks.none(problem.jobs), problem.job[taken[:, 0]]
    picks.column[jobs], picks.first[jobs], picks.servers[jobs] = taken.T
    how = How.EXACT if program.sol_status == pulp.LpSolutionOptimal else How.FEASIBLE
    return picks.answer(problem, min(sound, bound) if np.isfinite(bound) else sound, how)


def _relaxed(problem: PlacesProblem, configurations: Ints) -> float:
    """Everybody's best: a bound that needs no solver."""
    best = np.zeros(problem.jobs)
    column = configurations[:, 0]
    np.maximum.at(best, problem.job[column], problem.value[column])
    return float(best.sum())
