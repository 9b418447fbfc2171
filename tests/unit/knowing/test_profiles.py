"""Jobs that are to be profiled."""

from __future__ import annotations

from slurm_fair.model import Snapshot
from tests.support.reporting import Looks, running, waiting


def profiles(seen: Snapshot) -> tuple[list[int], list[float], list[list[bool]]]:
    """Class, steps and known GPU types of each job that asks to be profiled."""
    assert seen.profiles is not None
    each = seen.profiles
    return each.job_class.tolist(), each.steps.tolist(), each.measured.tolist()


def test_of_jobs_to_be_profiled_it_is_told_where_their_class_was_measured_and_what_they_reported() -> None:
    looks = Looks()
    looks.profiled = True
    jobs = [running(1, on={"a1": 1}), waiting(2), waiting(3, name="other")]
    assert profiles(looks.look(10, jobs)) == ([0, 0, 1], [0, 0, 0], [[False] * 2] * 3)
    for time in (20, 50):
        seen = looks.look(time, jobs, {1: {"step": 5.0 * time, "steps": 1e5}})
    assert profiles(seen) == ([0, 0, 1], [250, 0, 0], [[True, False], [True, False], [False, False]])
    looks = Looks(learns=False)
    looks.profiled = True
    nothing = profiles(looks.look(10, jobs))[2]
    assert nothing == [[True] * 2] * 3, "where nothing is learned there is nothing to measure"
