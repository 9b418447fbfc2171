"""A begin time that a user gives a requeued job is kept, also a near one."""

from __future__ import annotations

import pytest

from tests.support.daemon_bench import Bench
from tests.support.fake_slurm import Work


@pytest.mark.parametrize("wish", [60, 200])
def test_a_requeued_job_does_not_start_before_the_time_that_its_user_wants(bench: Bench, wish: float) -> None:
    job = bench.world.submit(8, "a", gate_seconds=1200)
    bench.run(20)
    bench.world.submit(8, "b", work=Work(30.0))
    while not bench.world.record(job).restarts:
        bench.run(1)
    bench.run(5)
    now, wanted = bench.now, float(int(bench.now + wish))
    bench.world.move_begin(job, wanted)
    bench.run(wish + 60)
    starts = [start.time for start in bench.world.starts if start.key == bench.world.record(job).key]
    assert [start for start in starts if now < start < wanted] == []
    assert bench.world.record(job).eligible >= wanted
