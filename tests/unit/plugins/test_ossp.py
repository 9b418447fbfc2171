"""OSSP: all jobs done as early as can be."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair_plugins.ossp import Ossp
from tests.support.builders import job, node
from tests.support.told_play import ToldPlay


def ends(play: ToldPlay, policy: Ossp, rounds: int = 400) -> dict[str, float]:
    """The second at which each job had done all of its work."""
    end: dict[str, float] = {}
    for _ in range(rounds):
        play.round(policy)
        for label in sorted(play.on):
            if play.ran[label] >= play.left[label]:
                end[label] = play.now - play.term
                play.finish(int(label))
        if not play.jobs:
            return end
    raise AssertionError(f"jobs are left: {play.jobs}")


@pytest.mark.parametrize("whole", [False, True])
def test_the_last_job_ends_when_the_open_shop_does(whole: bool) -> None:
    """The lower bound is the longest job or all work over all GPUs; rounds cost a few leases more."""
    rng = np.random.default_rng(5)
    jobs = [job(base, gpus=int(rng.choice([1, 1, 2, 4]))) for base in range(1, 21)]
    left = {str(j.base): float(rng.integers(5, 60) * 900) for j in jobs}
    bound = max(max(left.values()), sum(j.gpus * left[str(j.base)] for j in jobs) / 8)
    play = ToldPlay(jobs, {f"n{i}": 1 for i in range(8)}, left=left)
    last = max(ends(play, Ossp(whole=whole, reset_seconds=0)).values())
    assert bound <= last <= 1.1 * bound


def test_a_job_that_sets_the_makespan_hardly_ever_waits() -> None:
    jobs = [job(base) for base in range(1, 6)]
    left = {str(base): 9_000.0 for base in range(1, 5)} | {"5": 90_000.0}
    play = ToldPlay(jobs, {"n1": 2}, left=left)
    runs = play.play(Ossp(), 40)
    assert sum("5" in ran for ran in runs) >= 38


def test_whole_jobs_stay_on_the_type_that_was_chosen() -> None:
    nodes = {"f": node(1, gpu_type="fast"), "s": node(1, gpu_type="slow")}
    rates = {"1": (1.0, 0.9), "2": (1.0, 0.1), "3": (1.0, 0.9)}
    play = ToldPlay([job(1), job(2), job(3)], nodes, left={"1": 5e3, "2": 6e3, "3": 1e3}, rates=rates)
    for _ in range(6):
        play.round(Ossp(whole=True))
        assert play.on.get("2", {"f": 1}) == {"f": 1}
        assert play.on.get("1", {"s": 1}) == {"s": 1}
