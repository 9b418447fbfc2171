"""AlloX: who runs first where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.errors import ConfigError
from slurm_fair_plugins.allox import Allox
from tests.support.builders import job, node
from tests.support.told_play import ToldPlay

FAST_AND_SLOW = {"f": node(1, gpu_type="fast"), "s": node(1, gpu_type="slow")}


def test_on_one_type_the_shortest_run_first_and_run_to_their_end() -> None:
    left = {"1": 9e3, "2": 1e3, "3": 5e3, "4": 3e3}
    play = ToldPlay([job(base) for base in range(1, 5)], {"n1": 2}, left=left)
    assert play.play(Allox(alpha=1.0, reset_seconds=0), 3) == [{"2", "4"}] * 3
    play.finish(2)
    assert play.round(Allox(alpha=1.0, reset_seconds=0)) == {"4", "3"}


def test_each_job_goes_where_the_mean_completion_time_is_least() -> None:
    """The first is hardly slower on the slow type, the second is far slower there."""
    rates = {"1": (1.0, 0.9), "2": (1.0, 0.1)}
    play = ToldPlay([job(1), job(2)], FAST_AND_SLOW, left={"1": 1e3, "2": 1e3}, rates=rates)
    play.round(Allox(alpha=1.0))
    assert play.on == {"1": {"s": 1}, "2": {"f": 1}}


def test_old_jobs_are_not_passed_by_young_short_ones() -> None:
    """The oldest alone stand in line with alpha 0, as many as there are GPUs: first come, first served."""
    left = {"1": 9e5, "2": 1e5, "3": 1e3}
    jobs = [job(1), job(2, submit=1), job(3, submit=2)]
    play = ToldPlay(jobs, {"n1": 1}, left=left)
    assert play.play(Allox(alpha=0.0, reset_seconds=0), 3) == [{"1"}] * 3


def test_a_gang_stands_in_line_as_one_job() -> None:
    left = {"1": 1e3, "2": 2e3, "3": 3e3}
    play = ToldPlay([job(1, gpus=4), job(2), job(3)], {"n1": 4}, left=left)
    play.play(Allox(alpha=1.0), 10)
    ran = [sum(label in ran for ran in play.rounds) for label in "123"]
    assert ran[0] > 0
    assert ran[1] == ran[2] > ran[0]


def test_jobs_are_planned_when_the_gpu_type_on_which_they_ran_has_gone() -> None:
    play = ToldPlay([job(1), job(2), job(3)], FAST_AND_SLOW, left={"1": 1e4, "2": 1e4, "3": 1e4})
    play.round(Allox(alpha=1.0, reset_seconds=0))
    assert {"s": 1} in play.on.values()
    play.nodes = {name: replace(each, usable=False) for name, each in FAST_AND_SLOW.items()}
    assert len(play.round(Allox(alpha=1.0, reset_seconds=0))) == 2, "nobody is stopped, nobody is granted"


@pytest.mark.parametrize("alpha", [-0.1, 1.5])
def test_a_part_is_between_none_and_all(alpha: float) -> None:
    with pytest.raises(ConfigError, match=r"policy\.allox\.alpha = .* from 0 to 1 \(a part"):
        Allox(alpha=alpha)
