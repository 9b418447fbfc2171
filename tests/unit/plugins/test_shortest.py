"""Shortest remaining time, shortest remaining service, shortest job."""

from __future__ import annotations

import pytest

from slurm_fair.policy import Policy
from slurm_fair_plugins.shortest import ShortestJob, ShortestRemaining, ShortestRemainingService
from tests.support.builders import job
from tests.support.rounds import Play

# Three jobs for one node: 1 is short but wide, 2 is long and narrow, 3 lies between.
JOBS = [job(1, gpus=8), job(2, gpus=1), job(3, gpus=4)]
DECLARED = {"1": 1000.0, "2": 6000.0, "3": 3000.0}
FIRST: list[tuple[str, Policy, set[str]]] = [
    ("the least time first", ShortestRemaining(), {"1"}),
    ("the least GPU time first, 6,000 before 8,000 and 12,000", ShortestRemainingService(), {"2", "3"}),
    ("the least declared time first", ShortestJob(), {"1"}),
]


@pytest.mark.parametrize(("policy", "first"), [f[1:] for f in FIRST], ids=[f[0] for f in FIRST])
def test_chosen_is(policy: Policy, first: set[str]) -> None:
    assert Play(JOBS, {"n1": 8}, declared=DECLARED).round(policy) == first


@pytest.mark.parametrize(
    ("policy", "second"),
    [(ShortestRemaining(), {"2"}), (ShortestRemainingService(), {"2"}), (ShortestJob(), {"1"})],
    ids=["srtf stops the longer one", "srsf stops the bigger one", "sjf stops nobody"],
)
def test_a_shorter_job_comes_later(policy: Policy, second: set[str]) -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1000)], {"n1": 8}, declared={"1": 9000.0, "2": 600.0})
    assert play.play(policy, 2) == [{"1"}, second]


def test_what_is_done_counts() -> None:
    """The longer job is ahead by then: 4,000 s less three leases are fewer than 2,000 s."""
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=3000)], {"n1": 8}, declared={"1": 4000.0, "2": 2000.0})
    assert play.play(ShortestRemaining(), 4) == [{"1"}] * 4


@pytest.mark.parametrize("policy", [ShortestRemaining(), ShortestRemainingService()], ids=["srtf", "srsf"])
def test_what_a_job_of_unknown_length_ran_stands_for_what_it_has_left(policy: Policy) -> None:
    """Job 2 says 2,000 s: job 1 goes first until it has run 2,700 s itself."""
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1)], {"n1": 8}, declared={"2": 2000.0})
    assert play.play(policy, 5) == [{"1"}, {"1"}, {"1"}, {"2"}, {"2"}]


def test_a_job_of_unknown_length_that_cannot_be_stopped_comes_last() -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1)], {"n1": 8}, declared={"2": 90_000.0})
    assert play.round(ShortestJob()) == {"2"}
