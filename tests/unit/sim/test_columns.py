"""Mutable columns of virtual jobs: they grow, and a look of them stays as it was."""

from __future__ import annotations

import numpy as np

from slurm_fair.sim.world.columns import JobColumns, Steady


def test_rows_that_are_added_keep_what_stood_before() -> None:
    jobs = JobColumns(1)
    first = jobs.add(1)
    jobs.gpus[first] = 4
    cells = jobs.cells
    second = jobs.add(3)
    assert (first, second, jobs.count) == (slice(0, 1), slice(1, 4), 4)
    jobs.cells.gpus[3] = 2
    assert jobs.gpus[:4].tolist() == [4, 0, 0, 2]
    assert jobs.gpu_weight[:4].tolist() == [1, 1, 1, 1]
    assert cells is jobs.cells


def test_a_table_that_was_seen_stays_as_it_was() -> None:
    jobs = JobColumns()
    jobs.add(3)
    jobs.usual_gpus[:3] = [1, 2, 3]
    seen = jobs.seen(np.array([0, 2]))
    jobs.restarts[:3] = 7
    assert seen.restarts.tolist() == [0, 0]
    assert seen.usual_gpus.tolist() == [1, 3]
    assert jobs.seen(np.array([1])).restarts.tolist() == [7]
    jobs.add(1)
    jobs.usual_gpus[3] = 9
    assert jobs.seen(np.array([0, 3])).usual_gpus.tolist() == [1, 9]


def test_where_gpus_are_weighed_their_weight_changes_from_look_to_look() -> None:
    weights = []
    for weighed in (True, False):
        jobs = JobColumns(weighed=weighed)
        jobs.add(1)
        jobs.seen(np.array([0]))
        jobs.gpu_weight[0] = 0.5
        weights.append(jobs.seen(np.array([0])).gpu_weight.tolist())
    assert weights == [[0.5], [1.0]]


def test_columns_whose_entries_are_alike_are_cut_and_others_taken() -> None:
    nan = np.full(3, np.nan)
    steady = Steady({"alike": np.array([5, 5, 5]), "differ": np.array([1, 2, 3]), "nan": nan})
    shown = steady.at(np.array([2, 0]))
    assert shown["alike"].tolist() == [5, 5]
    assert shown["differ"].tolist() == [3, 1]
    assert np.isnan(shown["nan"]).tolist() == [True, True]
    assert not shown["alike"].flags.writeable
    again = steady.at(np.array([1, 1]))
    assert again["alike"] is shown["alike"]


def test_progress_is_what_was_done_the_rate_and_since_when() -> None:
    jobs = JobColumns()
    jobs.add(2)
    jobs.done[:2], jobs.rate[:2], jobs.progress_from[:2] = [1, 2], [3, 4], [5, 6]
    assert [column.tolist() for column in jobs.progress(np.array([1]))] == [[4], [6]]


def test_jobs_that_changed_since_the_last_look_are_read_anew() -> None:
    """Two looks at the same jobs: what was written one by one is seen, and the first table stays."""
    jobs = JobColumns()
    jobs.add(4)
    rows = np.array([0, 2, 3])
    first = jobs.seen(rows)
    jobs.cells.restarts[2] += 1
    jobs.cells.restarts[1] = 9  # no look shows it
    jobs.cells.gate_until[3] = 7.0
    second, third = jobs.seen(rows), jobs.seen(rows)
    assert first.restarts.tolist() == [0, 0, 0]
    assert second.restarts.tolist() == [0, 1, 0]
    assert second.gate_until.tolist() == [0.0, 0.0, 7.0]
    assert third.restarts is second.restarts


def test_changes_before_and_after_the_columns_grow_are_seen() -> None:
    jobs = JobColumns(1)
    jobs.add(1)
    rows = np.array([0])
    jobs.seen(rows)
    jobs.cells.gpus[0] = 4
    jobs.add(3)
    assert jobs.seen(rows).gpus.tolist() == [4]
    jobs.cells.restarts[0] = 2
    assert jobs.seen(rows).restarts.tolist() == [2]


def test_a_job_that_nobody_is_shown_may_change() -> None:
    jobs = JobColumns(2)
    jobs.add(2)
    nobody = np.zeros(0, dtype=np.int64)
    jobs.seen(nobody)
    jobs.cells.gpus[1] = 3
    assert len(jobs.seen(nobody)) == 0


def test_what_a_look_showed_cannot_be_written_to() -> None:
    """It is kept for the next look."""
    jobs = JobColumns(2)
    jobs.add(2)
    jobs.usual_gpus[:2] = [1, 2]
    rows = np.array([0, 1])
    shown = jobs.seen(rows)
    jobs.cells.restarts[1] = 1
    for column in (*shown._arrays().values(), *jobs.seen(rows)._arrays().values()):
        assert not column.flags.writeable


def test_tenants_that_have_other_numbers_are_seen_so() -> None:
    jobs = JobColumns(2)
    jobs.add(2)
    jobs.tenant[:2] = [0, 1]
    rows = np.array([0, 1])
    jobs.seen(rows)
    jobs.renumber_tenants(np.array([1, 2]))
    assert jobs.seen(rows).tenant.tolist() == [1, 2]
