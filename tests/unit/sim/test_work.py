"""Progress and speed of virtual jobs."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.sim.world.work import Progress, Regimes, spread_factor

# Job 0 has one regime of 100 s; job 1 has two, of 40 s and 60 s, in which an epoch takes 10 s and 20 s.
REGIMES = Regimes(
    begin=np.array([0.0, 100.0, 140.0]),
    seconds=np.array([100.0, 40.0, 60.0]),
    epochs_before=np.array([0.0, 0.0, 4.0]),
    epoch_seconds=np.array([np.nan, 10.0, 20.0]),
    epochs_total=np.array([np.nan, 7.0, 7.0]),
    steps_per_second=np.array([1.0, 2.0, 3.0]),
    batch_size=np.array([8, 16, 32]),
    adapts=np.array([False, True, True]),
)
FIRST, LAST = np.array([0, 1]), np.array([0, 2])


def progress(*done: float) -> Progress:
    return Progress(REGIMES, FIRST, LAST, np.array(done), np.array([100.0, 100.0]), np.array([200.0, 500.0]))


@pytest.mark.parametrize(("done", "row"), [(0.0, 1), (39.9, 1), (40.0, 2), (100.0, 2), (900.0, 2)])
def test_a_job_is_in_the_regime_of_the_work_that_it_has_done(done: float, row: int) -> None:
    assert REGIMES.at(FIRST, LAST, np.array([done, done])).tolist() == [0, row]
    assert REGIMES.at(FIRST, FIRST, np.array([done, done])).tolist() == [0, 1]


def test_a_job_knows_nothing_of_the_regimes_ahead() -> None:
    early = progress(25.0, 20.0)
    assert early.left_seconds.tolist() == [150.0, (7 - 2) * 10.0]
    assert early.epoch[1] == 2.0
    assert (early.batch_size.tolist(), early.steps_per_second.tolist()) == ([8, 16], [1.0, 2.0])
    late = progress(25.0, 60.0)
    assert (late.epoch[1], late.left_seconds[1]) == (5.0, 40.0)
    assert (late.batch_size[1], late.epochs[1]) == (32, 7)


def test_nothing_is_left_of_a_job_that_has_done_all_and_more() -> None:
    assert progress(120.0, 130.0).left_seconds.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("nodes", "racks", "factor"), [(2, 1, 1.0), (3, 1, 0.5), (2, 2, 1 / (1 + 3.0)), (3, 2, 1 / (1 + 3.0))]
)
def test_a_gang_apart_is_slower_and_across_racks_slower_still(nodes: int, racks: int, factor: float) -> None:
    assert spread_factor(nodes, 2, racks, 0.5) == factor
