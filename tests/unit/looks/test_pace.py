"""The daemon looks again at once for jobs that are left without a gate, and never in a hurry for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from slurm_fair.looks.pace import gates_left, look_seconds, next_look
from slurm_fair.model import JobState, LeasePhase, LeaseTerms, Result, Standing, Verb
from slurm_fair.reconcile import Limits
from slurm_fair.tick import TickDone
from tests.support.daemon_bench import Bench, bench_in, crowd

JOBS = 5


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A full cluster and jobs that wait without gates, of which one look gates two."""
    with bench_in(tmp_path / "s") as made:
        made.world.submit(8, "a")
        made.run(20)
        for _ in range(JOBS):
            made.world.submit(8, "b")
        made.daemon.rules = replace(made.daemon.rules, limits=Limits(closes=2, opens=2, revokes=2))
        yield made


def closed(done: TickDone) -> int:
    assert done.record is not None
    return sum(o.action.verb is Verb.CLOSE and o.result is Result.DONE for o in done.record.outcomes)


def test_jobs_that_are_left_without_a_gate_have_the_next_look_at_once(bench: Bench) -> None:
    gates = []
    for _ in range(3):
        gates.append(closed(bench.daemon.once()))
        soon = bench.daemon.next_look(bench.now) - bench.now
        assert (soon < 0.1) is (sum(gates) < JOBS)
        bench.pass_time(0.05)
    assert gates == [2, 2, 1]


def test_gates_that_slurm_refuses_are_not_tried_again_at_once(bench: Bench) -> None:
    record = bench.daemon.once().record
    assert record is not None
    assert gates_left(record)
    refused = tuple(o._replace(result=Result.REFUSED, later=True) for o in record.outcomes)
    assert not gates_left(record._replace(outcomes=refused))


def test_renewals_that_are_left_wait_for_the_next_interval(bench: Bench) -> None:
    record = bench.daemon.once().record
    assert record is not None
    jobs = record.snapshot.jobs
    gated = replace(record.snapshot, jobs=jobs.with_columns(gated=jobs.state == JobState.WAITING))
    assert not gates_left(record._replace(snapshot=gated))


def test_a_look_that_fails_after_gates_were_left_is_followed_by_no_hurry(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.daemon.once()
    assert bench.daemon.gates_left
    monkeypatch.setattr(bench.journal, "check_there", lambda: 1 / 0)
    bench.daemon.once()
    assert bench.daemon.next_look(bench.now) == bench.now + 10.0


def test_the_seconds_of_acts_lengthen_no_pause(bench: Bench) -> None:
    record = bench.daemon.once().record
    assert record is not None
    acted = record._replace(seconds={"observe": 0.2, "act": 2.5})
    assert look_seconds(acted, 3.0) == pytest.approx(0.5)


def test_it_looks_when_a_grace_ends(tmp_path: Path) -> None:
    with bench_in(tmp_path / "s") as bench:
        crowd(bench)
        bench.run(60 - bench.now % 60 + 1.5)
        leases = bench.daemon.standing.leases
        asked = leases.asked[leases.phase == LeasePhase.REVOKING]
        assert asked.min() > 0
        bench.daemon.last_look_seconds = 30.0
        bench.daemon.standing = bench.daemon.standing._replace(
            leases=leases.with_columns(end=leases.end + 1e6)
        )
        assert bench.daemon.next_look(bench.now) == asked.min() + bench.config.lease.grace


def test_a_clock_that_is_set_back_in_a_tick_delays_the_next_look_by_no_more_than_an_interval() -> None:
    terms, now = LeaseTerms(term=60.0, interval=10.0), 5000.0
    assert next_look(Standing.new(now), terms, now + 3600.0, now) == now + terms.interval
