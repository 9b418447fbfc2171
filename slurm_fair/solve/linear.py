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


def solve(problem: Problem, limit_seconds: float) -> Solution:
    """The best x within so many seconds of wall clock; deterministic when it ends in time."""
    if limit_seconds <= 0:
        return _NOTHING
    import highspy  # here: it costs a tenth of a second, and clusters with one GPU type never need it

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(option, value)
    solver.setOptionValue("time_limit", float(limit_seconds))
    if solver.passModel(_as_model(problem)) == highspy.HighsStatus.kError:
        return _NOTHING
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
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return _NOTHING
    x = np.array(found.col_value, dtype=np.float64)
    objective, seconds = float(info.objective_function_value), float(solver.getRunTime())
    if status == highspy.HighsModelStatus.kOptimal:
        bound = objective if problem.whole is None else float(info.mip_dual_bound)
        price = np.array(found.row_dual, dtype=np.float64) if problem.whole is None else np.zeros(0)
        return Solution(x, price, objective, bound, How.EXACT, seconds)
    bound = float("nan") if problem.whole is None else float(info.mip_dual_bound)
    return Solution(x, np.zeros(0), objective, bound, How.FEASIBLE, seconds)
