"""First come, first served."""

from __future__ import annotations

import pytest

from slurm_fair.errors import ConfigError
from slurm_fair_plugins.fifo import Fifo
from tests.support.builders import job
from tests.support.rounds import Play


def test_the_head_of_the_line_blocks_those_who_would_fit() -> None:
    play = Play([job(1, gpus=5), job(2, gpus=4, submit=1), job(3, gpus=1, submit=2)], {"n1": 8})
    assert play.round(Fifo()) == {"1"}
    play.finish(1)
    assert play.round(Fifo()) == {"2", "3"}


def test_nobody_is_stopped_for_one_who_comes_later() -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1)], {"n1": 8})
    assert play.play(Fifo(), 4) == [{"1"}] * 4


def test_a_job_that_was_requeued_keeps_its_place() -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1), job(3, gpus=8, submit=2)], {"n1": 8})
    play.finish(1)
    play.since["2"] = play.now  # Slurm moves the submission time of a requeued job
    assert play.seen().snapshot.jobs.submit.tolist() == [play.now, 2.0]
    assert play.round(Fifo()) == {"2"}


def test_freed_gpus_wait_for_the_next_choice_where_choices_are_rare() -> None:
    """The first choice does not count; the second is at 1,800 s: what comes free by 2,700 s waits for 3,600 s."""
    jobs = [job(1, gpus=8), job(2, gpus=8, submit=1), job(3, gpus=8, submit=2), job(4, submit=1000)]
    rare, play = Fifo(reset_seconds=1500.0), Play(jobs, {"n1": 8})
    assert play.play(rare, 2) == [{"1"}, {"1"}]
    play.finish(1)
    assert play.play(rare, 2) == [set(), {"2"}]


def test_a_negative_time_between_choices_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy\.fifo\.reset_seconds = "):
        Fifo(reset_seconds=-1.0)
