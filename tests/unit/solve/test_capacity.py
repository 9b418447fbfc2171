"""One choice for each job within the GPUs of each kind."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.solve.capacity import CapacityProblem, within_capacity
from slurm_fair.solve.linear import Effort

columns = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(1, 5), st.integers(0, 20)), max_size=8
)


def problem(table: list[tuple[int, int, int, int]], capacity: tuple[int, int]) -> CapacityProblem:
    job, on, gpus, value = np.array(table, dtype=np.int64).reshape(-1, 4).T
    return CapacityProblem(job, on, gpus, value.astype(np.float64), 4, np.array(capacity))


def best(question: CapacityProblem) -> float:
    """The best sum, by trying everything."""
    of_job = [[-1, *np.flatnonzero(question.job == job).tolist()] for job in range(question.jobs)]
    sums = [0.0]
    for choice in product(*of_job):
        chosen = [column for column in choice if column >= 0]
        used = np.bincount(question.on[chosen], question.gpus[chosen], len(question.capacity))
        if (used <= question.capacity).all():
            sums.append(float(question.value[chosen].sum()))
    return max(sums)


@given(columns, st.tuples(st.integers(0, 8), st.integers(0, 8)))
def test_the_choice_is_the_best_of_all(
    table: list[tuple[int, int, int, int]], capacity: tuple[int, int]
) -> None:
    question = problem(table, capacity)
    found = within_capacity(question, Effort(gap=0.0))
    assert found.objective == pytest.approx(best(question))
    chosen = found.column[found.column >= 0]
    assert (question.job[chosen] == np.flatnonzero(found.column >= 0)).all()
    assert (np.bincount(question.on[chosen], question.gpus[chosen], 2) <= question.capacity).all()


def test_without_time_for_a_solver_the_most_valuable_per_gpu_go_first() -> None:
    question = problem([(0, 0, 4, 10), (1, 0, 2, 8), (2, 0, 2, 4)], (4, 0))
    assert within_capacity(question, limit_seconds=0.0).column.tolist() == [-1, 1, 2, -1]
