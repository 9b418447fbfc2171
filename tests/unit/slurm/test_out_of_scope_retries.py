"""Marks of ours on a job that is not managed, and that Slurm refuses to take away."""

from __future__ import annotations

from itertools import pairwise

from slurm_fair.daemon.log import act_line
from slurm_fair.model import Action, Outcome, Result, Verb
from slurm_fair.model.ids import pack
from slurm_fair.slurm.ownership.out_of_scope import REST_MOST_SECONDS, StrayRetries


def act(job: int, task: int = -1) -> Action:
    return Action(Verb.FREE, pack(job, task), job + 90, 1.0, 0)


def tries(
    retries: StrayRetries, seconds: range, why: str = "Access/permission denied"
) -> tuple[list[int], list[str]]:
    """The instants at which a stray was tried, and what was said, with a look a second that finds it each time."""
    tried, said = [], []
    for now in seconds:
        found = retries.without([act(7)], float(now))
        if found:
            tried.append(now)
        said += retries.heed([Outcome(each, Result.REFUSED, why) for each in found], float(now))
    return tried, said


def test_a_refused_stray_is_tried_later_and_later_still_and_said_once() -> None:
    tried, said = tries(StrayRetries(), range(200))
    assert tried == [0, 5, 15, 35, 75, 155]
    assert len(said) == 1
    assert "job 7" in said[0]
    assert "Access/permission denied" in said[0]


def test_a_task_is_named_as_slurm_names_it() -> None:
    task = act(7, 3)
    (said,) = StrayRetries().heed([Outcome(task, Result.REFUSED, "no")], 0.0)
    assert said.startswith("job 7_3 ")
    assert act_line(Outcome(task, Result.REFUSED, "no")) == "free 7_3: refused no"


def test_a_clock_that_is_set_back_makes_no_rest_longer() -> None:
    retries = StrayRetries()
    assert tries(retries, range(5000, 5040))[0] == [5000, 5005, 5015, 5035]
    assert tries(retries, range(0, 50))[0] == [36]


def test_the_longest_rest_has_a_bound() -> None:
    tried, _ = tries(StrayRetries(), range(0, 5_000_000, 600))
    assert max(b - a for a, b in pairwise(tried)) <= REST_MOST_SECONDS + 600


def test_another_reason_is_said() -> None:
    retries = StrayRetries()
    tries(retries, range(10))
    assert tries(retries, range(10, 20), "Job can not be altered now")[1] != []


def test_a_stray_that_is_no_longer_found_or_was_freed_begins_anew() -> None:
    retries = StrayRetries()
    tries(retries, range(100))
    assert retries.without([], 100.0) == ()
    assert retries.without([act(7)], 101.0) == (act(7),)
    retries.heed([Outcome(act(7), Result.REFUSED, "no")], 101.0)
    assert retries.without([act(7)], 102.0) == ()
    retries.heed([Outcome(act(7), Result.DONE)], 106.0)
    assert retries.without([act(7)], 106.0) == (act(7),)


def test_a_neighbour_does_not_wait() -> None:
    retries = StrayRetries()
    retries.heed([Outcome(act(7), Result.REFUSED, "no")], 0.0)
    assert retries.without([act(7), act(8)], 1.0) == (act(8),)
