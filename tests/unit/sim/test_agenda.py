"""The agenda of a virtual cluster: what is due, in order of time."""

from __future__ import annotations

from math import inf

import pytest

from slurm_fair.sim.world.agenda import Agenda, Due
from slurm_fair.sim.world.columns import JobColumns


@pytest.fixture
def jobs() -> JobColumns:
    columns = JobColumns()
    columns.add(2)
    return columns


def test_the_earliest_is_due_first_and_of_one_instant_the_first_noted(jobs: JobColumns) -> None:
    agenda = Agenda(jobs)
    for instant, what, job in ((9.0, Due.END, 0), (5.0, Due.STARTS, 1), (5.0, Due.OPENS, 0)):
        agenda.expect(instant, what, job)
    assert agenda.next_event() == 5.0
    assert [agenda.pop(), agenda.pop(), agenda.pop()] == [(Due.STARTS, 1), (Due.OPENS, 0), (Due.END, 0)]
    assert agenda.next_event() == inf


def test_what_was_expected_of_an_earlier_run_is_dropped(jobs: JobColumns) -> None:
    agenda = Agenda(jobs)
    agenda.expect(5.0, Due.END, 0)
    agenda.expect(7.0, Due.LIMIT, 0)
    agenda.expect(8.0, Due.END, 1)
    jobs.runs[0] += 1
    assert agenda.pop() is None
    assert agenda.next_event() == 8.0
    assert agenda.pop() == (Due.END, 1)
