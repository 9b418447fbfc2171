"""Jobs that came, counted for what may come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair_plugins.fair import Fair
from slurm_fair_plugins.fair.arrivals import Arrivals
from tests.support.builders import job
from tests.support.fair_plays import (
    HOUR,
)
from tests.support.rounds import Play


def test_jobs_are_counted_once_and_forgotten_after_so_many_hours() -> None:
    jobs = [job(base, gpus=8, submit=100.0 * base) for base in range(1, 6)]
    play = Play(jobs, {"n1": 8}, declared={str(base): 100 * HOUR for base in range(1, 6)})
    counts = []
    for _ in range(4):
        seen = play.seen()
        counts.append(Arrivals.of(seen, 24).jobs(seen, 24))
        play.round(Fair())
    assert counts == [5, 5, 5, 5]
    play.finish(1, 2)
    seen = play.seen()
    assert Arrivals.of(seen, 24).jobs(seen, 24) == 5
    later = replace(seen, now=seen.now + 30 * HOUR)
    assert Arrivals.of(later, 24).jobs(later, 24) == 3, "those that are still there count"


def test_a_submission_in_the_future_hides_none_that_come_later() -> None:
    jobs = [job(base, gpus=8, submit=100.0 * base) for base in range(1, 4)]
    play = Play(jobs, {"n1": 8}, declared={str(base): 100 * HOUR for base in range(1, 4)})
    seen = play.seen()
    submit = np.where(seen.snapshot.jobs.record == 1, 1e15, seen.snapshot.jobs.submit)
    table = seen.snapshot.jobs.with_columns(submit=submit)
    known = {"last": 150.0, "at_last": 0, "hour": [0], "jobs": [1]}
    odd = replace(seen, snapshot=replace(seen.snapshot, jobs=table), memory={"came": known})
    assert Arrivals.of(odd, 24).jobs(odd, 24) == 3
