"""Sizes of elastic jobs."""

import numpy as np

from slurm_fair.model import Sizes


def some() -> Sizes:
    """Job 1 of three runs with 2, 4 or 8 GPUs, usually with 4."""
    return Sizes(np.array([1, 1, 1]), np.array([2, 4, 8]), np.array([False, True, False]))


def test_a_rigid_job_has_the_size_of_its_gang() -> None:
    every = Sizes.of(np.array([1, 4, 3]), some())
    assert every.row.tolist() == [0, 1, 1, 1, 2]
    assert every.gpus.tolist() == [1, 2, 4, 8, 3]
    assert every.usual.tolist() == [True, False, True, False, True]


def test_without_elastic_jobs_every_job_has_one_size() -> None:
    assert Sizes.of(np.array([5, 6]), None).gpus.tolist() == [5, 6]
    assert Sizes.of(np.array([5, 6]), Sizes.none()).row.tolist() == [0, 1]


def test_only_sizes_of_elastic_jobs_are_allowed() -> None:
    rows, gpus = np.array([0, 1, 1, 1, 2]), np.array([1, 2, 3, 8, 8])
    assert some().allow(rows, gpus).tolist() == [False, True, False, True, False]
    assert Sizes.none().allow(rows, gpus).any() == np.False_


def test_the_usual_size_is_not_the_one_of_the_moment() -> None:
    assert some().usual_gpus(np.array([1, 8, 3])).tolist() == [1, 4, 3]
