"""A gap in which nobody looked is filled from accounting."""

from __future__ import annotations

import pytest

from slurm_fair.ledger import fill_gap
from slurm_fair.model import Blocked, JobState
from slurm_fair.model.ids import pack
from tests.support.builders import job, run, runs, snapshot
from tests.support.ledger_watch import Watch

RUNNING, WAITING, DONE = JobState.RUNNING, JobState.WAITING, JobState.DONE


@pytest.mark.parametrize(("blocked", "waited"), [(Blocked.NODES, 40), (Blocked.USER_HOLD, 0)])
def test_in_a_gap_a_job_goes_on_waiting_if_it_did(blocked: Blocked, waited: float) -> None:
    watch = Watch()
    for time in (1010, 1020):
        watch.look(time, job(1, gpus=8, submit=1000, blocked=blocked))
    filled = fill_gap(watch.ledger, runs(), 1040).ledger
    started = fill_gap(watch.ledger, runs(run(1, 1030, 0, gpus=8, submit=1000)), 1040).ledger
    assert (filled.jobs.waited.tolist(), filled.jobs.owed.tolist()) == ([waited], [0])
    assert filled.jobs.waits.tolist() == [waited > 0]
    assert started.jobs.waited.tolist() == [max(waited - 10, 0)]


def test_a_gap_is_filled_with_jobs_that_came_and_went() -> None:
    watch = Watch(gpus=8, a=1, b=1)
    watch.look(1010, job(1, tenant="a", gpus=8, submit=1000, state=RUNNING, start=1000))
    said = runs(
        run(1, 1000, 1030, gpus=8, submit=1000, requeued=True),
        run(1, 0, 0, gpus=8, submit=1030),
        run(2, 1030, 1050, tenant="b", gpus=8, submit=1020),
    )
    filled = fill_gap(watch.ledger, said, 1060).ledger
    assert filled.tenants.had.tolist() == [240, 160]
    assert filled.tenants.owed_demand.tolist() == [20 * 8 + 40 * 4, 30 * 4]
    assert (filled.jobs.restarts.tolist(), filled.jobs.waited.tolist()) == ([1], [30])


def test_jobs_that_accounting_does_not_mention_went_on_through_the_gap() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=8, submit=1000, state=RUNNING, start=1000))
    filled = fill_gap(watch.ledger, runs(), 1060).ledger
    assert filled.jobs.had.tolist() == [480]


def test_a_job_that_was_resized_in_the_gap_is_one_job() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=8, submit=1000, state=RUNNING, start=1000))
    said = runs(run(1, 1000, 1030, gpus=8, submit=1000), run(1, 1030, 0, gpus=4, submit=1000))
    filled = fill_gap(watch.ledger, said, 1060).ledger
    assert filled.jobs.key.tolist() == [pack(1)]
    assert (filled.jobs.had.tolist(), filled.jobs.ran.tolist()) == ([30 * 8 + 30 * 4], [60])
    assert filled.tenants.had.tolist() == [30 * 8 + 30 * 4]


def test_a_job_whose_end_accounting_has_lost_is_charged_no_further_than_its_last_end() -> None:
    watch = Watch(gpus=8, a=1, b=1)
    watch.look(1010)
    said = runs(
        run(1, 1020, 1030, gpus=8, submit=1015, requeued=True),
        run(1, 1035, 0, gpus=8, submit=1030),
        run(2, 1040, 0, tenant="b", gpus=8, submit=1015),
        run(3, 0, 0, tenant="b", gpus=8, submit=1015),
        run(4, 1045, 0, tenant="b", gpus=4, submit=1015),
        run(5, 1020, 1030, gpus=8, submit=1012, requeued=True),
    )
    shown = snapshot(
        time=1060,
        nodes={"n1": 8},
        jobs=[
            job(2, tenant="b", gpus=8, submit=900),  # another one with its id
            job(4, tenant="b", gpus=4, submit=1050, restarts=1),  # requeued since
        ],
    )
    filled, events = fill_gap(watch.ledger, said, 1050, shown=shown.jobs)
    assert filled.jobs.key.tolist() == [pack(4)]
    assert filled.tenants.had.tolist() == [160, 20]
    ends = [(event.key, event.time) for event in events if event.kind == "finished"]
    assert ends == [(pack(1), 1030), (pack(5), 1030)]
    assert {event.key for event in events} == {pack(1), pack(4), pack(5)}
