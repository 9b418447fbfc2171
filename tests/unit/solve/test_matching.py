"""Bipartite assignment, AlloX's lines and the makespan of whole jobs, against enumeration."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.solve import How, assignment, first_in_line, shortest_line, whole_makespan
from tests.support import literal

few = settings(max_examples=60, deadline=None)
costs = st.integers(1, 4).flatmap(
    lambda rows: st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=rows, max_size=rows)
)
seconds = st.lists(st.lists(st.integers(1, 30), min_size=2, max_size=2), min_size=1, max_size=5)


@given(costs)
@few
def test_the_assignment_is_the_cheapest(rows: list[list[int]]) -> None:
    cost = np.array(rows, dtype=np.float64)
    answer = assignment(cost)
    cheapest = min(sum(cost[i, j] for i, j in enumerate(p)) for p in permutations(range(4), len(cost)))
    assert answer.objective == cheapest
    assert len(set(answer.column.tolist())) == len(cost)
    assert literal.assignment(cost).objective == pytest.approx(cheapest)


def test_columns_with_room_for_several_take_several() -> None:
    cost = np.array([[1.0, 9.0], [1.0, 9.0], [1.0, 2.0]])
    answer = assignment(cost, np.array([2, 1]))
    assert answer.column.tolist() == [0, 0, 1]
    assert answer.objective == literal.assignment(cost, np.array([2, 1])).objective == 4.0


def test_rows_that_fit_nowhere_are_left_out() -> None:
    cost = np.array([[np.inf, np.inf], [3.0, np.inf], [1.0, np.inf]])
    answer = assignment(cost)
    assert answer.column.tolist() == [-1, -1, 0]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_nothing_to_assign(shape: tuple[int, int]) -> None:
    assert assignment(np.ones(shape)).column.tolist() == [-1] * shape[0]


def test_late_assignments_are_greedy() -> None:
    cost = np.random.default_rng(0).uniform(1, 9, (20, 20))
    answer = assignment(cost, limit_seconds=0.0)
    assert answer.how is How.GREEDY
    assert sorted(answer.column.tolist()) == list(range(20))
    assert answer.objective >= assignment(cost).objective


@given(seconds, st.tuples(st.integers(0, 2), st.integers(0, 2)))
@few
def test_the_lines_have_the_least_sum_of_completion_times(rows: list[list[int]], machines: Any) -> None:
    table, count = np.array(rows, dtype=np.float64), np.array(machines, dtype=np.int64)
    now, matching = first_in_line(table, count)
    if not count.any():
        assert (now == -1).all()
        return
    assert matching.objective == pytest.approx(_best_sum(table, machines))
    for kind in range(2):
        here = (matching.column >= 0) & (matching.column % 2 == kind)
        assert (now == kind).sum() == min(here.sum(), count[kind])


def _best_sum(table: Any, machines: tuple[int, int]) -> float:
    """The least sum over every machine for every job; on one machine the shortest go first."""
    kinds = [kind for kind, count in enumerate(machines) for _ in range(count)]
    best = np.inf
    for where in product(range(len(kinds)), repeat=len(table)):
        total = 0.0
        for machine, kind in enumerate(kinds):
            line = sorted((table[job, kind] for job, at in enumerate(where) if at == machine), reverse=True)
            total += sum(place * time for place, time in enumerate(line, 1))
        best = min(best, total)
    return float(best)


def test_on_one_type_the_shortest_run_first() -> None:
    table = np.array([[9.0], [1.0], [5.0], [3.0], [7.0]])
    now, matching = first_in_line(table, np.array([2]))
    assert np.flatnonzero(now == 0).tolist() == [1, 3]
    assert matching.how is How.EXACT


@given(seconds)
@few
def test_whole_jobs_end_as_early_as_any_choice_of_types_lets_them(rows: list[list[int]]) -> None:
    table, capacity = np.array(rows, dtype=np.float64), np.array([2.0, 1.0])
    gang = np.ones(len(table))
    answer = whole_makespan(table, gang, capacity)
    lengths = []
    for kinds in product(range(2), repeat=len(table)):
        load = [sum(table[j, k] for j, k in enumerate(kinds) if k == kind) for kind in range(2)]
        longest = max(table[j, k] for j, k in enumerate(kinds))
        lengths.append(max(longest, load[0] / 2.0, load[1]))
    assert answer.objective == pytest.approx(min(lengths), rel=1e-6)


def test_a_job_that_fits_no_type_is_left_out_of_the_makespan() -> None:
    table, gang = np.array([[4.0, 8.0], [4.0, 4.0]]), np.array([9.0, 1.0])
    answer = whole_makespan(table, gang, np.array([2.0, 1.0]))
    assert answer.column.tolist() == [-1, 0]


def test_late_makespans_are_longest_first() -> None:
    rng = np.random.default_rng(1)
    table, gang, capacity = rng.uniform(1, 9, (30, 2)), np.ones(30), np.array([4.0, 4.0])
    late = whole_makespan(table, gang, capacity, limit_seconds=0.0)
    assert late.how is How.GREEDY
    assert late.column.tolist() == shortest_line(table, gang, capacity).tolist()
    assert late.objective >= whole_makespan(table, gang, capacity).objective - 1e-9
