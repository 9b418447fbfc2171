"""Nobody is charged twice, and nobody for another: polls, accounting, and what is forgotten of both."""

from __future__ import annotations

import pytest

from slurm_fair.ledger import (
    ActiveSpans,
    ClusterInWindow,
    LedgerSettings,
    advance,
    fill_gap,
    settle,
)
from slurm_fair.ledger.charging.shares import integrate_over_changes
from slurm_fair.model import JobState, Ledger
from slurm_fair.model.ids import pack
from tests.support.builders import JobSpec, RunSpec, job, run, runs, snapshot
from tests.support.ledger_watch import BEGAN, Watch
from tests.support.outcome_rows import floats

RUNNING, DONE = JobState.RUNNING, JobState.DONE


class Books:
    """A ledger that began at 1000, on 8 GPUs."""

    def __init__(self, closed_memory_seconds: float = 21_600.0) -> None:
        self.settings = LedgerSettings(closed_memory_seconds=closed_memory_seconds)
        self.ledger = Ledger.new(BEGAN)
        self.look(BEGAN)

    def look(self, time: float, *jobs: JobSpec) -> None:
        self.ledger, _ = advance(self.ledger, snapshot(time=time, nodes={"n1": 8}, jobs=jobs), self.settings)

    def settle(self, *said: RunSpec) -> float:
        """Settle with accounting, now; GPU-seconds moved."""
        self.ledger, moved = settle(self.ledger, runs(*said), self.ledger.time)
        return moved

    def fill(self, until: float, *said: RunSpec) -> None:
        self.ledger = fill_gap(self.ledger, runs(*said), until, self.settings).ledger

    def had(self, column: str = "had") -> dict[str, float]:
        """GPU-seconds of the tenants."""
        tenants = self.ledger.tenants
        return dict(zip(tenants.names, getattr(tenants, column).tolist(), strict=True))

    def of_job(self, base: int, column: str) -> float:
        """GPU-seconds of a job that lives."""
        row = self.ledger.jobs.key.tolist().index(pack(base))
        return float(getattr(self.ledger.jobs, column)[row])


def test_a_job_that_is_met_anew_ran_since_its_start_and_its_tenant_is_charged_once() -> None:
    """One look does not list it: its run is closed, and opened again at the next."""
    books = Books()
    here = job(1, gpus=2, submit=1000, state=RUNNING, start=1000)
    for time, shown in ((1010, [here]), (1020, []), (1030, [here])):
        books.look(time, *shown)
    assert (books.of_job(1, "ran"), books.of_job(1, "waited")) == (30, 0)
    assert (books.of_job(1, "had"), books.had()) == (60, {"a": 60})


def test_what_accounting_told_of_first_counts_once_in_the_seconds_of_a_job_that_is_known() -> None:
    books = Books()
    books.look(1010, job(1, gpus=2, submit=1000))
    books.settle(run(1, 1002, 1008, gpus=2, submit=1000, requeued=True))
    books.look(1020, job(1, gpus=2, submit=1000, state=RUNNING, start=1002))
    assert (books.of_job(1, "ran"), books.of_job(1, "waited")) == (18, 2)
    assert books.had() == {"a": 36}


def test_of_closed_runs_the_old_ones_are_forgotten_and_the_new_ones_kept() -> None:
    books = Books(closed_memory_seconds=100)
    books.look(1010, job(1, gpus=2, submit=1000, state=DONE, start=1000, end=1010))
    books.look(1190, job(2, gpus=2, submit=1000, state=RUNNING, start=1180))
    for time in (1200, 1280, 1440):
        books.look(time)
    assert books.ledger.closed.key.tolist() == []
    books.look(1450, job(3, gpus=2, submit=1440, state=DONE, start=1440, end=1450))
    books.look(1520)
    assert books.ledger.closed.key.tolist() == [pack(3)]
    assert books.settle(run(3, 1440, 1449, gpus=2, submit=1440)) == 2
    assert books.had() == {"a": 20 + 40 + 18}


@pytest.mark.parametrize("polled_end", [1290.0, 1299.75, 1300.25])
def test_a_run_at_the_edge_of_what_is_remembered_is_not_charged_again(polled_end: float) -> None:
    """Slurm's queue and its accounting may tell of ends that differ by seconds."""
    books = Books(closed_memory_seconds=100)
    books.look(polled_end - 1, job(1, gpus=2, submit=1000, state=RUNNING, start=1000))
    books.look(1400, job(1, gpus=2, submit=1000, state=DONE, start=1000, end=polled_end))
    assert books.ledger.closed.since == 1300
    books.settle(run(1, 1000, 1301, gpus=2, submit=1000))
    assert books.had()["a"] == pytest.approx(602, abs=24)


def test_a_run_that_the_queue_still_shows_is_left_to_the_queue() -> None:
    """Accounting, in whole seconds, has ended it before the look that showed it running."""
    books = Books()
    books.look(1010.7, job(1, gpus=2, submit=1000, state=RUNNING, start=1000))
    said = run(1, 1000, 1010, gpus=2, submit=1000)
    assert books.settle(said) == 0
    books.look(1020, job(1, gpus=2, submit=1000, state=DONE, start=1000, end=1010))
    books.settle(said)
    assert books.had() == {"a": 20}


def test_another_run_of_the_job_that_does_not_overlap_is_charged_beside_it() -> None:
    """Accounting lags behind with the run that was polled, and tells of one that nobody saw."""
    books = Books()
    books.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1000))
    books.look(1020, job(1, gpus=2, submit=1010, restarts=1))
    assert books.had() == {"a": 20}
    assert books.settle(run(1, 1012, 1018, gpus=2, submit=1010, requeued=True)) == 12
    assert books.had() == {"a": 32}


def test_a_run_whose_account_was_changed_is_settled_with_whom_it_was_charged_to() -> None:
    books = Books()
    books.look(1010, job(1, gpus=2, tenant="a", submit=1000, state=RUNNING, start=1000))
    books.look(1020)
    assert books.had() == {"a": 40}
    books.settle(run(1, 1000, 1013, gpus=2, tenant="b", submit=1000))
    assert books.had() == {"a": 26, "b": 0}


def test_each_tenant_pays_for_a_run_while_it_was_its_own() -> None:
    books = Books()
    books.look(1010, job(1, gpus=2, tenant="a", submit=1000, state=RUNNING, start=1000))
    books.look(1020, job(1, gpus=2, tenant="b", submit=1000, state=RUNNING, start=1000))
    books.look(1030, job(1, gpus=2, tenant="b", submit=1000, state=DONE, start=1000, end=1030))
    books.settle(run(1, 1000, 1030, gpus=2, tenant="b", submit=1000))
    assert books.had() == {"a": 40, "b": 20}


def test_an_earlier_bearer_of_an_id_leaves_nothing_to_the_later_one() -> None:
    books = Books()
    books.look(1010, job(1, gpus=2, tenant="a", submit=1000, state=DONE, start=1000, end=1008))
    books.look(1020, job(1, gpus=4, tenant="b", submit=1015))
    assert books.settle(run(1, 1000, 1006, gpus=2, tenant="a", submit=1000)) == 4
    assert (books.of_job(1, "had"), books.of_job(1, "ran"), books.of_job(1, "waited")) == (0, 0, 5)
    assert books.had() == {"a": 12, "b": 0}


def test_a_change_of_m_at_the_very_beginning_of_a_window_counts_in_all_of_it() -> None:
    claims = ActiveSpans(floats(0).astype(int), floats(8), floats(1), floats(0), floats(100))
    cluster = ClusterInWindow(8.0, floats(1), floats(0))
    owed = integrate_over_changes(claims, cluster, ((10.0, 4), (15.0, 6)), 10.0, 20.0, LedgerSettings())
    assert owed.quota.tolist() == [4 * 5 + 6 * 5]
    earlier = integrate_over_changes(claims, cluster, ((5.0, 2), (10.0, 4)), 10.0, 20.0, LedgerSettings())
    assert earlier.quota.tolist() == [40]


@pytest.mark.parametrize(
    "said", [run(1, 0.0, 1021, gpus=2, submit=1000), run(1, 1000, 1021, gpus=2, submit=1000)]
)
def test_a_job_that_was_over_before_a_gap_is_not_owed_or_charged_in_it_again(said: RunSpec) -> None:
    """It vanished at 1020, and accounting tells a second later."""
    books = Books()
    state, start = (RUNNING, 1000.0) if said.start else (JobState.WAITING, 0.0)
    books.look(1010, job(1, gpus=2, submit=1000, state=state, start=start))
    books.look(1020)
    owed, had, closed = books.had("owed_demand"), books.had(), len(books.ledger.closed)
    books.fill(1060, said)
    assert books.had("owed_demand") == owed
    assert books.had() == had
    assert len(books.ledger.closed) == closed
    books.settle(said)
    assert books.had() == {"a": 42 if said.start else 0}


@pytest.mark.parametrize("start", [1000.0, 1001.0])
def test_a_run_that_lives_through_a_gap_is_charged_once_though_its_start_was_corrected(start: float) -> None:
    books = Books()
    books.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1000))
    books.fill(1060, run(1, start, 1050, gpus=2, submit=1000))
    books.settle(run(1, start, 1050, gpus=2, submit=1000))
    assert books.had() == {"a": 2 * (1050 - start)}


def test_a_run_without_gpus_in_accounting_stays_as_it_was_seen() -> None:
    """It took all CPUs of its node, and is charged for the GPUs that nobody else could use."""
    books = Books()
    books.look(1010, job(1, gpus=8, submit=1000, state=RUNNING, start=1000))
    books.look(1100, job(1, gpus=8, submit=1000, state=DONE, start=1000, end=1090))
    had = books.had()
    assert had == pytest.approx({"a": 720.0})
    assert books.settle(run(1, gpus=0, start=1000, end=1085)) == 0.0
    assert books.had() == had


def test_settling_moves_the_difference_between_polls_and_accounting_once() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1000))
    watch.look(1020)
    said = runs(run(1, 1000, 1013, gpus=2, submit=1000), run(7, 1004, 1006, gpus=3, tenant="b", submit=1002))
    settled, moved = settle(watch.ledger, said, 1020)
    assert moved == 14 + 6
    assert dict(zip(settled.tenants.names, settled.tenants.had.tolist(), strict=True)) == {"a": 26, "b": 6}
    assert settle(settled, said, 1020)[1] == 0


def test_a_run_that_accounting_told_of_first_is_not_charged_again_when_it_is_seen() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, submit=1000))
    said = runs(run(1, 1002, 1008, gpus=2, submit=1000, requeued=True))
    watch.ledger, moved = settle(watch.ledger, said, 1010)
    assert (moved, watch.of_job(1, "had"), watch.of_job(1, "waited")) == (12, 12, 4)
    watch.look(1020, job(1, gpus=2, submit=1000, state=DONE, start=1002, end=1008))
    assert watch.of_tenant("a", "had") == 12


def test_runs_that_are_forgotten_are_not_settled() -> None:
    watch = Watch()
    watch.settings = LedgerSettings(closed_memory_seconds=100)
    watch.look(1010, job(1, gpus=2, submit=1000, state=DONE, start=1000, end=1010))
    watch.look(1200)
    assert settle(watch.ledger, runs(run(1, 1000, 1009, gpus=2, submit=1000)), 1200)[1] == 0
