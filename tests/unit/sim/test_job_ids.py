"""The names and ids of the jobs that a virtual cluster has been given so far."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from slurm_fair.model.ids import labels, pack
from slurm_fair.sim.world.columns import JobColumns
from slurm_fair.sim.world.job_ids import Roster


@pytest.fixture
def jobs() -> JobColumns:
    """Three jobs of a trace, which come at 1, 5 and 5."""
    columns = JobColumns()
    columns.add(3)
    columns.submit[:3] = [1.0, 5.0, 5.0]
    columns.key[:3] = [pack(number) for number in (1, 2, 3)]
    columns.record[:3] = [1, 2, 3]
    return columns


def test_jobs_of_the_trace_come_at_their_times(jobs: JobColumns) -> None:
    roster = Roster(jobs)
    assert (roster.next_arrival, roster.row(pack(1))) == (1.0, -1)
    roster.arrive(4.0)
    assert (roster.living.tolist(), roster.next_arrival, roster.exhausted) == ([0], 5.0, False)
    roster.arrive(5.0)
    assert (roster.living.tolist(), roster.next_arrival, roster.exhausted) == ([0, 1, 2], inf, True)
    assert [roster.row(pack(number)) for number in (1, 3, 4)] == [0, 2, -1]


def test_others_have_numbers_that_nobody_had_before(jobs: JobColumns) -> None:
    roster = Roster(jobs)
    assert roster.name(jobs.add(1), ()) == 4
    assert roster.name(jobs.add(2), (0, 7)) == 5
    assert labels(jobs.key[3:6]) == ["4", "5_0", "5_7"]
    assert jobs.record[3:6].tolist() == [4, 5, 5]
    assert [roster.row(key) for key in jobs.key[3:6].tolist()] == [3, 4, 5]
    assert roster.number() == 6


def test_rows_that_live_stand_in_their_order(jobs: JobColumns) -> None:
    roster = Roster(jobs)
    roster.name(jobs.add(1), ())
    roster.arrive(5.0)
    assert roster.living.tolist() == [0, 1, 2, 3]


def test_a_task_that_goes_its_own_way_gets_a_record_of_its_own(jobs: JobColumns) -> None:
    roster = Roster(jobs)
    roster.split(0)
    record = roster.name(jobs.add(2), (0, 1))
    roster.split(3)
    assert roster.tasks_of(record) == (4,)
    assert jobs.record[3:5].tolist() == [record + 1, record]
    roster.split(0)
    assert jobs.record[0] == 1
    assert roster.tasks_of(99) == ()
    assert np.array_equal(jobs.key[3:5], [pack(record, 0), pack(record, 1)])
