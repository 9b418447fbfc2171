"""A job that was freed once is let alone: what keeps it back later is its owner's own, and it is counted once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from slurm_fair.deadman import free_all, watch
from slurm_fair.host.state_folder import not_yet_free
from slurm_fair.model import Blind
from tests.support.deadman_hours import BOTH_GATES, Hours, kept_back, sites

site = pytest.fixture(sites)


def completing(hours: Hours) -> None:
    """A job of ours that completes for long keeps the dead-man trying."""
    running = next(record for record in hours.bench.world.living() if record.state == "RUNNING")
    running.state, running.gone_at = "COMPLETING", hours.now() + 100


def held_when_free(hours: Hours, job: int) -> list[float]:
    """From now on its owner holds the job as soon as it is free, before Slurm has tried to start it."""
    held: list[float] = []

    def each() -> None:
        record = hours.bench.world.record(job)
        if not held and not record.held and record.eligible <= hours.now():
            hours.bench.world.hold(job)
            record.scheduled, record.eligible = record.submit, 0.0
            held.append(hours.now())

    hours.each = each
    return held


def test_a_hold_that_a_job_gets_while_another_is_stuck_stays(site: Callable[[str], Hours]) -> None:
    hours = site("hold")
    late = hours.bench.world.submit(8, "b", hold=True)  # its template's, which no look has seen
    hours.lives = False
    completing(hours)
    held = held_when_free(hours, late)
    assert hours.watched(300) is not None
    assert len(held) == 1
    assert hours.bench.world.record(late).held


def test_each_job_is_counted_once_while_another_is_stuck(site: Callable[[str], Hours]) -> None:
    hours = site("begin")
    hours.lives = False
    completing(hours)
    assert hours.watched(1000) == 2


@pytest.mark.parametrize("once", [False, True], ids=["one that watches", "a timer"])
def test_a_hold_that_a_job_gets_while_the_daemon_is_blind_stays(
    site: Callable[[str], Hours], monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    hours = site("hold")
    bench = hours.bench
    job = bench.world.submit(8, "b", hold=True)
    bench.commands.trouble.late_replies = (
        1  # the answer to the act on it comes too late: its mark is of a hold
    )
    bench.daemon.once()
    monkeypatch.setattr(
        type(bench.daemon.cluster), "observe", lambda self, asked: Blind(bench.now, "squeue: odd")
    )
    hours.due = bench.now
    held = held_when_free(hours, job)
    for _ in range(5):
        if once:
            watch(bench.config, bench.places, hours, once=True)
            hours.sleep_until(hours.now() + 60)
        else:
            hours.watched(60)
    assert len(held) == 1
    assert bench.world.record(job).held


@pytest.mark.parametrize(
    "raw", [{"tres-per-job": "gres:gpu:9999999"}, {"State": "NEW"}, {"Account": "x\x1fy"}]
)
def test_a_job_whose_row_cannot_be_read_is_said_and_freed_when_it_can(
    site: Callable[[str], Hours],
    raw: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("slurm_fair.deadman.read_notices", lambda commands: ())
    hours = site("hold")
    bench = hours.bench
    job = bench.world.submit(8, "b", hold=True)
    bench.world.record(job).raw = raw
    hours.lives = False
    assert hours.watched(300) == 2
    assert f"these jobs may still wait for us (job {job} of " in caplog.text
    assert not_yet_free(bench.places) == (job,)
    bench.journal.close()
    bench.pass_time(60)
    assert watch(bench.config, bench.places, hours, once=True) == 0
    assert not_yet_free(bench.places) == (job,)
    bench.world.record(job).raw = {}
    bench.pass_time(60)
    assert watch(bench.config, bench.places, hours, once=True) == 1
    assert not_yet_free(bench.places) == ()
    assert kept_back(bench) == 0


@BOTH_GATES
def test_a_job_that_is_free_already_is_not_counted_again(site: Callable[[str], Hours], gate: str) -> None:
    hours = site(gate)
    again = hours.bench.config, hours.bench.places, hours
    assert [free_all(*again).freed, free_all(*again).freed] == [2, 0]
