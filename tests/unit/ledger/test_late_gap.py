"""A gap is filled after looks have gone on: what had been owed, and who came and went."""

from __future__ import annotations

import pytest

from slurm_fair.ledger import Gap, LedgerSettings, advance, fill_late
from slurm_fair.model import JobState, Ledger, RunTable, Unfilled
from slurm_fair.model.ids import pack
from tests.support.builders import job, run, runs, snapshot
from tests.support.ledger_watch import Watch

RUNNING = JobState.RUNNING


def filled_late(watch: Watch, before: Ledger, said: RunTable, at: float) -> list[tuple[str, int]]:
    """The watch's ledger is filled; the kinds and jobs of the events."""
    shown = [job(1, gpus=4, submit=1000, state=RUNNING, start=1000)]
    look = snapshot(time=at, nodes={"n1": 8}, jobs=shown)
    watch.ledger, events = fill_late(watch.ledger, Unfilled(before, look), Gap(said, at), watch.settings)
    return [(event.kind, event.key) for event in events]


def looked_after_a_gap(closed_memory_seconds: float = 21_600.0) -> tuple[Watch, Ledger]:
    watch = Watch()
    watch.settings = LedgerSettings(closed_memory_seconds=closed_memory_seconds)
    one = job(1, gpus=4, submit=1000, state=RUNNING, start=1000)
    watch.look(1010, one)
    before = watch.ledger
    for time in (1100, 1110, 1200):
        watch.look(time, one)
    return watch, before


def test_a_tenant_of_whom_no_look_tells_is_charged_and_owed_its_share() -> None:
    watch, before = looked_after_a_gap()
    said = runs(run(2, 1030, 1050, tenant="b", gpus=8, submit=1020), run(1, 1000, 0, gpus=4, submit=1000))
    told = filled_late(watch, before, said, 1100)
    assert told == [("submitted", pack(2)), ("started", pack(2)), ("finished", pack(2))]
    assert (watch.of_tenant("b", "had"), watch.of_tenant("b", "owed_demand")) == (160, 30 * 4)
    assert watch.of_tenant("b", "last_job") == 1050
    assert (watch.of_tenant("a", "had"), watch.of_job(1, "had")) == (800, 800)
    assert watch.of_tenant("a", "owed_demand") == 800


def test_what_the_ledger_has_forgotten_since_is_charged_once() -> None:
    watch, before = looked_after_a_gap(closed_memory_seconds=20.0)
    said = runs(run(2, 1030, 1050, gpus=2, submit=1020), run(3, 1005, 1012, gpus=2, submit=1004))
    assert watch.ledger.closed.since > 1050
    filled_late(watch, before, said, 1100)
    assert watch.of_tenant("a", "had") == 800 + 40 + 14
    assert watch.ledger.closed.since > 1050
    had = watch.ledger.tenants.had.tolist()
    watch.look(1210, job(1, gpus=4, submit=1000, state=RUNNING, start=1000))
    assert watch.ledger.tenants.had.tolist() == [had[0] + 40]


def test_a_job_that_looks_know_since_its_requeue_has_what_it_had_before() -> None:
    watch = Watch()
    watch.look(1010)
    before = watch.ledger
    requeued = job(1, gpus=4, submit=1050, restarts=1, state=RUNNING, start=1060)
    for time in (1100, 1200):
        watch.look(time, requeued)
    look = snapshot(time=1100, nodes={"n1": 8}, jobs=[requeued])
    said = runs(run(1, 1030, 1050, gpus=4, submit=1020, requeued=True), run(1, 1060, 0, gpus=4, submit=1050))
    ledger = fill_late(watch.ledger, Unfilled(before, look), Gap(said, 1100)).ledger
    jobs = ledger.jobs
    assert (jobs.submit.tolist(), jobs.had.tolist()) == ([1020], [4 * (20 + 140)])
    assert (jobs.ran.tolist(), jobs.waited.tolist()) == ([160], [20])
    assert jobs.owed.tolist() == [4 * 180]
    assert ledger.tenants.had.tolist() == [4 * 160]


def test_a_job_that_lives_for_accounting_alone_is_nobodys() -> None:
    watch, before = looked_after_a_gap()
    said = runs(run(2, 1030, 0, tenant="b", gpus=8, submit=1020), run(3, 0, 0, tenant="b", submit=1020))
    assert filled_late(watch, before, said, 1100) == []
    assert (watch.of_tenant("b", "had"), watch.of_tenant("b", "owed_quota")) == (0, 0)


def test_what_happened_since_the_look_takes_nothing_of_what_was_owed() -> None:
    """A job that was requeued, another that was resized and a third that came, before accounting answered."""
    watch = Watch()
    two = job(2, tenant="b", gpus=4, on={}, submit=1005, state=RUNNING, start=1005)
    watch.look(1010, two)
    before, owed = watch.ledger, {}
    first = job(1, gpus=8, on={}, submit=1020, state=RUNNING, start=1030)
    look = snapshot(time=1100, nodes={"n1": 8}, jobs=[first, two])
    then = [run(1, 1030, 0, gpus=8, submit=1020), run(2, 1005, 0, tenant="b", gpus=4, submit=1005)]
    since = [
        run(1, 1030, 1150, gpus=8, submit=1020, requeued=True),
        run(1, 1160, 0, gpus=8, submit=1150),
        run(2, 1005, 1170, tenant="b", gpus=4, submit=1005, requeued=True),
        run(2, 1170, 0, tenant="b", gpus=2, submit=1005),
        run(3, 1155, 0, tenant="b", gpus=2, submit=1152),
    ]
    for said in (then, since):
        watch.ledger = before
        watch.look(1100, first, two)
        watch.look(1140, first, two)
        watch.ledger, events = fill_late(watch.ledger, Unfilled(before, look), Gap(runs(*said), 1200))
        assert events == ()
        owed[len(said)] = [watch.of_tenant(name, "owed_quota") for name in "ab"] + [watch.of_job(1, "owed")]
    assert owed[2] == owed[5] == [120 * 4, 8 * 15 + 120 * 4, 120 * 4]


@pytest.mark.parametrize("ends", [1115.0, 1099.0])
def test_a_run_that_ended_after_the_gap_and_is_forgotten_is_charged_once(ends: float) -> None:
    """Slurm tells whole seconds: the look may show a run whose end it tells as earlier."""
    watch, before = looked_after_a_gap(closed_memory_seconds=20.0)
    look = snapshot(time=1100, nodes={"n1": 8}, jobs=[job(1, gpus=4, submit=1000, state=RUNNING, start=1000)])
    watch.ledger, _ = advance(before, look, watch.settings)
    watch.look(1120, job(1, gpus=4, submit=1000, state=JobState.DONE, start=1000, end=ends, on={}))
    for time in (1130, 1150, 1200, 1300):
        watch.look(time)
    assert watch.ledger.closed.since > 1200
    had = watch.of_tenant("a", "had")
    said = runs(run(1, 1000, ends, gpus=4, submit=1000))
    filled = fill_late(watch.ledger, Unfilled(before, look), Gap(said, 1250), watch.settings).ledger
    assert filled.tenants.had.tolist() == [had]
