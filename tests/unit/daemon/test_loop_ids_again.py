"""Slurmctld begins its ids anew: a job inherits nothing of another one that had its id."""

from __future__ import annotations

import pytest

from tests.support.daemon_bench import Bench
from tests.support.fake_slurm import Work


@pytest.mark.parametrize("restarted", [False, True])
def test_a_plain_job_under_the_id_of_a_leased_one_is_never_asked_or_stopped(
    bench: Bench, restarted: bool
) -> None:
    bench.world.submit(8, "a")
    bench.run(35)
    bench.world.records.clear()
    bench.world._next_number = 1
    plain = bench.world.submit(8, "b", work=Work(1e9, checkpoints=False), stamped=False)
    bench.pass_time(2)
    bench.world.submit(8, "a")
    before = len(bench.acts())
    if restarted:
        bench.restart()
    bench.daemon.once()
    leases = bench.daemon.standing.leases
    assert leases.start.tolist() == [bench.world.records[plain].start]
    assert leases.end[0] >= bench.now + bench.config.lease.term - 5
    bench.run(150)
    assert bench.world.records[plain].restarts == 0
    assert not [act for act in bench.acts()[before:] if "scancel" in act or "requeue" in act]
