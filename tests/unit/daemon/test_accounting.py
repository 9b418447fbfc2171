"""The daemon beside an accounting that is slow, silent, late or wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from threading import Event as Bell

import numpy as np
import pytest

from slurm_fair.daemon import accounting
from slurm_fair.model import Blind, JobState, RunTable
from slurm_fair.model.ids import pack
from tests.support.daemon_bench import Bench, lines, run_table


def had(bench: Bench) -> dict[str, float]:
    tenants = bench.daemon.standing.ledger.tenants
    return dict(zip(tenants.names, tenants.had.tolist(), strict=True))


def running(job: int, tenant: str, gpus: int, start: float) -> RunTable:
    """A run of which accounting knows no end."""
    return run_table((job, tenant, gpus, start, 0.0)).with_columns(
        state=np.full(1, JobState.RUNNING, dtype=np.int8)
    )


@pytest.fixture
def answers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bell]:
    """Accounting that answers when this rings; nobody waits long for it."""
    bell = Bell()

    def says(start: float, end: float) -> Blind:
        assert bell.wait(30)
        return Blind(end, "sacct did not answer within 20 s")

    monkeypatch.setattr(accounting, "_PATIENCE_SECONDS", 0.05)
    bench.books.says = says
    yield bell
    bell.set()


def test_looks_go_on_while_accounting_hangs(bench: Bench, answers: Bell) -> None:
    bench.world.submit(8, "a")
    bench.run(600)
    assert bench.daemon.standing.tick > 50
    assert len(bench.books.asked) == 1, "one question at a time"
    assert bench.daemon.accounting._slow


def test_one_that_was_slow_and_silent_is_asked_less_and_less_often(bench: Bench, answers: Bell) -> None:
    taken = bench.daemon.accounting
    pauses = []
    for _ in range(6):
        bench.run(3000)
        answers.set()
        question = taken._question
        assert question is not None
        assert question.is_over(30.0, lambda: None)
        bench.daemon.settle_accounts()
        answers.clear()
        pauses.append(taken._pause)
    assert pauses == [120, 240, 480, 960, 960, 960]
    bench.books.says = lambda start, end: run_table()
    bench.daemon.settle_accounts()
    assert (taken._pause, taken._slow) == (60, False)


def test_a_heartbeat_is_left_while_an_answer_is_waited_for() -> None:
    beats: list[int] = []
    question = accounting._Question(0.0, 0.0, 0.0)
    assert not question.is_over(0.6, lambda: beats.append(1))
    assert len(beats) >= 2


def test_a_run_of_which_accounting_lost_the_end_is_charged_at_no_start(bench: Bench) -> None:
    bench.world.submit(4, "a")
    bench.run(30)
    lost = running(999, "b", 4, bench.now)
    bench.run(100)
    bench.books.says = lambda start, end: lost
    for _ in range(2):
        bench.pass_time(60)
        bench.restart().catch_up()
        bench.run(100)
        assert had(bench).get("b", 0.0) == 0.0
    assert not list(bench.journal.events(keys=[pack(999)]))


def test_a_job_that_began_without_us_and_runs_is_charged_from_its_start(bench: Bench) -> None:
    bench.run(30)
    gone = bench.now
    bench.pass_time(100)
    job = bench.world.submit(4, "b")
    bench.pass_time(1)
    record = bench.world.record(job)
    bench.pass_time(100)
    runs = running(job, "b", 4, record.start)
    bench.books.says = lambda start, end: replace(runs, submit=np.array([record.submit]))
    bench.restart().catch_up()
    bench.run(5)
    told = [event.kind for event in bench.journal.events(gone, keys=[pack(job)])]
    assert told[:2] == ["submitted", "started"]
    assert had(bench)["b"] == pytest.approx(4 * (bench.daemon.standing.ledger.time - record.start))


@pytest.mark.parametrize("late", [False, True])
def test_a_gap_is_filled_when_accounting_answers(bench: Bench, late: bool) -> None:
    bench.world.submit(4, "a")
    bench.run(60)
    gone = bench.now
    bench.pass_time(3600)
    runs = run_table((50, "b", 4, gone + 100, gone + 2500))
    if late:
        bench.books.says = lambda start, end: Blind(end, "sacct: Connection refused")
    else:
        bench.books.says = lambda start, end: runs
    bench.restart().catch_up()
    bench.run(30)
    bench.books.says = lambda start, end: runs
    bench.run(200)
    assert had(bench)["b"] == 4 * 2400
    told = [event.kind for event in bench.journal.events(gone, keys=[pack(50)])]
    assert told == ["submitted", "started", "finished"]


def test_a_gap_of_which_accounting_tells_while_looks_are_blind_is_filled_at_the_first_look(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.world.submit(4, "a")
    bench.run(60)
    gone = bench.now
    bench.pass_time(3600)
    bench.books.says = lambda start, end: Blind(end, "sacct: Connection refused")
    bench.commands.trouble.dead = True
    bench.restart().catch_up()
    bench.run(100)
    bench.books.says = lambda start, end: run_table((50, "b", 4, gone + 100, gone + 2500))
    bench.run(100)
    bench.commands.trouble.dead = False
    bench.run(30)
    assert had(bench)["b"] == 4 * 2400
    assert lines(caplog, "accounting told of")
    assert not lines(caplog, "accounting has not told")
