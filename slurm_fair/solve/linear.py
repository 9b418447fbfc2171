"""Linear and integer problems given to HiGHS as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.answer import How

if TYPE_CHECKING:
    import highspy


@dataclass(frozen=True, slots=True)
class MatrixEntries:
    """The entries of a matrix that are not zero, in any order."""

    row: Ints
    column: Ints
    value: Floats

    @classmethod
    def joined(cls, *parts: tuple[Ints, Ints, Floats]) -> MatrixEntries:
        """Several blocks of one matrix."""
        row, column, value = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(row, column, value)


@dataclass(frozen=True, slots=True)
class Problem:
    """Maximise worth . x over 0 <= x <= most with least_row <= A x <= most_row."""

    worth: Floats
    most: Floats
    cells: MatrixEntries
    least_row: Floats
    most_row: Floats
    whole: Bools | None = None  # columns that must be whole numbers
    start: Floats | None = None  # of a whole-number problem: an answer that is known, to be bettered


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer of HiGHS; `x` is empty when there is none."""

    x: Floats
    price: Floats  # of each row: its dual; empty for integer problems
    objective: float
    bound: float
    how: How
    seconds: float = 0.0  # wall clock that it took

    @property
    def found(self) -> bool:
        """True if there is anything to go by."""
        return len(self.x) > 0


_NOTHING = Solution(np.zeros(0), np.zeros(0), float("nan"), float("nan"), How.GREEDY)


@dataclass(frozen=True, slots=True)
class Effort:
    """Counts at which HiGHS stops: unlike seconds, they give the same answer on every machine.

    A problem with a target, and a direct one, goes without the heuristic that solves a smaller integer problem
    for reduced costs: on Hops' programs it took a third of the time and found nothing that the others did not.
    A direct one goes without presolve too, which takes most of the time where few steps of the simplex method
    solve the whole.
    """

    nodes: int | None = None  # of the branch-and-bound tree
    iterations: int | None = None  # of the simplex method
    gap: float | None = None  # of an integer problem, relative; None = the solver's own
    target: float | None = None  # of an integer problem: an objective that is good enough
    direct: bool = False  # without presolve: for a problem that is small and nearly whole by itself

    def options(self) -> dict[str, float | int | str]:
        """The limits in HiGHS' words."""
        plain = self.direct or self.target is not None
        named = {
            "mip_max_nodes": self.nodes,
            "simplex_iteration_limit": self.iterations,
            "mip_rel_gap": self.gap,
            "mip_abs_gap": None if self.gap is None else 0.0,
            "objective_target": self.target,
            "mip_heuristic_run_root_reduced_cost": False if plain else None,
            "presolve": "off" if self.direct else None,
        }
        return {name: value for name, value in named.items() if value is not None}


_WITHOUT_A_CLOCK = Effort(nodes=500, iterations=200_000)


def solve(problem: Problem, limit_seconds: float, effort: Effort | None = None) -> Solution:
    """The best x within so many seconds of wall clock; deterministic when it ends in time, or has no such limit.

    HiGHS looks at the clock between the steps of its work and can be seconds late: a caller that must be in
    time has an answer of its own, and somebody who ends the process.
    """
    if limit_seconds <= 0:
        return _NOTHING
    import highspy  # here: it costs a tenth of a second, and clusters with one GPU type never need it

    effort = effort or (Effort() if limit_seconds < np.inf else _WITHOUT_A_CLOCK)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "threads": 1, "random_seed": 0, **effort.options()}
    for option, value in (options | {"time_limit": float(limit_seconds)}).items():
        solver.setOptionValue(option, value)
    if solver.passModel(_as_model(problem)) == highspy.HighsStatus.kError:
        return _NOTHING
    if problem.start is not None:
        known = highspy.HighsSolution()
        known.col_value = problem.start
        solver.setSolution(known)
    solver.run()
    return _read(solver, problem)


def _as_model(problem: Problem) -> highspy.HighsLp:
    import highspy

    model, cells = highspy.HighsLp(), problem.cells
    order = np.lexsort((cells.row, cells.column))
    columns, rows = len(problem.worth), len(problem.least_row)
    model.num_col_, model.num_row_ = columns, rows
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = problem.worth
    model.col_lower_, model.col_upper_ = np.zeros(columns), problem.most
    model.row_lower_, model.row_upper_ = problem.least_row, problem.most_row
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = np.searchsorted(cells.column[order], np.arange(columns + 1)).astype(np.int32)
    matrix.index_ = cells.row[order].astype(np.int32)
    matrix.value_ = cells.value[order]
    if problem.whole is not None:
        kinds = highspy.HighsVarType
        model.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in problem.whole]
    return model


def _read(solver: highspy.Highs, problem: Problem) -> Solution:
    import highspy

    status, info, found = solver.getModelStatus(), solver.getInfo(), solver.getSolution()
    seconds, linear = float(solver.getRunTime()), problem.whole is None
    ended = status == highspy.HighsModelStatus.kOptimal
    objective = float(info.objective_function_value)
    bound = float(info.mip_dual_bound) if not linear else objective if ended else float("nan")
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return Solution(np.zeros(0), np.zeros(0), float("nan"), bound, How.GREEDY, seconds)
    x = np.array(found.col_value, dtype=np.float64)
    price = np.array(found.row_dual, dtype=np.float64) if linear and ended else np.zeros(0)
    return Solution(x, price, objective, bound, How.EXACT if ended else How.FEASIBLE, seconds)
